import { createDue } from '../pacing.ts'

/** What warnings are logged to; null: nowhere. */
export type WarningLog = { warn(fields: object, message: string): void } | null

/** Minimum interval between log lines for one reason, milliseconds. */
const LOG_MS = 10_000

/** Counts things by reason, and logs the first of each reason at once and all further ones every ten seconds. */
export function createCountedLog<Reason extends string>({
  log,
  onCount,
  textOf,
}: {
  readonly log: WarningLog
  readonly onCount: (why: Reason, count: number) => void
  readonly textOf: (why: Reason, count: number) => string
}): (why: Reason, count: number) => void {
  const isDue = createDue(LOG_MS)
  const counts = new Map<Reason, number>()
  return (why, count) => {
    onCount(why, count)
    const all = (counts.get(why) ?? 0) + count
    counts.set(why, all)
    if (!isDue(why)) return
    log?.warn({ reason: why, count: all }, textOf(why, all))
    counts.delete(why)
  }
}
