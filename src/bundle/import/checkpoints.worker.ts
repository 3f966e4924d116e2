import { parentPort, workerData } from 'node:worker_threads'
import { openWriter } from '../../store/database/open.ts'

/** What the thread is told, one thing at a time. */
export type ToCheckpointer = 'copy' | 'stop'

/** Copies the write-ahead log into the database whenever it is told to, and says when that is done. */
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
