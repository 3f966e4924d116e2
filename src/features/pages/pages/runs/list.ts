import { clip } from '../../../../base/text.ts'
import { SOURCES } from '../../../../base/domain/sources.ts'
import { messageNow } from '../../../../store/runs/rejected.ts'
import { type Run, type RunState, lastedMs } from '../../../../store/runs/runs.ts'
import type { Tone } from '../../../../answers/answer.ts'
import { type Cell, link, plain, span, state, time } from '../../../../answers/cells.ts'
import { type PageCall, type PageView, choiceOf, numberOf } from '../../page.ts'

const STATES = ['running', 'complete', 'partial', 'quarantined', 'failed', 'stopped'] as const
const KINDS = ['sync', 'refresh', 'reconcile', 'approve', 'repair', 'import'] as const
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

/** Loads the page of the run log, with filters. */
export function loadRuns(call: PageCall): PageView {
  const { query, reads, ui } = call
  const filter = {
    source: choiceOf(query, 'source', SOURCES),
    kind: choiceOf(query, 'kind', KINDS),
    state: choiceOf(query, 'state', STATES),
  }
  const before = numberOf(query, 'before')
  const found = reads.runs.findRuns({
    ...filter,
    before: before ?? Number.MAX_SAFE_INTEGER,
    limit: PAGE + 1,
  })
  const shown = found.slice(0, PAGE)
  const next = found.length > PAGE ? ui('runs', { ...filter, before: shown.at(-1)?.id }) : null
  return {
    title: 'Runs',
    blocks: [
      {
        kind: 'form',
        label: 'Filter of runs',
        action: ui('runs'),
        fields: [
          selectOf('source', 'Source', SOURCES, filter.source),
          selectOf('kind', 'Kind', KINDS, filter.kind),
          selectOf('state', 'State', STATES, filter.state),
        ],
        button: 'Filter',
      },
      {
        kind: 'table',
        title: 'Runs, newest first',
        columns: ['Run', 'Source', 'Kind', 'State', 'Started', 'Took', 'What happened'],
        rows: shown.map((run) => rowOf(call, run)),
        empty: 'No run fits this filter.',
        first: before === null ? null : ui('runs', filter),
        next,
      },
    ],
  }
}

function rowOf({ ui, now, reads }: PageCall, run: Run): Cell[] {
  const { id, source, kind, startedAt, message } = run
  const what = plain(clip(messageNow(reads, message) ?? '', 200))
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
