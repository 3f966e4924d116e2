import type { Logger } from '../core/log.ts'
import type { RunReport } from '../sync/runner.ts'

/** Logs a run that has ended: a failed one as an error, one with doubts or gaps as a warning. */
export function logRun(log: Logger, report: RunReport): void {
  const { id, source, kind, state, message, code, facts } = report
  const fields = { run: id, source, kind, state, code, facts }
  const text = `${source} ${kind}: ${state}: ${message ?? ''}`
  const warns = facts['filtersUnusable'] !== undefined || facts['doubts'] !== undefined
  if (state === 'complete' && !warns) log.info(fields, text)
  else if (state === 'failed') log.error(fields, text)
  else log.warn(fields, text)
}
