import { counted } from '../../core/text.ts'
import { closing, doubtsHere, withReads } from '../store-access.ts'
import type { BundleStatus } from '../../api/status/bundles.ts'
import { type Status, buildStatus } from '../../api/status/report.ts'
import { maySync, servedSources } from '../../domain/sources.ts'
import type { Config } from '../../config/schema.ts'
import { MirrorError } from '../../core/errors.ts'
import { openInboxReader } from '../../store/database/open.ts'
import { whyUnread } from '../../store/database/older-folder.ts'
import { type RelayTarget, createOutboxReads } from '../../store/webhooks/outbox.ts'
import { isLocked, servingDaemon } from '../../store/database/lock.ts'
import { judgedWords, whyNoTags } from '../../store/findings/words.ts'
import { probeStorage } from '../../store/disk-state.ts'
import { VERSION } from '../../core/version.ts'
import { daemonUrl, statusOfDaemon, withTakenPort } from '../daemon-client.ts'
import { type GlobalOptions, firstStep, print, settings } from '../context.ts'
import { codeWithoutData, describeOld, parseMaxAge, statusCode } from './status-code.ts'
import { describeRefusals } from './runs.ts'
import { describeWebhooks, readWebhooks } from './status-webhooks.ts'
import { describeFleet } from '../fleet/describe.ts'
import { watch } from './watch.ts'
import { duration, timeOf, table } from '../output.ts'
import { describeOsvScope } from '../../domain/osv-scope.ts'
import { describeRunProgress } from '../../domain/progress.ts'
import { type ViewsStatus, describeUnread } from '../../domain/status.ts'

/** Options of `patchmirror status`. */
interface StatusCommandOptions extends GlobalOptions {
  json?: boolean
  /** Such as `26h`: exit 3 when a source is older. */
  maxAge?: string
  watch?: boolean
}

/** `patchmirror status`: the daemon's own report when one runs, else the same from the data folder. */
export async function statusCommand(options: StatusCommandOptions): Promise<number> {
  const { config } = settings(options, false)
  const maxAgeHours = options.maxAge === undefined ? null : parseMaxAge(options.maxAge)
  const isJson = options.json === true
  const show = async (): Promise<number> =>
    showStatus(config, { isJson, indent: options.watch === true ? 0 : 2, maxAgeHours })
  return options.watch === true
    ? watch(show)
    : show().catch((error: unknown) => codeWithoutData(error, config))
}

interface Shown {
  readonly isJson: boolean
  /** Of the JSON; 0 writes each report on one line. */
  readonly indent: number
  /** Limit of `--max-age`; null: none. */
  readonly maxAgeHours: number | null
}

/** Prints the status once; returns the exit code. */
async function showStatus(config: Config, shown: Shown): Promise<number> {
  const { status, from } = await gatherStatus(config)
  if (status === null)
    throw whyUnread(
      config.data.dir,
      `nothing is mirrored yet in ${config.data.dir}: ${firstStep(config)}`,
    )
  if (shown.isJson) print(JSON.stringify(status, null, shown.indent))
  else printReport(config, status, from)
  return statusCode(status, config, shown.maxAgeHours)
}

/** Prints the report for people. `from`: where it was read, `stranger` when another data folder's daemon answered. */
function printReport(config: Config, status: Status, from: GatheredStatus['from']): void {
  print(tableOf(status))
  for (const { name, progress } of status.sources)
    if (progress) print(`${name}: the run in progress is ${describeRunProgress(progress)}`)
  for (const line of [...describeCompared(status, config, from), ...describeOld(status, config), ...doubtsHere(config)]) print(line) // prettier-ignore
  for (const { name, scope } of status.sources)
    if (scope) print(`${name}: only records in scope are mirrored (${describeOsvScope(scope)})`)
  for (const { name, unsynced } of status.sources) if (unsynced) print(`${name}: ${unsynced}`)
  if (status.bundle !== null) print(`\n${describeBundle(status.bundle)}`)
  for (const line of describeBoxes(status)) print(line)
  if (status.fleet !== undefined) for (const line of describeFleet(status.fleet)) print(line)
  for (const line of (status.views ?? []).map(describeViews)) print(line)
  const judgedLine = describeFindings(config, status)
  if (judgedLine !== null) print(judgedLine)
  if (status.webhooks?.state === 'on') print(`\n${describeWebhooks(status.webhooks)}`)
  const who =
    from === 'stranger' ? 'the mirror of another data folder answers' : 'no daemon answers'
  const { server } = withTakenPort(config)
  const isUnknown = server.port === 0 && server.socket === null
  const where = isUnknown
    ? '\nno daemon serves the data folder; read from it'
    : `\n${who} on ${daemonUrl(server)}; read from the data folder`
  print(from === 'daemon' ? '' : where)
  for (const { id, state, since, pending } of status.relay.filter(({ state }) => state !== 'ok')) {
    const when = since === null ? '' : ` since ${timeOf(Date.parse(since))}`
    print(`relay target ${id} is ${state}${when}, ${pending} waiting\n  patchmirror relay status`)
  }
  for (const line of describeRefusals(config, status)) print(line)
  if (status.storage.state !== 'ok') print(`storage: ${status.storage.reason ?? 'failing'}`)
}

