import { setTimeout as sleep } from 'node:timers/promises'
import type { StoreCounters } from './counted-store.ts'
import { type Verdict, storeFailure, judgeFailure } from './s3-failure.ts'

/** Attempts of one request. */
const ATTEMPTS = 4
/** Pause before the second attempt, milliseconds, at most; three times as long before each further one. */
const PAUSE_MS = 200
/** Longest time until a request is answered, milliseconds, besides that of its bytes. */
const ANSWER_MS = 30_000
/** The slowest upload that is waited for, bytes a second. */
const SLOWEST = 50_000

/** A failure that the caller of a request expects. */
export type ExpectedFailure = Extract<Verdict, 'missing' | 'condition' | 'range'>

/** A request of a call. */
export interface StoreCall {
  readonly verb: keyof StoreCounters['requests']
  /** For messages: `write lease.json`. */
  readonly what: string
  /** Bytes that it sends. */
  readonly bytes?: number
  /** Whether a second attempt must not follow one of which it is not known what it did. */
  readonly isOnce?: boolean
}

/** Sends a request until it is answered. Throws `FleetError` when it failed for good. */
export type StoreSender = <T>(
  call: StoreCall,
  request: (signal: AbortSignal) => Promise<T>,
) => Promise<T | ExpectedFailure>

interface SenderOptions {
  /** The store, for messages. */
  readonly place: string
  readonly counters: StoreCounters
  /** Aborted when the store is closed. */
  readonly closing: AbortSignal
  readonly answerMs?: number | undefined
  readonly pauseMs?: number | undefined
}

const isExpected = (verdict: Verdict): verdict is ExpectedFailure =>
  verdict === 'missing' || verdict === 'condition' || verdict === 'range'

/** Creates the sender of a store, the one place with deadlines and attempts. */
export function createStoreSender({
  place,
  counters,
  closing,
  answerMs = ANSWER_MS,
  pauseMs = PAUSE_MS,
}: SenderOptions): StoreSender {
  return async (call, request) => {
    const { verb, what, bytes = 0, isOnce = false } = call
    const ms = answerMs + (bytes / SLOWEST) * 1000
    for (let attempt = 1; ; attempt++) {
      try {
        return await withDeadline(request, ms, closing)
      } catch (error) {
        const verdict = judgeFailure(error)
        if (isExpected(verdict)) return verdict
        const again = verdict === 'busy' || (verdict === 'lost' && !isOnce)
        if (!again || attempt === ATTEMPTS || closing.aborted) throw storeFailure(what, place, error)
        counters.requests[verb].retried++
        await sleep(Math.random() * pauseMs * 3 ** (attempt - 1))
      }
    }
  }
}

/** Runs a request; the deadline ends with its answer, whose body may take longer. */
async function withDeadline<T>(
  request: (signal: AbortSignal) => Promise<T>,
  ms: number,
  closing: AbortSignal,
): Promise<T> {
  const controller = new AbortController()
  const abort = (): void => controller.abort()
  const late = new Error(`no answer within ${ms / 1000} s`)
  const timer = setTimeout(() => controller.abort(late), ms)
  closing.addEventListener('abort', abort, { once: true })
  try {
    return await request(controller.signal)
  } catch (error) {
    throw controller.signal.reason === late ? late : error
  } finally {
    clearTimeout(timer)
    closing.removeEventListener('abort', abort)
  }
}
