import { describeRetry } from '../base/domain/progress.ts'
import type { Logger } from '../base/log.ts'
import { createDue } from '../base/pacing.ts'
import { toIso } from '../base/time.ts'
import type { SourceName } from '../base/domain/sources.ts'
import type { Progress, RunRequest } from '../sync/context.ts'
import type { Run } from '../store/runs/runs.ts'

/** Causes that several runs have in common, and what helps. */
const SHARED: Partial<Record<string, string>> = {
  upstream_unreachable: 'What is stored is served. "patchmirror doctor" looks for the cause',
  upstream_auth: 'What is stored is served. "patchmirror doctor" looks for the cause',
  storage: 'What is stored is served',
  corrupt: 'What can be read is served',
}

/**
 * Creates the log of runs. What several of them fail for is an error when it begins, with what helps, and a line at level info
 * when it is over; the runs between are at level info.
 */
export function createRunLog(log: Logger, now: () => number): (report: Run) => void {
  const open = new Map<string, { readonly since: string; readonly sources: Set<SourceName> }>()
  const settle = ({ source, state }: Run): void => {
    if (state === 'failed' || state === 'stopped') return
    for (const [code, { since, sources }] of open) {
      if (!sources.delete(source) || sources.size > 0) continue
      open.delete(code)
      log.info({ code }, `no run fails with ${code} any more; the first did at ${since}`)
    }
  }
  return (report) => {
    settle(report)
    const { source, state } = report
    const code = report.code ?? ''
    const help = SHARED[code]
    if (state !== 'failed' || help === undefined) return logRun(log, report)
    const known = open.get(code)
    if (known === undefined) {
      open.set(code, { since: toIso(now()), sources: new Set([source]) })
      return logRun(log, { ...report, message: `${report.message ?? code}. ${help}` })
    }
    known.sources.add(source)
    const text = `${source} ${report.kind}: failed: ${report.message ?? code}`
    log.info({ run: report.id, source, code }, `${text}; this cause is known since ${known.since}`)
  }
}

/** Logs a run that has ended: a failed one as an error, one with doubts or gaps as a warning, one stopped on request as neither. */
export function logRun(log: Logger, report: Run): void {
  const { id, source, kind, state, message, code, facts } = report
  const fields = { run: id, source, kind, state, code, facts }
  const text = `${source} ${kind}: ${state}: ${message ?? ''}`
  const isDoubtful = facts['doubts'] !== undefined && kind !== 'approve'
  const warns = facts['filtersUnusable'] !== undefined || isDoubtful
  if (state === 'stopped' || (state === 'complete' && !warns)) log.info(fields, text)
  else if (state === 'failed') log.error(fields, text)
  else log.warn(fields, text)
}

/** Shortest time between two equal warnings of what is retried, milliseconds. */
const SAME_MS = 3_600_000

/** Returns what logs a warning, an equal one once an hour at most: what is retried every few seconds fails for one cause. */
export function warnOnce(log: Pick<Logger, 'warn'>): (text: string) => void {
  let last = { text: '', at: -Infinity }
  return (text) => {
    const at = performance.now()
    if (text === last.text && at - last.at < SAME_MS) return
    last = { text, at }
    log.warn({}, text)
  }
}

/** Logs that a run found another process writing, such as a command, and is tried again; `message` names the process. */
export function logPostponed(log: Pick<Logger, 'info'>, { source, kind, trigger }: RunRequest, message: string): void {
  const text = `${source} ${kind}: postponed by a minute: ${message}`
  log.info({ source, kind, trigger }, text)
}

/** Shortest time between two lines about repeated requests of one source, milliseconds. */
const RETRIES_MS = 60_000

/** Returns `report`, with a log line for what is repeated: at most one a minute for each source. */
export function logRetries(
  log: Pick<Logger, 'warn'>,
  report: (progress: Progress) => void,
): (progress: Progress) => void {
  const isDue = createDue(RETRIES_MS)
  return (progress) => {
    const { source, retry } = progress
    if (retry !== undefined && isDue(source))
      log.warn({ source, nextAt: retry.nextAt }, `${source}: ${describeRetry(retry)}`)
    report(progress)
  }
}