/** A report, and where it is from. */
interface GatheredStatus {
  /** Null when nothing is stored. */
  readonly status: Status | null
  /** `stranger`: the daemon of another data folder answered, so it was read from the data folder. */
  readonly from: 'daemon' | 'folder' | 'stranger'
}

/** Returns the daemon's own report when one runs, else the same from the data folder. Throws `corrupt`, `schema`, `storage`. */
export async function gatherStatus(config: Config): Promise<GatheredStatus> {
  const answered = await statusOfDaemon(config)
  const own = readOwnStatus(config)
  if (answered === null) return { status: own, from: 'folder' }
  const { dir } = config.data
  const serving = servingDaemon(dir)?.instance ?? null
  const isOther = serving === null ? !isLocked(dir, 'serve') : serving !== answered.instance
  if (isOther) return { status: own, from: 'stranger' }
  return { status: withOwnRuns(answered, own), from: 'daemon' }
}

/** Returns the daemon's report with the messages of runs from the data folder: the daemon leaves private ones out. */
function withOwnRuns(asked: Status, own: Status | null): Status {
  const sources = asked.sources.map((source) => {
    const same = own?.sources.find(({ name }) => name === source.name)
    if (same === undefined || same.lastRun?.id !== source.lastRun?.id) return source
    const { lastRun, partialLists } = same
    return { ...source, lastRun, partialLists }
  })
  return { ...asked, sources }
}

/** Reads the report from the data folder; null when there is none. */
function readOwnStatus(config: Config): Status | null {
  const { data } = config
  return withReads(data.dir, (reads) => {
    const webhooks = readWebhooks(config, reads)
    const status = buildStatus({
      reads,
      active: servedSources(config, (source) => reads.snapshots.readSnapshot(source) !== null),
      version: VERSION,
      config,
      startedAt: null,
      now: Date.now,
      nextRunAt: () => null,
      storage: () => probeStorage(data.dir, false),
      relayTargets: () => readTargets(data.dir),
    })
    return webhooks === null ? status : { ...status, webhooks }
  })
}

/** None when the file is damaged: that ends no report on everything else. */
function readTargets(dataDir: string): RelayTarget[] {
  try {
    const db = openInboxReader(dataDir)
    return db === null ? [] : closing(db, () => createOutboxReads(db).listTargets())
  } catch (error) {
    if (error instanceof MirrorError) return []
    throw error
  }
}

/**
 * A sync goes by the stamps of the index: when more than these was compared is another date. Nothing is said where this mirror
 * has no upstream to compare with, as a daemon that schedules no runs (`serve --offline`).
 */
export function describeCompared(
  { sources }: Status,
  config: Config,
  from: GatheredStatus['from'],
): string[] {
  const osv = sources.find(({ name, snapshot }) => name === 'osv' && snapshot !== null)
  if (osv === undefined) return []
  const at = osv.comparedAt ?? null // an earlier version does not return it
  const isScheduled = from !== 'daemon' || osv.nextRunAt !== null
  if (at === null && !(maySync(config) && isScheduled)) return []
  return [
    at === null
      ? `osv: contents not compared with upstream's yet: the next reconcile does that (osv.reconcileSchedule, or "patchmirror sync osv --reconcile")`
      : `osv: contents last compared with upstream's (reconcile) on ${timeOf(Date.parse(at))}`,
  ]
}

