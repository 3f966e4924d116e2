import { HOUR_MS } from '../../../base/time.ts'
import type { ImportResult } from './inbox.ts'
import type { Shipped } from './outbox.ts'
import { supervise } from '../../../base/threads/supervisor.ts'
import { workerFile } from '../../../base/threads/worker-file.ts'
import type { BoxesStatus } from '../../../base/reports/transfer.ts'
import { type Attempt, createTries } from './crash-counter.ts'
import type { BoxesStart, FromBoxes, ToBoxes } from './boxes.worker.ts'

/** What the thread is started with, and whom it tells. */
interface BoxesThreadDeps extends Omit<BoxesStart, 'before'> {
  readonly onSettled: (settled: ImportResult) => void
  readonly onShipped: (shipped: Shipped) => void
  readonly onFault: (message: string) => void
}

/** How long an export or import that is under way may take to end, milliseconds. */
const STOP_TIMEOUT_MS = 5_000

/** Interval of checks whether the date in the outbox is outdated: a twelfth of the six hours that it may be old. */
const DATE_CHECK_MS = HOUR_MS / 2

/** Starts the thread. Never throws: a thread that ends is reported and replaced. */
export function startBoxesThread(deps: BoxesThreadDeps) {
  const { onSettled, onShipped, onFault, ...data } = deps
  let status: BoxesStatus = { outbox: null, inbox: null }
  let attempt: Attempt | null = null
  const supervisor = supervise<ToBoxes, FromBoxes>({
    file: workerFile('boxes.worker', import.meta.url),
    data: () => ({ ...data, before: status }) satisfies BoxesStart,
    limits: { maxYoungGenerationSizeMb: 6, maxOldGenerationSizeMb: 2000 },
    stopTimeoutMs: STOP_TIMEOUT_MS,
    onMessage(message) {
      if (message.type === 'status') status = message.status
      else if (message.type === 'attempt') attempt = message.attempt
      else if (message.type === 'settled') onSettled(message.settled)
      else if (message.type === 'shipped') onShipped(message.shipped)
      else onFault(message.message)
    },
    onFailed(message) {
      attempt = null // it may be what the thread failed of
      onFault(`${message}; it is tried again`)
    },
  })
  /** A stop may terminate the thread, which is no fault of the bundle. The thread may be too busy to do this itself. */
  const takeBack = (): void => {
    if (attempt !== null) createTries(data.config.data.dir).takeBack(attempt)
  }
  const { outbox } = data.config.bundle
  const published = (): void => supervisor.post({ type: 'published' })
  // A run that finds nothing new publishes no snapshot, but confirms a later date.
  const dating = outbox === null ? undefined : setInterval(published, DATE_CHECK_MS)
  return {
    /** A snapshot was published: the outbox is to have it. While an export runs, further ones come to one more. */
    published,
    status: (): BoxesStatus => status,
    /** Stops the thread. Work in progress gets a short time to end; otherwise the next start repeats it. */
    async close(): Promise<void> {
      clearInterval(dating)
      takeBack() // at once: the process may be killed before the thread has ended
      await supervisor.stop()
      takeBack() // the thread may have begun another
    },
  }
}
