import { LIST_COUNTS } from '../../base/domain/run-facts.ts'
import { withStoredReads } from '../store-reads.ts'
import { MirrorError } from '../../base/errors.ts'
import { wholeNumber } from '../../base/text.ts'
import { type Reads } from '../../store/reads.ts'
import { type Refusal, refusedBy } from '../../store/runs/quarantine.ts'
import { messageNow } from '../../store/runs/rejected.ts'
import { type Run, type RunFacts, lastedMs } from '../../store/runs/runs.ts'
import { type GlobalOptions, firstStep, print, printJson, settings } from '../context.ts'
import { table, timeOf } from '../output.ts'
import { duration } from '../../base/time.ts'

/** Options of `patchmirror runs`. */
interface RunsOptions extends GlobalOptions {
  json?: boolean
  limit?: string
  failed?: boolean
}

/** `patchmirror runs [RUN]`: prints the run log, or all facts of one run. */
export function runsCommand(run: string | undefined, options: RunsOptions): number {
  const { config } = settings(options, false, [])
  withStoredReads(config.data.dir, `nothing has run yet in ${config.data.dir}: ${firstStep(config)}`, (reads) => {
    if (run === undefined) printRuns(reads, listed(reads, options), options.json === true)
    else printRun(reads, countOf(run, 'a run'), options.json === true)
  })
  return 0
}

/** States of runs that somebody should look at. */
const WRONG: ReadonlySet<string> = new Set(['failed', 'partial', 'quarantined'])

function listed({ runs }: Reads, { limit = '20', failed = false }: RunsOptions): Run[] {
  const count = countOf(limit, '--limit')
  if (!failed) return [...runs.listRuns(count)]
  // The log has some hundred rows for each source at most.
  return runs
    .listRuns(Number.MAX_SAFE_INTEGER)
    .filter(({ state }) => WRONG.has(state))
    .slice(0, count)
}

function countOf(text: string, what: string): number {
  const count = wholeNumber(text)
  if (count !== null) return count
  throw new MirrorError('usage', `${what} is a whole number above 0, not ${text}`)
}

function printRuns(reads: Reads, runs: readonly Run[], json: boolean): void {
  if (json) return printJson(runs)
  const rows = runs.map((run) => [
    String(run.id),
    run.source,
    run.kind,
    run.state,
    timeOf(run.startedAt),
    tookCell(lastedMs(run)),
    run.trigger,
    messageNow(reads, run.message) ?? '',
  ])
  const head = ['run', 'source', 'kind', 'state', 'started', 'took', 'trigger', 'what happened']
  print(table(head, rows))
}

function tookCell(ms: number | null): string {
  return ms === null ? '-' : duration(ms / 1000)
}

function printRun(reads: Reads, id: number, json: boolean): void {
  const run = reads.runs.readRun(id)
  if (run === null) throw new MirrorError('not_found', `there is no run ${id}; "patchmirror runs" lists them`)
  if (json) return printJson(run)
  const { facts, ...rest } = run
  const shown = Object.entries({ ...rest, message: messageNow(reads, run.message), ...facts })
  const lines = shown.flatMap(([key, value]) => (Array.isArray(value) ? [] : [[key, textOf(key, value)]]))
  print(table(['run', String(id)], lines.slice(1)))
  for (const [key, value] of shown) if (Array.isArray(value) && value.length > 0) print(listOf(key, value, facts))
  const refusal = reads.quarantine.readRefusal(refusedBy(run))
  if (refusal === null) return
  print(`\nquarantine of ${refusal.path}\n  ${refusal.reason}\n  ${decisionOf(refusal)}`)
}

function decisionOf({ runId, decision }: Refusal): string {
  const approve = `patchmirror approve ${runId}`
  if (decision === 'rejected') return `rejected; "${approve}" undoes that`
  return decision ?? `open: ${approve} | patchmirror reject ${runId}`
}

function textOf(key: string, value: number | string | boolean | readonly string[] | null): string {
  if (typeof value === 'number' && (key.endsWith('At') || key === 'asOf')) return timeOf(value)
  return String(value ?? '-')
}

function listOf(key: string, shown: readonly string[], facts: RunFacts): string {
  const all = Number(facts[LIST_COUNTS[key] ?? ''] ?? shown.length)
  const more = all > shown.length ? [`  … and ${all - shown.length} more`] : []
  return ['', key, ...shown.map((line) => `  ${line}`), ...more].join('\n')
}
