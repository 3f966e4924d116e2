import { describeOverAge } from '../../../server/status/age.ts'
import type { SourceState, SourceStatus } from '../../../base/reports/sources.ts'
import type { Status } from '../../../base/reports/status.ts'
import { clip, nounOf } from '../../../base/text.ts'
import { MirrorError } from '../../../base/errors.ts'
import { NO_AGE, isPrivateSource } from '../../../base/domain/sources.ts'
import { describeOsvScope } from '../../../base/domain/osv-scope.ts'
import { describeRunProgress } from '../../../base/domain/progress.ts'
import {
  FLEET_PAUSED,
  describeUnread,
  isRegistryAsked,
  nameOfTarget,
  registryWords,
} from '../../../base/domain/status.ts'
import type { LoggedSnapshot } from '../../../store/changes/log.ts'
import type { FactsBlock } from '../../lookup/answers/html.ts'
import type { Block, SourceCard, ChartBlock } from '../blocks.ts'
import type { Tone } from '../../lookup/answers/answer.ts'
import { type Cell, size, count, digest, link, plain, span, state, time, grouped } from '../../lookup/answers/cells.ts'
import type { PageCall, PageView } from '../page.ts'
import { changeWords } from './changes/log.ts'
import { withoutCommand } from '../open-text.ts'
import { agedCell, problemNotices, retriedNotices, withoutDistance } from './problems.ts'
import { runTicks } from './runs/ticks.ts'
import { NOT_KNOWN, whyOff } from './transfer/deliveries.ts'
import { whyNoTargets } from './transfer/relay.ts'
import { DAY_MS } from '../../../base/time.ts'

/** Loads the page of the state of the whole mirror: what is wrong first. */
export function loadOverview(call: PageCall): PageView {
  const { status } = call
  if (status === null) throw new MirrorError('internal', 'the overview has no report')
  const { countFailing } = call.reads.runs
  const place = { ...call, countFailing }
  const found = [...problemNotices(place, status), ...retriedNotices(place, status)]
  const names = status.sources.map(({ name }) => name)
  const blocks: Block[] = [
    ...(found.length > 0 ? found : [ALL_WELL]),
    { kind: 'sources', title: 'Sources', cards: status.sources.map((one) => cardOf(call, one)) },
    runTicks(call, names),
    changesChart(call),
    { kind: 'facts', title: 'Parts', rows: partsOf(call, status) },
  ]
  return { title: 'Status', blocks }
}

const ALL_WELL: Block = {
  kind: 'notice',
  tone: 'good',
  title: 'No problem is known',
  text: 'Every source is within the age that its policy permits, and nothing waits for a decision.',
}

const STATES: Readonly<Record<SourceState, readonly [words: string, tone: Tone]>> = {
  never: ['never synced', 'bad'],
  running: ['a run is in progress', 'plain'],
  complete: ['complete: everything upstream lists is stored', 'good'],
  partial: ['partial: something upstream lists is missing', 'warn'],
  quarantined: ['quarantined: a change waits for your decision', 'bad'],
  failed: ['the last run failed', 'bad'],
  stopped: ['the last run was stopped on request; what was published before is served', 'plain'],
}

const REJECTED = ['quarantined: a rejected change is still offered', 'warn'] as const

function cardOf(call: PageCall, source: SourceStatus): SourceCard {
  const { name, asOf, lastRun, nextRunAt, records, snapshot, partialListCount } = source
  const { progress } = source
  const scope = scopeWords(call, source)
  const { now, config } = call
  const isOld = describeOverAge(config, name, source.ageSeconds) !== null
  const isFirst = asOf === null && source.state === 'running'
  const [words, tone] = stateOf(source, isFirst, isOld)
  const ended = lastRun === null ? [plain('never')] : runCells(call, lastRun)
  return {
    name,
    tone,
    state: words,
    rows: [
      ...(progress ? ([['progress', plain(describeRunProgress(progress))]] as const) : []),
      ['age', ageCell(call, source, isFirst)],
      ['as of', withoutDistance(time(asOf, now))],
      ['last run', ended],
      ['next run', nextRunAt === null ? plain('not scheduled') : time(nextRunAt, now)],
      ['last change', lastChange(call, call.reads.changes.readLatestLogged(name))],
      ['records', snapshot === null ? plain(null) : count(records)],
      ...(scope === null ? [] : ([['scope', plain(scope)]] as const)),
      ...(source.partial ? ([['missing or outdated', plain(lacksWords(source))]] as const) : []),
      ...(partialListCount === 0 ? [] : ([['lists incomplete', count(partialListCount)]] as const)),
      ['snapshot', snapshot === null ? plain(null) : digest(snapshot)],
    ],
  }
}

/** Returns the state of a source in words, and the tone of its card. */
function stateOf(source: SourceStatus, isFirst: boolean, isOld: boolean): readonly [words: string, tone: Tone] {
  if (isFirst) return ['the first run is in progress', 'warn']
  const isRejected = source.state === 'quarantined' && source.openQuarantines === 0
  const [words, tone] = isRejected ? REJECTED : STATES[source.state]
  return [source.state === 'complete' ? completeWords(source) : words, isOld ? 'bad' : tone]
}

