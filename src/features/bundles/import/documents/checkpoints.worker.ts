import { parentPort, workerData } from 'node:worker_threads'
import { openWriter } from '../../../../store/database/open.ts'

/** Messages to the thread, one at a time. */
export type ToCheckpointer = 'copy' | 'stop'

/** Copies the write-ahead log into the database on request, and reports when that is done. */
function main(port: NonNullable<typeof parentPort>): void {
  const { dataDir } = workerData as { dataDir: string }
  const db = openWriter(dataDir)
  port.on('message', (message: ToCheckpointer) => {
    if (message === 'stop') {
      db.close()
      port.close()
      return
    }
    db.pragma('wal_checkpoint(PASSIVE)') // what fails here ends the thread; the writer then copies by itself
    port.postMessage('copied')
  })
}

if (parentPort !== null) main(parentPort)
