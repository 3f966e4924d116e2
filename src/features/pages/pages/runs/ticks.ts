import { counted } from '../../../../base/text.ts'
import type { SourceName } from '../../../../base/domain/sources.ts'
import { time } from '../../../../answers/cells.ts'
import type { TickRow, TicksBlock } from '../../blocks.ts'
import type { PageCall } from '../../page.ts'
import { type JudgedRun, type Outcome, judgeRuns } from './outcomes.ts'

/** How far back runs are shown. */
const HOURS = 48
/** Runs of a source that are shown; by one more it is known whether the oldest of them changed anything. */
const MOST = 96
const LOOKED = MOST + 1

const MARKS: Readonly<Record<Outcome, Omit<TickRow['ticks'][number], 'label' | 'href'>>> = {
  changed: { mark: '+', tone: 'good' },
  unchanged: { mark: '·', tone: 'good' },
  complete: { mark: '✓', tone: 'good' },
  partial: { mark: '!', tone: 'warn' },
  quarantined: { mark: '!', tone: 'bad' },
  failed: { mark: '×', tone: 'bad' },
  stopped: { mark: '–', tone: 'plain' },
  running: { mark: '…', tone: 'plain' },
}

const WORDS: Readonly<Record<Outcome, string>> = {
  changed: 'complete, changed',
  unchanged: 'complete, nothing changed',
  complete: 'complete',
  partial: 'partial',
  quarantined: 'quarantined',
  failed: 'failed',
  stopped: 'stopped',
  running: 'running',
}

/** Returns the runs of the last two days, a row for each source and a tick for each run. */
export function runTicks(call: PageCall, sources: readonly SourceName[]): TicksBlock {
  return {
    kind: 'ticks',
    title: `Runs of the last ${HOURS} hours`,
    note: '+ changed, · nothing changed, ✓ complete without an earlier run to compare with, ! partial or quarantined, × failed, – stopped, … running. The newest is on the right.',
    rows: sources.map((source) => rowOf(call, source)),
  }
}

function rowOf({ reads, now, ui, signedIn }: PageCall, source: SourceName): TickRow {
  const runs = reads.runs.findRuns({ source, kind: '', state: '', before: Number.MAX_SAFE_INTEGER, limit: LOOKED })
  const judged = judgeRuns(runs)
  const recent = judged.filter(({ run }) => run.startedAt > now - HOURS * 3_600_000)
  const ticks = recent.slice(0, MOST).map(({ run, outcome }) => ({
    ...MARKS[outcome],
    label: `${time(run.startedAt, now).text}: ${run.kind} ${WORDS[outcome]} (run ${run.id})`,
    href: signedIn ? ui('run', { id: run.id }) : null,
  }))
  const all = signedIn ? ui('runs', { source, show: 'all' }) : null
  const isCut = recent.length > MOST
  return { name: source, href: all, summary: summaryOf(recent.slice(0, MOST), isCut), ticks: ticks.reverse() }
}

function summaryOf(runs: readonly JudgedRun[], isCut: boolean): string {
  if (runs.length === 0) return 'no run'
  const countOf = (...outcomes: Outcome[]): number => runs.filter(({ outcome }) => outcomes.includes(outcome)).length
  const parts = [
    [countOf('failed'), 'failed'],
    [countOf('partial', 'quarantined'), 'partial or quarantined'],
    [countOf('changed'), 'changed'],
  ] as const
  const words = parts.flatMap(([number, what]) => (number === 0 ? [] : [`${number} ${what}`]))
  const all = isCut ? `the last ${counted(runs.length, 'run')}` : counted(runs.length, 'run')
  return words.length === 0 ? all : `${all}: ${words.join(', ')}`
}