/** What was imported is as complete as the mirror that it comes from, which may lack what upstream listed. */
function completeWords({ name, scope, scopeChanged, lastRun }: SourceStatus): string {
  if (lastRun?.kind === 'import') return IMPORTED
  return scopeChanged === null && (scope !== null || name === 'catalog') ? IN_SCOPE : STATES.complete[0]
}

function ageCell({ config }: PageCall, source: SourceStatus, isFirst: boolean): Cell {
  if (source.ageSeconds !== null) return agedCell(config, source, span(source.ageSeconds))
  const words = source.asOf === null ? 'nothing is mirrored yet' : NO_AGE_HERE
  return state(words, isFirst ? 'warn' : 'bad')
}

function lacksWords({ missing }: SourceStatus): string {
  return missing === null ? 'not known how many' : String(missing)
}

/** Beside upstream's date, which is shown. */
const NO_AGE_HERE = `dated ${NO_AGE}`

const IMPORTED = 'complete: everything that the imported bundle has is stored'
const IN_SCOPE = 'complete: everything upstream lists in scope is stored'

/** Describes the scope of a source; null where it has none, or where another mirror has decided it. */
function scopeWords({ config }: PageCall, { name, scope }: SourceStatus): string | null {
  if (scope !== null) return clip(describeOsvScope(scope))
  if (name !== 'catalog' || config.upstream.apiRoot === null) return null
  const lists = describeOsvScope(config.catalog)
  return clip(`catalog.scope ${config.catalog.scope}${lists === '' ? '' : `; ${lists}`}`)
}

function runCells({ ui, now, signedIn }: PageCall, run: NonNullable<SourceStatus['lastRun']>): Cell[] {
  const { id, kind, state: outcome, startedAt, endedAt } = run
  const title = `${kind}: ${outcome}`
  const first = signedIn ? link(title, ui('run', { id })) : plain(title)
  return [first, time(endedAt ?? startedAt, now)]
}

function lastChange({ ui, now, signedIn, reads }: PageCall, logged: LoggedSnapshot | null): Cell | Cell[] {
  if (logged === null) return plain('none since the log begins')
  const words = changeWords(reads, logged)
  const isOpen = signedIn || !isPrivateSource(logged.source)
  const what = isOpen ? link(words, ui('changes', { source: logged.source })) : plain(words)
  return [time(logged.publishedAt, now), what]
}

function partsOf(call: PageCall, status: Status): FactsBlock['rows'] {
  const { storage, uptimeSeconds } = status
  const free = storage.freeBytes
  const disk = storage.state === 'ok' ? state('writable', 'good') : state(storage.state, 'bad')
  return [
    ['disk', free === null ? disk : [disk, { ...size(free), note: 'free' }]],
    ['views', viewsOf(call, status)],
    ['bundles', [...bundlesOf(call, status), ...pageOf(call, 'bundles')]],
    ...registryOf(call, status),
    ['fleet', [...fleetOf(call, status.fleet), ...pageOf(call, 'fleet')]],
    ['relay', [...relayOf(call, status), ...pageOf(call, 'relay')]],
    ['webhooks', [...webhooksOf(call, status), ...pageOf(call, 'webhooks')]],
    ['running for', plain(uptimeSeconds === null ? null : span(uptimeSeconds))],
  ]
}

/** Leads to the page of a part, for those who may read it. */
function pageOf({ ui, signedIn }: PageCall, path: 'bundles' | 'fleet' | 'relay' | 'webhooks'): Cell[] {
  return signedIn ? [link('more', ui(path))] : []
}

const VIEWS: Readonly<Record<string, Tone>> = { current: 'good', behind: 'warn', none: 'warn' }

function viewsOf({ now, signedIn }: PageCall, { views = [] }: Status): Cell[] {
  if (views.length === 0) return [plain('off (views.serve)')]
  return views.flatMap(({ kind, state: is, madeAt, making, failing, unread }) => {
    const missing = unread ? `, ${describeUnread(unread)}` : ''
    const words = `${kind}: ${is}${making ? ', being built' : ''}${failing ? ', failing' : ''}${missing}`
    const tone = failing ? 'bad' : (VIEWS[is] ?? 'plain')
    return [state(signedIn ? words : withoutCommand(words), tone), ...(madeAt === null ? [] : [time(madeAt, now)])]
  })
}

