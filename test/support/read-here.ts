import { setImmediate } from 'node:timers/promises'
import { createReader } from '../../src/server/reading/reader.ts'
import type { ReadingData } from '../../src/server/reading/request.ts'
import type { ReadingThread } from '../../src/server/reading/thread.ts'

/**
 * Reads lists and items in this thread, as the reading thread reads them: starting one for each mirror takes most of the
 * time of a test. Requests and replies are copied as between threads. The thread itself: `reading.test.ts`.
 */
export function readHere(data: ReadingData): ReadingThread {
  const { read, close } = createReader(structuredClone(data))
  return {
    async ask(request, { isGone }) {
      await setImmediate()
      return isGone() ? null : structuredClone(read(structuredClone(request)))
    },
    isRunning: () => true,
    close() {
      close()
      return Promise.resolve()
    },
  }
}
