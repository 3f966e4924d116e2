import { counted } from '../../../../base/text.ts'
import { HOUR_MS, duration } from '../../../../base/time.ts'
import type { Run } from '../../../../store/runs/runs.ts'
import type { SourceName } from '../../../../base/domain/sources.ts'
import { time } from '../../../lookup/answers/cells.ts'
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
    title: `Runs and age of the last ${HOURS} hours`,
    note: 'The line is the age of the data, by upstream’s clock: it falls when a run confirms the data. + changed, · nothing changed, ✓ complete without an earlier run to compare with, ! partial or quarantined, × failed, – stopped, … running. The newest is on the right.',
    rows: sources.map((source) => rowOf(call, source)),
  }
}

function rowOf({ reads, now, ui, signedIn }: PageCall, source: SourceName): TickRow {
  const runs = reads.runs.findRuns({ source, kind: '', state: '', before: Number.MAX_SAFE_INTEGER, limit: LOOKED })
  const judged = judgeRuns(runs)
  const recent = judged.filter(({ run }) => run.startedAt > now - HOURS * HOUR_MS)
  const ticks = recent.slice(0, MOST).map(({ run, outcome }) => ({
    ...MARKS[outcome],
    label: `${time(run.startedAt, now).text}: ${run.kind} ${WORDS[outcome]} (run ${run.id})`,
    href: signedIn ? ui('run', { id: run.id }) : null,
  }))
  const all = signedIn ? ui('runs', { source, show: 'all' }) : null
  const isCut = recent.length > MOST
  const age = agesOf(runs, now)
  const summary = [summaryOf(recent.slice(0, MOST), isCut), ...(age === null ? [] : [ageWords(age, now)])]
  return { name: source, href: all, summary: summary.join('; '), ticks: ticks.reverse(), age: age && lineOf(age, now) }
}

/** How old data was: points in order, of which two at one time are a fall. Times in Unix milliseconds, ages in milliseconds. */
type Ages = readonly { readonly at: number; readonly age: number }[]

/**
 * Returns how old the data of a source was in the time that is shown, up to now; null: no run of `runs`, newest first, confirmed
 * them. Between two runs that did the age grows with the time. A date of upstream's in the future is the age 0.
 */
export function agesOf(runs: readonly Run[], now: number): Ages | null {
  const begins = now - HOURS * HOUR_MS
  const points: { at: number; age: number }[] = []
  let asOf: number | null = null
  const add = (at: number): void => {
    if (asOf !== null) points.push({ at, age: Math.max(0, at - asOf) })
  }
  for (const { kind, asOf: confirmed, endedAt } of runs.toReversed()) {
    if (confirmed === null || endedAt === null || endedAt > now) continue
    if (endedAt >= begins && points.length === 0) add(begins)
    if (endedAt >= begins) add(endedAt)
    asOf = kind === 'import' ? confirmed : Math.max(asOf ?? 0, confirmed) // an import brings other data
    if (endedAt >= begins) add(endedAt)
  }
  if (points.length === 0) add(begins)
  add(now)
  return points.length === 0 ? null : points
}

/** Size of the line, in its own units: ten an hour. */
const WIDTH = HOURS * 10
const HEIGHT = 24

/** Draws ages, the highest one at the top. */
function lineOf(ages: Ages, now: number): NonNullable<TickRow['age']> {
  const top = Math.max(HOUR_MS, ...ages.map(({ age }) => age))
  const rounded = (value: number): number => Math.round(value * 10) / 10
  const points = ages.map(({ at, age }) => {
    const x = rounded(WIDTH * (1 - (now - at) / (HOURS * HOUR_MS)))
    return `${x} ${rounded(HEIGHT * (1 - age / top))}`
  })
  return { path: `M${points.join('L')}`, width: WIDTH, height: HEIGHT }
}

/** Says how old the data is and was, and of which time that is known where it is a part of what is shown. */
export function ageWords(ages: Ages, now: number): string {
  const words = (ms: number): string => duration(ms / 1000)
  const age = ages.at(-1)?.age ?? 0
  const most = Math.max(...ages.map((one) => one.age))
  const known = now - (ages[0]?.at ?? now)
  const part = known < HOURS * HOUR_MS ? ` in the ${words(known)} that are known` : ''
  return `${words(age)} old, ${words(most)} at most${part}`
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
