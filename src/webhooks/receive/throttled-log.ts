import type { Logger } from '../../base/log.ts'

/** Minimum interval between log lines for one reason, milliseconds: a flood must not fill a disk. */
const EVERY_MS = 10_000

/** Logs a line for a reason, or counts it for the next line with the same reason. */
type ThrottledLog = (reason: string, fields: object, message: string) => void

/** Creates a log with at most one line per reason and interval. Reasons are a fixed set, never a sender's text. */
export function createThrottledLog(log: Pick<Logger, 'warn'> | null, now: () => number): ThrottledLog {
  const lastLines = new Map<string, { at: number; suppressed: number }>()
  return (reason, fields, message) => {
    const last = lastLines.get(reason)
    const at = now()
    if (last !== undefined && Math.abs(at - last.at) < EVERY_MS) {
      last.suppressed++
      return
    }
    lastLines.set(reason, { at, suppressed: 0 })
    const more = last?.suppressed ?? 0
    log?.warn({ ...fields, reason, ...(more > 0 && { alike: more }) }, message)
  }
}
