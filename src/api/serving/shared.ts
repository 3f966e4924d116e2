import type { PinnedReads } from '../../store/reads.ts'

/*
 * What the serving threads know of each other without a message: plain numbers in shared memory.
 */

/** Counts how often the pins of all serving threads moved, so that none answers from an older snapshot than another one did. */
export interface PinMoves {
  /** For the other threads; null where there is one thread only. */
  readonly memory: SharedArrayBuffer | null
  /** True when another thread's pin moved since this one's was moved: refresh the reads before the next answer. */
  readonly isBehind: () => boolean
  /** The same reads; a move of their pin is counted before anything is answered from it. */
  readonly counted: (reads: PinnedReads) => PinnedReads
}

/** Counts nothing: one thread serves. */
const ONE_THREAD: PinMoves = { memory: null, isBehind: () => false, counted: (reads) => reads }

/** Creates the counts for so many serving threads. */
export function createPinMoves(threads: number): PinMoves {
  return threads === 1 ? ONE_THREAD : joinPinMoves(new SharedArrayBuffer(4))
}

/** Takes part in the counts of the thread that created them. */
export function joinPinMoves(memory: SharedArrayBuffer): PinMoves {
  const cell = new Int32Array(memory)
  let seen = Atomics.load(cell, 0)
  return {
    memory,
    isBehind: () => Atomics.load(cell, 0) !== seen,
    counted(reads) {
      Atomics.add(cell, 0, 1) // the pin was opened just now, perhaps at a newer snapshot than those of the others
      return {
        ...reads,
        refresh() {
          const count = Atomics.load(cell, 0) // before: a move meanwhile is looked at again
          const isMoved = reads.refresh()
          if (isMoved) Atomics.add(cell, 0, 1)
          seen = count
          return isMoved
        },
      }
    },
  }
}

/** How many answers a thread gave, and how long they took. */
interface AnswerTotals {
  readonly count: number
  readonly seconds: number
  /** Answers that took at most the bound at the same place. */
  readonly within: readonly number[]
}

/** Where the answers of other threads are counted. */
export interface AnswerMetrics {
  /** Upper bounds of the histogram of answers, seconds. */
  readonly answerBounds: readonly number[]
  /** Adds another thread, and the answers with records that it counts. */
  readonly addThread: (thread: ThreadAnswers) => void
}

/** A serving thread beside the main one, as the metrics see it. */
export interface ThreadAnswers {
  readonly totals: () => AnswerTotals
  /** False while it starts, or is to be replaced. */
  readonly isReady: () => boolean
}

/** Counts the answers of one thread in memory that the main thread reads. */
interface AnswerCounts {
  readonly memory: SharedArrayBuffer
  readonly add: (seconds: number) => void
  readonly totals: () => AnswerTotals
}

/** Places of the numbers before those of the bounds. */
const COUNT = 0
const SECONDS = 1
const FIRST_BOUND = 2

/** Creates counts by these upper bounds (seconds, ascending), or opens those of another thread. */
export function createAnswerCounts(
  bounds: readonly number[],
  memory = new SharedArrayBuffer(8 * (bounds.length + FIRST_BOUND)),
): AnswerCounts {
  const numbers = new Float64Array(memory)
  const at = (place: number): number => numbers[place] ?? 0
  return {
    memory,
    add(seconds) {
      numbers[COUNT] = at(COUNT) + 1
      numbers[SECONDS] = at(SECONDS) + seconds
      const bound = bounds.findIndex((most) => seconds <= most)
      if (bound >= 0) numbers[FIRST_BOUND + bound] = at(FIRST_BOUND + bound) + 1
    },
    totals() {
      let sum = 0
      const within = bounds.map((_, bound) => (sum += at(FIRST_BOUND + bound)))
      return { count: at(COUNT), seconds: at(SECONDS), within }
    },
  }
}

/** More connections than one thread can have; untouched pages of this memory cost nothing. */
const MOST_CONNECTIONS = 2 ** 20

/** Creates the memory in which a thread counts the answers on each of its connections, by the connection's place. */
export function createActivity(): SharedArrayBuffer {
  return new SharedArrayBuffer(4 * MOST_CONNECTIONS)
}
