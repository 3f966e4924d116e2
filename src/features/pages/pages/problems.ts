import { NO_AGE, type SourceName } from '../../../base/domain/sources.ts'
import { clip, counted } from '../../../base/text.ts'
import { describeOverAge } from '../../../server/status/age.ts'
import type { MirrorProblem } from '../../../server/status/problem.ts'
import { problemsOf } from '../../../server/status/problems.ts'
import type { SourceStatus } from '../../../base/reports/sources.ts'
import type { Status } from '../../../base/reports/status.ts'
import { type Cell, plain, span, state, time, withTimes } from '../../lookup/answers/cells.ts'
import { type FactsBlock, type NoticeBlock, asSentence } from '../../lookup/answers/html.ts'
import type { PageCall } from '../page.ts'

/** What the notices are made from. */
interface ProblemPlace extends Pick<PageCall, 'config' | 'ui' | 'now' | 'signedIn'> {
  /** Returns how many of the last runs of a source failed; absent: that cannot be read. */
  readonly countFailing?: (source: SourceName) => number
}

/** Returns a notice of sources that failed before the run that is in progress: what comes of that is not known yet. */
export function retriedNotices(place: ProblemPlace, status: Status): NoticeBlock[] {
  const { countFailing } = place
  const retried = status.sources.filter(({ name, state }) => state === 'running' && (countFailing?.(name) ?? 0) > 0)
  if (retried.length === 0) return []
  const subject = retried.map(({ name }) => name).join(', ')
  const rows = [...failedRows(place, retried), ...retried.map((source) => servedRow(place, source))]
  const title = `${subject}: the last run failed, and another one is in progress`
  return [{ kind: 'notice', tone: 'warn', title, rows }]
}

/**
 * Returns one notice for each cause of what is wrong with the mirror, the worst first, with the commands that show or fix it. A page
 * for clients without a key leaves the commands out.
 */
export function problemNotices(place: ProblemPlace, status: Status): NoticeBlock[] {
  return problemsOf(status, place.config, place.now).map((one) => noticeOf(place, one, status))
}

function noticeOf(place: ProblemPlace, one: MirrorProblem, status: Status): NoticeBlock {
  const { ui } = place
  const { run, sources = [], since } = one
  const served = status.sources.filter(({ name }) => sources.includes(name))
  const text = textOf(one, served.length > 0)
  const rows: FactsBlock['rows'] = [
    ...(since === null ? [] : ([['since', time(since, place.now)]] as const)),
    ...failedRows(place, served),
    ...served.map((source) => servedRow(place, source)),
  ]
  return {
    kind: 'notice',
    tone: one.level === 'failed' ? 'bad' : 'warn',
    title: `${one.subject}: ${one.text}`,
    ...(text !== '' && { text: withTimes(clip(text, 600)) }),
    ...(rows.length > 0 && { rows }),
    commands: one.advice,
    ...(run !== undefined && {
      links: [{ text: `Run ${run}: what it would change`, href: ui('run', { id: run }) }],
    }),
  }
}

/** More about a problem, and its effect where no rows say it, as sentences. */
function textOf({ detail, effect }: MirrorProblem, hasRows: boolean): string {
  const parts = [detail, hasRows ? null : effect]
  return parts.flatMap((part) => (part === null ? [] : asSentence(part))).join(' ')
}

/** How many runs failed in a row, of each source. */
function failedRows({ countFailing, ui, signedIn }: ProblemPlace, ones: readonly SourceStatus[]): FactsBlock['rows'] {
  if (countFailing === undefined) return []
  const failed = ones.flatMap(({ name, wrongRun }) => {
    const runs = countFailing(name)
    return runs === 0 ? [] : [{ name, runs, last: wrongRun?.id ?? null }]
  })
  if (failed.length === 0) return []
  const cells = failed.map(({ name, runs, last }): Cell => {
    const text = `${name}: ${counted(runs, 'run')}`
    return signedIn && last !== null ? { text, href: ui('run', { id: last }) } : { text }
  })
  return [['failed in a row', cells]]
}

/** What is served of a source, how old that is, and how old it may be. */
function servedRow(
  { config, now }: ProblemPlace,
  { name, asOf, ageSeconds }: SourceStatus,
): FactsBlock['rows'][number] {
  if (asOf === null) return [`${name} serves`, state('nothing: none of it is mirrored yet', 'bad')]
  const age = ageSeconds === null ? `dated ${NO_AGE}` : `${span(ageSeconds)} old`
  const policy = agedCell(config, { name, ageSeconds }, age)
  return [`${name} serves`, [plain('data of'), withoutDistance(time(asOf, now)), policy]]
}

/** Returns the age of a source in these words, judged by its policy, which is noted. */
export function agedCell(
  config: ProblemPlace['config'],
  { name, ageSeconds }: Pick<SourceStatus, 'name' | 'ageSeconds'>,
  words: string,
): Cell {
  const tone = describeOverAge(config, name, ageSeconds) === null ? 'good' : 'bad'
  return { ...state(words, tone), note: `policy: at most ${span(config[name].maxAgeHours * 3600)}` }
}

/** Returns the cell of a time without how long ago that was. */
export function withoutDistance({ note: _, ...cell }: Cell): Cell {
  return cell
}
