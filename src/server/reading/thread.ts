import { type RequestThread, createRequestThread } from '../../base/threads/request-thread.ts'
import { workerFile } from '../../base/threads/worker-file.ts'
import type { ServedPin } from '../../store/pin.ts'
import type { PinRequest, ReadReply, ReadingData, ReadingRequest } from './request.ts'

/** A thread that answers what would keep the serving thread for long. */
export type ReadingThread = RequestThread<ReadingRequest, ReadReply>

/** Requests that may wait: each is small, and connections are bounded too. */
const MAX_WAITING = 1000

/** Creates the thread that reads lists, items and differences; it starts at the first request. */
export function createReadingThread(data: ReadingData, maxWaiting = MAX_WAITING): ReadingThread {
  const file = workerFile('reading.worker', import.meta.url)
  const what = 'lists, items and differences'
  return createRequestThread({ file, data, limits: LIMITS, unref: true, maxWaiting, what })
}

/** Opens what answers beside the serving thread, until the server ends. `startReading`: a thread of its own when not given. */
export function openReading(
  {
    config,
    startReading = createReadingThread,
  }: Pick<ReadingData, 'config'> & { startReading?: (data: ReadingData) => ReadingThread },
  { servedPin }: { readonly servedPin: ServedPin | undefined },
  atEnd: (close: () => Promise<void>) => void,
): ReadingThread {
  const reading = startReading({ config })
  atEnd(() => reading.close())
  followPin(reading, servedPin)
  return reading
}

/**
 * Has a thread beside the serving one read what is served: once it runs, it moves with the pin. Where newer states are kept back it
 * starts at once. One that could not move is not ready until the next move.
 */
export function followPin(
  thread: Pick<RequestThread<PinRequest, unknown>, 'ask' | 'isRunning'>,
  servedPin: ServedPin | undefined,
): void {
  if (servedPin === undefined) return
  const { keepsBack } = servedPin
  const move = (pin: string): void => {
    if (keepsBack || thread.isRunning()) void thread.ask({ pin }, OWN).catch(() => undefined)
  }
  servedPin.onMoved(move)
  move(servedPin.stamp())
}

/** Asked by the mirror itself. */
const OWN = { isGone: () => false, address: null }

/** The page of a list is in memory as a whole, beside the database's cache. */
const LIMITS = { maxYoungGenerationSizeMb: 16, maxOldGenerationSizeMb: 1000 }
