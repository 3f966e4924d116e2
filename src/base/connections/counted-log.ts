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
  const since = new Map<Reason, { at: number; count: number }>()
  return (why, count) => {
    onCount(why, count)
    const known = since.get(why) ?? { at: -Infinity, count: 0 }
    known.count += count
    since.set(why, known)
    if (performance.now() - known.at < LOG_MS) return
    log?.warn({ reason: why, count: known.count }, textOf(why, known.count))
    since.set(why, { at: performance.now(), count: 0 })
  }
}
