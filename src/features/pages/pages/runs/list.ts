import { clip, counted } from '../../../../base/text.ts'
import { SOURCES } from '../../../../base/domain/sources.ts'
import { messageNow } from '../../../../store/runs/rejected.ts'
import { type Run, type RunState, lastedMs } from '../../../../store/runs/runs.ts'
import type { Tone } from '../../../lookup/answers/answer.ts'
import { type Cell, link, plain, span, state, time, withTimes } from '../../../lookup/answers/cells.ts'
import type { Block, FormField } from '../../blocks.ts'
import { type PageCall, type PageView, choiceOf, numberOf, parameter } from '../../page.ts'
import { type RunLine, groupUnchanged, judgeRuns } from './outcomes.ts'
import { RUN_KINDS, RUN_STATES } from '../../../../base/reports/runs.ts'

/** Runs on a page. */
const PAGE = 50

const TONES: Readonly<Record<RunState, Tone>> = {
  running: 'plain',
  complete: 'good',
  partial: 'warn',
  quarantined: 'bad',
  failed: 'bad',
  stopped: 'plain',
}

const SHOWN = ['all'] as const
/** Runs that are looked at for a page of those that changed something or did not end well. */
const LOOKED = 1000

/** What a page of runs is asked for. */
interface AskedRuns {
  readonly source: Run['source'] | ''
  readonly kind: Run['kind'] | ''
  readonly state: RunState | ''
  readonly show: (typeof SHOWN)[number] | ''
}

/** Loads the page of the run log: what changed something or did not end well, or every run that fits a filter. */
export function loadRuns(call: PageCall): PageView {
  const { query, ui } = call
  const asked: AskedRuns = {
    source: choiceOf(query, 'source', SOURCES),
    kind: choiceOf(query, 'kind', RUN_KINDS),
    state: choiceOf(query, 'state', RUN_STATES),
    show: choiceOf(query, 'show', SHOWN),
  }
  const before = numberOf(query, 'before')
  const { lines, next } = readLines(call, asked, before ?? Number.MAX_SAFE_INTEGER)
  const table: Block = {
    kind: 'table',
    title: isEach(asked) ? 'Runs, newest first' : 'Runs, newest first; several without a change in one line',
    columns: ['Run', 'Source', 'Kind', 'State', 'Started', 'Took', 'Result'],
    rows: lines.map((line) => ('run' in line ? rowOf(call, line.run) : groupRow(call, line.unchanged))),
    empty: 'No run fits this filter.',
    first: before === null ? null : ui('runs', { ...asked }),
    next: next === null ? null : ui('runs', { ...asked, before: next }),
  }
  return { title: 'Runs', blocks: [formOf(call, asked), table] }
}

/** Reports whether each run is a line: a kind or a state that is asked for leaves no runs out. */
function isEach({ kind, state: is, show }: AskedRuns): boolean {
  return show === 'all' || kind !== '' || is !== ''
}

/** Reads the lines of a page; `next`: the run before which the next page begins, null where there is none. */
function readLines({ reads }: PageCall, asked: AskedRuns, before: number): { lines: RunLine[]; next: number | null } {
  const limit = isEach(asked) ? PAGE + 1 : LOOKED
  const { source, kind, state: is } = asked
  const judged = judgeRuns(reads.runs.findRuns({ source, kind, state: is, before, limit }))
  const all: RunLine[] = isEach(asked) ? judged : groupUnchanged(judged)
  const lines = all.slice(0, PAGE)
  const oldest = lines.at(-1)
  const isEnd = all.length <= PAGE && judged.length < limit
  return { lines, next: isEnd || oldest === undefined ? null : (lastRunOf(oldest)?.id ?? null) }
}

function formOf({ ui }: PageCall, { source, kind, state: is, show }: AskedRuns): Block {
  const fields = [
    selectOf('source', 'Source', SOURCES, source),
    selectOf('kind', 'Kind', RUN_KINDS, kind),
    selectOf('state', 'State', RUN_STATES, is),
    showField(show),
  ]
  return { kind: 'form', label: 'Filter of runs', action: ui('runs'), fields, button: 'Filter' }
}

function showField(show: string): FormField {
  const options = [
    { value: '', label: 'changed or not complete' },
    { value: 'all', label: 'each run' },
  ]
  return { name: 'show', label: 'Show', value: show, options }
}

function lastRunOf(line: RunLine): Run | undefined {
  return 'run' in line ? line.run : line.unchanged.at(-1)
}

/** One line for runs in a row that changed nothing, which leads to each of them. */
function groupRow({ ui, query, now }: PageCall, runs: readonly Run[]): (Cell | Cell[])[] {
  const source = parameter(query, 'source')
  const newest = runs[0]
  const before = (newest?.id ?? 0) + 1
  const bySource = [...Map.groupBy(runs, (run) => run.source)].map(([name, ones]) => `${name} ${ones.length}`)
  const from = time(runs.at(-1)?.startedAt ?? null, now)
  return [
    link(counted(runs.length, 'run'), ui('runs', { source, show: 'all', before })),
    plain(bySource.join(', ')),
    plain(null),
    plain(null),
    [{ text: `${from.text} to`, look: 'time' }, time(newest?.startedAt ?? null, now)],
    plain(null),
    plain(`${counted(runs.length, 'run')} without a change`),
  ]
}

function rowOf({ ui, now, reads }: PageCall, run: Run): Cell[] {
  const { id, source, kind, startedAt, message } = run
  const what = plain(withTimes(clip(messageNow(reads, message) ?? '', 200)))
  return [
    link(String(id), ui('run', { id })),
    ...[plain(source), plain(kind), runState(run), time(startedAt, now), runDuration(run), what],
  ]
}

/** Returns a cell of a run's state. */
export function runState({ state: is }: Pick<Run, 'state'>): Cell {
  return state(is, TONES[is])
}

/** Returns a cell of how long a run took, where that is known. */
export function runDuration(run: Parameters<typeof lastedMs>[0]): Cell {
  const ms = lastedMs(run)
  return ms === null ? plain(null) : { text: span(ms / 1000), look: 'time' }
}

/** Returns a field of a form with a fixed set of values, or any. */
export function selectOf(name: string, label: string, values: readonly string[], value: string) {
  const options = [{ value: '', label: 'any' }, ...values.map((one) => ({ value: one, label: one }))]
  return { name, label, value, options }
}
