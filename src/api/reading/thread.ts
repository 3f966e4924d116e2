import { type RequestThread, createRequestThread } from '../../threads/requests.ts'
import { workerFile } from '../../threads/worker-file.ts'
import type { ReadReply, ReadRequest, ReadingData } from './request.ts'

/** A thread that answers what would keep the serving thread for long. */
export type ReadingThread = RequestThread<ReadRequest, ReadReply>

/** Requests that may wait: each is small, and connections are bounded too. */
const MAX_WAITING = 1000

/** Creates the thread that reads lists and items; it starts at the first request. */
export function createReadingThread(data: ReadingData, maxWaiting = MAX_WAITING): ReadingThread {
  const file = workerFile('reading.worker', import.meta.url)
  const what = 'lists and items'
  return createRequestThread({ file, data, limits: LIMITS, unref: true, maxWaiting, what })
}

/** The page of a list is in memory as a whole, beside the database's cache. */
const LIMITS = { maxYoungGenerationSizeMb: 16, maxOldGenerationSizeMb: 1000 }