function bundlesOf({ now, reads }: PageCall, { bundle, boxes }: Status): Cell[] {
  const cells: Cell[] = []
  const [exported] = reads.ledger.listNewestExports(Number.MAX_SAFE_INTEGER, 1)
  if (exported !== undefined) cells.push(plain(`exported: state ${exported.sequence}`), time(exported.exportedAt, now))
  if (bundle !== null) {
    cells.push(plain(`imported: ${bundle.kind} ${bundle.sequence}`), time(bundle.importedAt, now))
  }
  const { outbox = null, inbox = null } = boxes ?? {}
  if (outbox !== null) {
    const words =
      outbox.last === null
        ? 'outbox: none written since the start'
        : `outbox: ${outbox.last.kind} ${outbox.last.sequence}`
    cells.push(outbox.problem === null ? plain(words) : state(`outbox: ${outbox.problem}`, 'bad'))
  }
  if (inbox !== null) {
    const words = `inbox: ${inbox.imported} imported, ${inbox.refused} refused, ${inbox.waiting.length} waiting`
    cells.push(inbox.problem === null ? plain(words) : state(`inbox: ${inbox.problem}`, 'bad'))
  }
  return cells.length === 0 ? [plain('none exported or imported')] : cells
}

/** Its name is for those with a key, as the catalog is. */
function registryOf({ config, now, signedIn }: PageCall, { registry }: Status): FactsBlock['rows'] {
  if (registry === undefined) return []
  const name = signedIn && config.images.registry !== null ? `${config.images.registry}: ` : ''
  const said = clip(`${name}${registryWords(registry)}`)
  const { there, images, problem, incomplete, checkedAt } = registry
  if (!isRegistryAsked(registry)) return [['registry', [state(said, problem === null ? 'plain' : 'warn')]]]
  const isWhole = there === images && problem === null && incomplete === null && checkedAt !== null
  const words = state(said, isWhole ? 'good' : 'warn')
  const checked = checkedAt === null ? plain('not checked to the end yet') : time(checkedAt, now)
  return [['registry', [words, checked]]]
}

function fleetOf({ now, signedIn }: PageCall, fleet: Status['fleet']): Cell[] {
  if (fleet === undefined) return [plain('in none (fleet.url)')]
  const { leads, leader, epoch, served, seen, lagSeconds, publishedAt, failing } = fleet
  const who = leads ? `leads, epoch ${epoch}` : `follows ${leader?.name ?? 'no leader'}`
  const isBehind = lagSeconds === null || lagSeconds > 0
  const what = served === 0 ? 'no generation served yet' : `generation ${served} of ${seen}`
  return [
    plain(clip(`${fleet.name} (${fleet.role}): ${who}`)),
    state(what, isBehind ? 'warn' : 'good'),
    ...(publishedAt === null ? [] : [time(publishedAt, now)]),
    ...(fleet.paused ? [state(signedIn ? FLEET_PAUSED : withoutCommand(FLEET_PAUSED), 'warn')] : []),
    ...(failing === null ? [] : [state(clip(failing.message), 'bad')]),
  ]
}

function relayOf({ config }: PageCall, { relay }: Status): Cell[] {
  if (relay.length === 0) return [plain(whyNoTargets(config))]
  return relay.map((one) => {
    const { state: is, pending } = one
    return state(clip(`${nameOfTarget(one)}: ${is}, ${pending} waiting`), is === 'ok' ? 'good' : 'bad')
  })
}

function webhooksOf({ now, config }: PageCall, { webhooks }: Status): Cell[] {
  if (webhooks === undefined) return [plain(NOT_KNOWN)]
  if (webhooks.state === 'off') return [plain(whyOff(config))]
  const { counts, lastReceivedAt } = webhooks
  const words = counts === null ? 'on' : `on: ${counts.pending} pending, ${counts.done} done, ${counts.dead} given up`
  const last = lastReceivedAt === null ? plain('none is stored') : time(lastReceivedAt, now)
  return [state(words, counts !== null && counts.dead > 0 ? 'warn' : 'good'), last]
}

/** Days that the chart of changes shows. */
const DAYS = 30

/** Size of the drawing, in its own units. */
const WIDTH = DAYS * 10
const HEIGHT = 40
const BAR = 8

/** Returns the chart of names changed on each of the last days, from the change log of all sources. */
function changesChart({ reads, now }: PageCall): ChartBlock {
  const today = Math.floor(now / DAY_MS)
  const first = today - DAYS + 1
  const byDay = new Map(reads.changes.countByDay(first * DAY_MS).map(({ day, names }) => [day, names]))
  const days = Array.from({ length: DAYS }, (_, at) => ({
    day: first + at,
    names: byDay.get(first + at) ?? 0,
  }))
  const most = Math.max(1, ...days.map(({ names }) => names))
  const total = days.reduce((sum, { names }) => sum + names, 0)
  const bars = days.map(({ day, names }, at) => {
    const height = names === 0 ? 0 : Math.max(1, Math.round((names / most) * HEIGHT * 10) / 10)
    const label = `${dateOf(day)}: ${grouped(names)}`
    return { x: at * 10 + 1, y: HEIGHT - height, height, label }
  })
  const busiest = `${grouped(most)} on the busiest day`
  return {
    kind: 'chart',
    title: 'Changes per day',
    text: `${grouped(total)} ${nounOf(total, 'change')} in ${DAYS} days, ${busiest}`,
    empty: `No counted changes in ${DAYS} days.`,
    bars,
    width: WIDTH,
    height: HEIGHT,
    barWidth: BAR,
    from: dateOf(first),
    to: dateOf(today),
  }
}

function dateOf(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10)
}
