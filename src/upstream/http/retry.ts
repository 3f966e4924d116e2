import type { Config } from '../../config/schema.ts'
import { isTransient, retryAfterMs } from './errors.ts'
import { type StopSignal, createStop, whenAborted } from './stop-signal.ts'

/** Waits until the signal aborts at the latest; a parameter, so that tests of pauses are exact. */
export type Delay = (ms: number, signal: AbortSignal) => Promise<void>

/** Called before an attempt is repeated, with the error of the last one and the pause until the next, milliseconds. */
export type OnRetry = (error: unknown, waitMs: number) => void

/** Returns what counts the repeated attempts, and calls `onRetry`. */
export function countRetries(cost: { retries: number }, onRetry?: OnRetry): OnRetry {
  return (error, waitMs) => {
    cost.retries++
    onRetry?.(error, waitMs)
  }
}

/** Calls `attempt` until it succeeds or the retry limit is reached. `madeProgress` resets the count of attempts. */
export type Retrying = <T>(attempt: () => Promise<T>, madeProgress?: (error: unknown) => boolean) => Promise<T>

/**
 * Creates the retry rule: `retries` attempts after the first, counted again from zero after progress; pauses grow,
 * and the signal ends them.
 */
export function createRetrying(
  config: Config['upstream'],
  signal: AbortSignal,
  delay: Delay,
  onRetry: OnRetry,
  mayRepeat: (error: unknown) => boolean = isTransient,
): Retrying {
  return async (attempt, madeProgress = () => false) => {
    for (let failures = 0; ;) {
      try {
        return await attempt()
      } catch (error) {
        signal.throwIfAborted()
        if (!isTransient(error) || !mayRepeat(error)) throw error
        failures = madeProgress(error) ? 1 : failures + 1
        if (failures > config.retries) throw error
        const wait = pause(config, failures, error)
        onRetry(error, wait)
        await delay(wait, signal)
      }
    }
  }
}

/** The first pause, milliseconds, which the next ones double: short, since most failures of a network pass at once. */
const RETRY_MIN_MS = 500
/** The longest Retry-After that is waited for, milliseconds: a longer one ends the run, so that none is blocked for hours. */
export const RETRY_AFTER_MAX_MS = 300_000

/** Returns the pause before the next attempt: the own, growing one, which a Retry-After can lengthen only. */
function pause(config: Config['upstream'], failures: number, error: unknown): number {
  const ceiling = Math.min(config.retryMaxMs, RETRY_MIN_MS * 2 ** (failures - 1))
  const jittered = ceiling / 2 + Math.random() * (ceiling / 2)
  const asked = retryAfterMs(error)
  if (asked === null) return jittered
  const apart = Math.random() * Math.min(config.retryMaxMs, RETRY_MIN_MS)
  if (asked <= RETRY_AFTER_MAX_MS) return Math.max(jittered, asked + apart)
  throw error
}

/** Starts a deadline at its first call. */
export type Deadline = () => StopSignal

/**
 * Runs `work` within a deadline that starts when it is first requested: its signal aborts with a `TimeoutError` after
 * `ms`, and with the run's reason when the run ends. Its timer ends with the request, unlike those of
 * `AbortSignal.timeout` and `AbortSignal.any`, of which a crawl would leave tens of thousands.
 */
export async function withDeadline<T>(
  ms: number,
  run: AbortSignal,
  work: (deadline: Deadline) => Promise<T>,
): Promise<T> {
  const { signal, stop } = createStop()
  const end = (): void => stop(run.reason)
  const late = (): void => stop(new DOMException('the time is up', 'TimeoutError'))
  let timer: NodeJS.Timeout | undefined
  const begin = (): StopSignal => {
    timer ??= setTimeout(late, ms).unref()
    return signal
  }
  if (run.aborted) end()
  const forget = whenAborted(run, end)
  try {
    return await work(begin)
  } finally {
    clearTimeout(timer)
    forget()
  }
}
