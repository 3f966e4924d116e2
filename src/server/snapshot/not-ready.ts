import { toIso } from '../../base/time.ts'
import { MirrorError } from '../../base/errors.ts'
import type { SourceName } from '../../base/domain/sources.ts'
import type { Config } from '../../config/schema.ts'
import { changedScope, describeChanged } from '../../store/runs/run-scope.ts'
import type { Reads } from '../../store/reads.ts'
import { refusedBy } from '../../store/runs/quarantine.ts'
import type { Run } from '../../store/runs/runs.ts'

/** The reads that explain why something is missing. */
type RunReads = Pick<Reads, 'runs' | 'ledger'>

/** The error for something of a source that is mirrored, but is not there yet, with the reason that its last run gave. */
export function notReady(reads: RunReads, source: SourceName, what: string): MirrorError {
  return new MirrorError('not_ready', `${what} is not mirrored yet: ${whyMissing(reads, source)}`)
}

/** The error for what the service has and the last run that tried could not fetch, with the reason that the run gave. */
export function notFetched(what: string, reason: string): MirrorError {
  return new MirrorError(
    'not_ready',
    `${what} is not mirrored yet: this mirror could not fetch it, and every sync tries again: ${reason}`,
  )
}

/** The error for what may be mirrored by the settings as they are, and was not by those of the last run: `changed` names them. */
export function notSynced(source: SourceName, what: string, changed: string): MirrorError {
  return new MirrorError(
    'not_ready',
    `${what} is not mirrored: ${changed} than this mirror has; whether it is in scope now is decided by the next run of this mirror ("patchmirror sync ${source}" runs it at once)`,
  )
}

/** Settings that may have brought something into scope, where a run used another value. */
const WIDENING = ['catalog.scope', 'catalog.patterns', 'osv.scope', 'feeds.extraPaths', 'upstream.catalogUrl']

/**
 * Returns the settings by which the next run may mirror what is not in scope of what is stored, in words; null: none, or such a
 * run was refused, so that its settings do not show what will be mirrored.
 */
export function scopeToCome({ runs }: Pick<Reads, 'runs'>, config: Config, source: SourceName): string | null {
  const changed = changedScope(runs, config, source)
  if (changed?.keys.some((key) => WIDENING.includes(key)) !== true) return null
  return runs.readLatestWholeRun(source)?.state === 'quarantined' ? null : describeChanged(changed)
}

/** The error for a document of the feeds that is not stored, though the settings or an earlier snapshot have it. */
export function missingFeed(reads: Reads, config: Config, source: SourceName, path: string): MirrorError {
  const changed = scopeToCome(reads, config, source)
  if (changed !== null) return notSynced(source, path, changed)
  const isImported = config.upstream.apiRoot === null && reads.ledger.readLastImport() !== null
  return isImported && reads.snapshots.readSnapshot(source) !== null
    ? new MirrorError(
        'not_found',
        `the bundle that was imported last does not have ${path}: the source mirror does not mirror it`,
      )
    : notReady(reads, source, path)
}

const MAX_MESSAGE = 400

/** Why nothing, or not everything, of a source is mirrored, and what to do: from its last runs. */
function whyMissing(reads: RunReads, source: SourceName): string {
  const latest = reads.runs.readLatestRun(source)
  const isRunning = latest?.state === 'running'
  // The process of a run without an end that does not run was killed.
  const isKilled = latest?.endedAt === null && !isRunning
  const ended = isKilled ? latest : reads.runs.readLatestWholeRun(source)
  if (ended !== null) return `${howItEnded(ended)}; ${isRunning ? 'another one is running' : whatToDo(ended)}`
  if (isRunning)
    return `the first ${wordOf(latest)} has been running since ${toIso(latest.startedAt)}: try again when it has ended`
  if (reads.ledger.readLastImport() !== null)
    return `no bundle that was imported has ${source}; "patchmirror bundle export FILE --sources ${source}" on the source mirror makes one that brings it`
  return neverRun(source)
}

function howItEnded(run: Run): string {
  const { state, startedAt, endedAt, message } = run
  const at = endedAt === null ? `, begun at ${toIso(startedAt)}` : ` at ${toIso(endedAt)}`
  const text = message ?? ''
  const cut = text.length > MAX_MESSAGE ? `${text.slice(0, MAX_MESSAGE)}…` : text
  return `the last ${wordOf(run)} (${state}${at}) did not have it${cut === '' ? '' : `: ${cut}`}`
}

function whatToDo(run: Run): string {
  const { id, state, source } = run
  const refused = refusedBy(run)
  if (state === 'quarantined') return `"patchmirror approve ${refused}" or "patchmirror reject ${refused}" decides`
  const again = run.kind === 'import' ? 'bundle import FILE' : `sync ${source}`
  return `"patchmirror ${again}" tries again, "patchmirror runs ${id}" shows that run`
}

function wordOf({ kind }: Run): string {
  return kind === 'import' ? 'import' : 'sync'
}

/** Names every way in: whether this mirror has an upstream, or belongs to a fleet, is not known from its data. */
function neverRun(source: SourceName): string {
  return (
    `no sync and no import of ${source} has run yet; "patchmirror sync ${source}" gets it now, a mirror of a fleet gets it from the ` +
    `mirror that leads ("patchmirror fleet status"), a disconnected mirror gets it from a full bundle: "patchmirror bundle export FILE --sources ${source}" on the source mirror, "patchmirror bundle import FILE" here`
  )
}
