import type { Logger } from './log.ts'

/** A log line for each reason at most this often, milliseconds: a flood must not fill a disk. */
const EVERY_MS = 10_000

/** Says something about a reason, or counts it for the next line about the same. */
type SparingLog = (reason: string, fields: object, message: string) => void

/** Reasons are few and our own words, never a sender's. */
export function createSparingLog(log: Pick<Logger, 'warn'> | null, now: () => number): SparingLog {
  const told = new Map<string, { at: number; silent: number }>()
  return (reason, fields, message) => {
    const last = told.get(reason)
    const at = now()
    if (last !== undefined && Math.abs(at - last.at) < EVERY_MS) {
      last.silent++
      return
    }
    told.set(reason, { at, silent: 0 })
    const more = last?.silent ?? 0
    log?.warn({ ...fields, reason, ...(more > 0 && { alike: more }) }, message)
  }
}
