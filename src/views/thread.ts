import { Worker } from 'node:worker_threads'
import { messageOf } from '../errors.ts'
import type { ViewsTask } from './task.ts'
import type { ViewsOutcome } from './worker.ts'

/** A task on its way. */
export interface RunningTask {
  readonly outcome: Promise<ViewsOutcome>
  /** Ends the thread at once: what it was making is removed by the next one. */
  stop(): Promise<void>
}

/** The worker file beside this one: `.ts` when run from source, `.js` when built. */
function workerUrl(): URL {
  return new URL(import.meta.url.endsWith('.ts') ? './worker.ts' : './worker.js', import.meta.url)
}

/** Makes views in a thread of its own, which ends with the task: nothing stays while there is nothing to make. */
export function startTask(task: ViewsTask): RunningTask {
  const worker = new Worker(workerUrl(), {
    workerData: task,
    resourceLimits: { maxYoungGenerationSizeMb: 6, maxOldGenerationSizeMb: 1000 },
  })
  const outcome = new Promise<ViewsOutcome>((resolve) => {
    const fail = (failed: string): void => resolve({ failed, locked: false })
    worker.once('message', resolve)
    worker.once('error', (error) => fail(messageOf(error)))
    worker.once('exit', () => fail('its thread ended before it was done'))
  })
  return {
    outcome,
    async stop() {
      await worker.terminate()
    },
  }
}