function describeBundle({ sequence, kind, mirror, key, asOf, ...rest }: BundleStatus): string {
  const by = key === null ? 'UNSIGNED' : `signed by ${key}`
  const when = timeOf(Date.parse(rest.importedAt))
  const back = rest.rollback ? ', a rollback' : ''
  return `last import: bundle ${sequence} (${kind}) of mirror ${mirror}, ${by}, as of ${asOf}, on ${when}${back}`
}

function describeBoxes({ boxes }: Status): string[] {
  const lines: string[] = []
  const { outbox, inbox } = boxes ?? { outbox: null, inbox: null }
  const last = outbox?.last ?? null
  if (last !== null) {
    const { kind, sequence, at } = last
    lines.push(`outbox: bundle ${sequence} (${kind}) on ${timeOf(Date.parse(at))}`)
  }
  if (outbox !== null && outbox.problem !== null)
    lines.push(`outbox: the last export failed: ${outbox.reason ?? outbox.problem}`)
  if (inbox === null) return lines
  const { waiting, imported, superseded, refused, lastRefused, problem } = inbox
  lines.push(`inbox: ${imported} imported, ${superseded} superseded, ${refused} refused`)
  if (lastRefused !== null) {
    const { file, at, why } = lastRefused
    lines.push(`inbox: ${file} was refused on ${timeOf(Date.parse(at))}: ${why}`)
  }
  if (problem !== null) lines.push(`inbox: it cannot be looked into: ${problem}`)
  return [...lines, ...waiting.map(({ file, why }) => `inbox: ${file}: ${why}`)]
}

/** An age that is not known is explained below the table. */
function ageCell({ asOf, ageSeconds }: Status['sources'][number]): string {
  if (asOf === null) return '-'
  return ageSeconds === null ? 'unknown' : duration(ageSeconds)
}

function tableOf({ sources }: Status): string {
  const rows = sources.map((source) => [
    source.name,
    source.state,
    String(source.records),
    source.snapshot?.slice(0, 12) ?? '-',
    source.asOf === null ? '-' : timeOf(Date.parse(source.asOf)),
    ageCell(source),
    source.nextRunAt === null ? '-' : timeOf(Date.parse(source.nextRunAt)),
    source.lastRun?.message ?? '',
  ])
  const head = ['source', 'state', 'records', 'snapshot', 'as of', 'age', 'next run', 'last run']
  return table(head, rows)
}

/** Returns a line on one kind of views, as `patchmirror status` prints it. */
export function describeViews({ kind, state, madeAt, odd, unread, ...is }: ViewsStatus): string {
  const parts = [
    state,
    ...(madeAt === null ? [] : [`made on ${timeOf(Date.parse(madeAt))}`]),
    ...(is.making ? ['being built'] : []),
    ...(is.failing ? ['the last try failed: see the log'] : []),
    ...(odd ? [`${counted(odd, 'record')} with an invalid package`] : []),
    ...(unread ? [describeUnread(unread)] : []),
  ]
  return `views of ${kind}: ${parts.join(', ')}`
}

/** Returns how far the SBOMs of the tags are judged, or why they are not; null where nothing is to be said. */
export function describeFindings(config: Config, status: Status): string | null {
  const { findings, sources, views = [] } = status
  const snapshotOf = (source: string) => sources.find(({ name }) => name === source)?.snapshot
  const off = whyNoTags(config)
  const line = (text: string): string => `findings of tags: ${text}`
  if (off !== null) return snapshotOf('catalog') ? line(`none: ${off}`) : null
  if (findings === undefined) return null
  const { state, tags, judged, judging, failing } = findings
  const more = `${judging ? ', being judged' : ''}${failing ? ', the last try failed: see the log' : ''}`
  if (state !== 'none') {
    const why = judged === 0 && tags > 0 ? ': "patchmirror findings --all" says why' : ''
    return line(`${state}, ${judgedWords({ tags, judged }, true)}${why}${more}`)
  }
  if (snapshotOf('catalog') === undefined) return line('none: this mirror has no catalog')
  const missing = [
    ...(snapshotOf('catalog') === null ? ['the catalog is not mirrored yet'] : []),
    ...(snapshotOf('osv') ? [] : ['no records are mirrored yet']),
    ...(views.some(({ kind, state: is }) => kind === 'osv' && is === 'none') ? ['the views of the records are not built yet'] : []), // prettier-ignore
  ]
  return line(`the tags are not judged yet${missing.length === 0 ? '' : `: ${missing.join(', ')}`}${more}`) // prettier-ignore
}
