import type { Writes } from '../../../../store/writer.ts'
import type { ToCheckpointer } from './checkpoints.worker.ts'
import { startWorker } from '../../../../base/threads/worker.ts'
import { workerFile } from '../../../../base/threads/worker-file.ts'

/** Keeps the write-ahead log short while gigabytes are written. */
export interface Checkpointer {
  /** Adds committed bytes; waits if the log would get much longer than `every`. */
  written(bytes: number): Promise<void>
  /** Ends it; commits copy the log again. */
  close(): Promise<void>
}

/**
 * Copies the log into the database in a thread of its own, each time `every` bytes were committed: the next bytes are
 * written meanwhile, where a commit that copies would wait for the disk. The database is always consistent, as with any
 * checkpoint. The thread starts at the first copy; if it ends, commits copy the log again.
 */
export function createCheckpointer(store: Writes, dataDir: string, every: number): Checkpointer {
  let thread: CopyingThread | null = null
  let copying: Promise<void> | null = null
  let waiting = 0
  return {
    async written(bytes) {
      waiting += bytes
      if (waiting < every) return
      waiting = 0
      await copying
      thread ??= startThread(store, dataDir)
      copying = thread.copy()
    },
    async close() {
      await copying
      await thread?.stop()
    },
  }
}

interface CopyingThread {
  /** Resolves when the copy is done, or the thread has ended. */
  copy(): Promise<void>
  stop(): Promise<void>
}

function startThread(store: Writes, dataDir: string): CopyingThread {
  let copied: (() => void) | null = null
  const worker = startWorker<ToCheckpointer, 'copied'>(
    { file: workerFile('checkpoints.worker', import.meta.url), data: { dataDir } },
    { onMessage: () => copied?.(), onEnd: () => store.copyLogs(true) },
  )
  store.copyLogs(false)
  return {
    copy() {
      const copying = new Promise<void>((resolve) => (copied = resolve))
      worker.post('copy')
      return Promise.race([worker.ended, copying])
    },
    stop() {
      worker.post('stop')
      return worker.ended
    },
  }
}
