import { syncBuiltinESMExports } from 'node:module'
import threads, { type WorkerOptions, isMainThread, parentPort } from 'node:worker_threads'
import type { ToWorker } from '../../src/sync/sync.worker.ts'

// Imported before the program in a process of its own: a run of the records uses up the memory of its sync thread.
if (isMainThread) {
  const { Worker } = threads
  threads.Worker = class extends Worker {
    constructor(file: string | URL, options: WorkerOptions = {}) {
      const resourceLimits = { maxOldGenerationSizeMb: 40 }
      super(file, String(file).includes('sync.worker') ? { ...options, resourceLimits } : options)
    }
  }
  syncBuiltinESMExports()
} else {
  parentPort?.on('message', (message: ToWorker) => {
    if (message.type === 'run' && message.request.source === 'osv') setTimeout(useAll, 1500)
  })
}

function useAll(): void {
  const used: number[][] = []
  for (;;) used.push(new Array<number>(100_000).fill(used.length))
}
