import { setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import { MirrorError, messageOf } from '../core/errors.ts'
import type { BuildReport } from './osv/build.ts'
import { type ViewsTask, performTask } from './task.ts'
import type { VexReport } from './vex/repository.ts'

/** What became of a task; `made` null: it was there already. */
export type ViewsOutcome =
  | { readonly made: BuildReport | VexReport | null }
  | { readonly failed: string; readonly locked: boolean }

/** On Linux a priority belongs to the thread that sets it; elsewhere it would slow the whole process, so not there. */
function lowerPriority(): void {
  if (process.platform !== 'linux') return
  try {
    setPriority(0, 15)
  } catch {
    // Not permitted in some sandboxes; nothing worse.
  }
}

async function main(port: NonNullable<typeof parentPort>): Promise<void> {
  lowerPriority()
  const report = (outcome: ViewsOutcome): void => port.postMessage(outcome)
  try {
    report({ made: await performTask(workerData as ViewsTask) })
  } catch (error) {
    const locked = error instanceof MirrorError && error.code === 'locked'
    report({ failed: messageOf(error), locked })
  }
}

if (parentPort !== null) await main(parentPort)
