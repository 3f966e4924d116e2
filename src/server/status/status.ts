import type { Config } from '../../config/schema.ts'
import { toIsoOrNull, toIso } from '../../base/time.ts'
import { signatureText } from '../../base/domain/artifacts/signature.ts'
import { doubtNews, doubtedKinds } from '../../base/domain/doubts.ts'
import { parseScopeText } from '../../base/domain/osv-scope.ts'
import { ownsResource } from '../../base/domain/resources.ts'
import { type SourceName, SOURCES, ageSecondsOf, isPrivateSource, whyUnsynced } from '../../base/domain/sources.ts'
import type { RunProgress, RunSummary } from '../../base/reports/runs.ts'
import type {
  DoubtfulRun,
  OsvScopeStatus,
  SignatureStatus,
  SourceState,
  SourceStatus,
  WaitingRun,
} from '../../base/reports/sources.ts'
import type { Status } from '../../base/reports/status.ts'
import type { StorageState, VerifiedStatus } from '../../base/reports/storage.ts'
import type { BundleStatus, RelayStatus } from '../../base/reports/transfer.ts'
import { readLastVerification } from '../../store/notes.ts'
import { type Reads, isOwnData } from '../../store/reads.ts'
import { contentDigestOf } from '../../store/replication/content.ts'
import type { ImportedBundle } from '../../store/replication/ledger.ts'
import { changedScopeText } from '../../store/runs/run-scope.ts'
import { findDoubtful, findRejected, heldBack, messageNow } from '../../store/runs/rejected.ts'
import type { Run } from '../../store/runs/runs.ts'
import type { RelayTarget } from '../../store/webhooks/outbox.ts'
import { missingOf } from '../snapshot/missing.ts'

/** What the report is made from. */
export interface StatusOptions {
  readonly reads: Reads
  readonly version: string
  readonly config: Config
  /** Sources that the mirror answers for (`servedSources`). */
  readonly active: readonly SourceName[]
  /** Unix milliseconds, as `now` and `nextRunAt`; null without a server. */
  readonly startedAt: number | null
  readonly now: () => number
  readonly nextRunAt: (source: SourceName) => number | null
  /** Id of the snapshot of a source that is served now. */
  readonly servedId?: (source: SourceName) => string | null
  /** How far the run of a source is; not known when not given. */
  readonly progressOf?: (source: SourceName) => RunProgress | null
  /** Id of the running daemon. */
  readonly instance?: string
  /** Returns the state of the data folder; not checked when not given. */
  readonly storage?: () => StorageState
  /** Returns the files of secret settings that cannot be used any more, where a daemon follows them. */
  readonly secretFaults?: () => NonNullable<Status['secretFaults']>
  /** Targets of the relay, with their names in the settings; none when not given. */
  readonly relayTargets?: () => readonly Named<RelayTarget>[]
}

/** The state of the mirror, from the run log and the snapshots; the same for HTTP and for the command line. */
export function buildStatus(options: StatusOptions): Status {
  return {
    ...programStatus(options),
    sources: SOURCES.filter((source) => isShown(source, options)).map((source) => sourceStatus(source, options)),
    contentDigest: contentDigestOf(options.reads.snapshots).digest,
    storage: options.storage?.() ?? { state: 'ok', reason: null, freeBytes: null },
    relay: (options.relayTargets?.() ?? []).map(relayStatus),
    bundle: bundleStatus(options.reads.ledger.readLastImport()),
    verified: verifiedStatus(options.config.data.dir),
    ...(options.secretFaults && { secretFaults: options.secretFaults() }),
  }
}

function verifiedStatus(dataDir: string): VerifiedStatus | null {
  const last = readLastVerification(dataDir)
  if (last === null || last.endedAt === null) return null
  const { endedAt, damaged, damagedCount, healed } = last
  return { endedAt, damaged, damagedCount, healed }
}

/** The report where the database cannot be read: only what needs none of it. Nothing is claimed of the sources. */
export function unreadStatus(options: StatusOptions): Status {
  return {
    ...programStatus(options),
    sources: [],
    contentDigest: null,
    storage: options.storage?.() ?? { state: 'damaged', reason: null, freeBytes: null },
    relay: [],
    bundle: null,
  }
}

function programStatus({ version, instance, startedAt, now }: StatusOptions) {
  const uptimeSeconds = startedAt === null ? null : Math.max(0, Math.floor((now() - startedAt) / 1000))
  return { version, instance: instance ?? null, uptimeSeconds }
}

type Named<T> = T & Pick<RelayStatus, 'name'>

/** A target as it may be shown. */
export function relayStatus(target: Named<RelayTarget>): RelayStatus {
  const { id, name, url, state, since, reason, failedAt, deliveredAt, pending, givenUp } = target
  return {
    id,
    name,
    target: new URL(url).origin,
    state,
    reason,
    pending,
    givenUp,
    since: toIsoOrNull(since),
    failedAt: toIsoOrNull(failedAt),
    deliveredAt: toIsoOrNull(deliveredAt),
  }
}

/** Reports whether a source is shown: the settings name it, or data of it is stored. */
function isShown(source: SourceName, { active, reads }: StatusOptions): boolean {
  return active.includes(source) || reads.snapshots.readSnapshot(source) !== null
}

function sourceStatus(
  name: SourceName,
  { reads, now, nextRunAt, servedId, config, progressOf }: StatusOptions,
): SourceStatus {
  const latest = reads.runs.readLatestRun(name)
  const results = reads.runs.readResults(name)
  const wrong = worstOf(results)
  const snapshot = reads.snapshots.readSnapshot(name)
  const asOf = snapshot === null ? null : reads.runs.readAsOf(name, snapshot)
  return {
    name,
    state: stateOf(latest, { wrong, hasEnded: results.length > 0 }, snapshot !== null),
    snapshot: snapshot?.id ?? null,
    contentDigest: snapshot?.contentDigest ?? null,
    served: servedId?.(name) ?? null,
    comparedAt: toIsoOrNull(name === 'osv' ? reads.runs.readLastReconcile('osv') : null),
    scope: scopeStatus(snapshot?.scope ?? null),
    records: snapshot?.records ?? 0,
    asOf: toIsoOrNull(asOf),
    ageSeconds: asOf === null ? null : ageSecondsOf(asOf, now()),
    lastSuccessAt: toIsoOrNull(reads.runs.readLastSuccess(name)),
    lastChangeAt: toIsoOrNull(reads.changes.readLatestLogged(name)?.publishedAt ?? null),
    openQuarantines: reads.quarantine.countOpen(name),
    waiting: waitingOf(reads, name),
    rejected: rejectedOf(reads, name),
    failingSince: toIsoOrNull(reads.runs.readFailingSince(name)),
    doubtful: doubtfulRunOf(reads, name, now()),
    ...partialListsOf(name, reads),
    ...missingOf(reads, name),
    unsynced: whyUnsynced(config, name, (source) => isOwnData(reads, source)),
    scopeChanged: changedScopeText(reads.runs, config, name),
    signatures: name === 'catalog' ? signaturesOf(reads) : null,
    lastRun: latest === null ? null : summaryOf(latest, reads),
    wrongRun: wrong === undefined ? null : summaryOf(wrong, reads),
    progress: latest?.state === 'running' ? (progressOf?.(name) ?? null) : null,
    nextRunAt: toIsoOrNull(nextRunAt(name)),
  }
}

function scopeStatus(text: string | null): OsvScopeStatus | null {
  const settings = parseScopeText(text)
  return settings === null ? null : { include: settings.include, exclude: settings.exclude }
}

/** Artifacts that are named, at most. */
const UNVERIFIED = 20

function signaturesOf({ catalog }: Reads): SignatureStatus | null {
  const counts = catalog.countSignatures()
  if (counts === null) return null
  const rows = catalog.listUnverified(UNVERIFIED)
  const unverified = rows.map((row) => ({ path: row.path, reason: signatureText(row) }))
  return { ...counts, enforced: rows.some(({ isEnforced }) => isEnforced), unverified }
}

function waitingOf(reads: Reads, name: SourceName): WaitingRun[] {
  const open = reads.quarantine.listOpenQuarantines().filter(({ source }) => source === name)
  return open.map(({ runId, reason }) => {
    const begun = reads.runs.readRun(runId)?.startedAt ?? null
    return { run: runId, since: toIsoOrNull(begun), reason }
  })
}

function rejectedOf(reads: Reads, name: SourceName): SourceStatus['rejected'] {
  const found = findRejected(reads, name)
  return found === null ? null : { run: found.runId, effect: heldBack(found) }
}

const WORST = ['failed', 'quarantined', 'partial'] as const

type WrongRun = Run & { readonly state: (typeof WORST)[number] }

/** Returns the worst of the last results, if one of them is wrong. */
function worstOf(results: readonly Run[]): WrongRun | undefined {
  const wrong = WORST.flatMap((state) => results.filter((run): run is WrongRun => run.state === state))
  return wrong[0]
}

/**
 * A refresh looks at a part only, so that it ended well does not hide how the last run ended that looked at all. A run that was
 * stopped on request hides nothing that was wrong before it, nor that nothing is stored.
 */
function stateOf(
  latest: Run | null,
  { wrong, hasEnded }: { readonly wrong: WrongRun | undefined; readonly hasEnded: boolean },
  isStored: boolean,
): SourceState {
  if (latest?.state === 'running') return 'running'
  if (wrong !== undefined) return wrong.state
  if (!hasEnded && !isStored) return 'never'
  if (latest?.state === 'stopped') return 'stopped'
  return latest === null ? 'never' : 'complete'
}

function summaryOf({ id, kind, state, startedAt, endedAt, code, message, facts }: Run, reads: Reads): RunSummary {
  const started = toIso(startedAt)
  return {
    id,
    kind,
    state,
    startedAt: started,
    endedAt: toIsoOrNull(endedAt),
    code,
    message: messageNow(reads, message),
    facts,
  }
}

/** Lists of a source that are served and not known to be complete. */
type PartialLists = Pick<SourceStatus, 'partialLists' | 'partialListCount' | 'unprovedLists'>

/** Lists that the report names at most, and records of each kind of doubt. */
const NAMED = 20

/** Returns a source's lists that are not known to be complete, and those whose end is not proved. */
function partialListsOf(name: SourceName, reads: Pick<Reads, 'catalog'>): PartialLists {
  if (!isPrivateSource(name)) return { partialLists: [], partialListCount: 0, unprovedLists: [] }
  const isOwn = ({ resource }: { resource: string }): boolean => ownsResource(name, resource)
  const nameOf = ({ path, reason }: PartialLists['partialLists'][number]) => ({ path, reason })
  const partial = reads.catalog.listPartialLists().filter(isOwn)
  const unproved = reads.catalog.listUnprovedLists().filter(isOwn)
  return {
    partialLists: partial.slice(0, NAMED).map(nameOf),
    partialListCount: partial.length,
    unprovedLists: unproved.slice(0, NAMED).map(nameOf),
  }
}

/** Returns the doubtful run of a source that is to be looked at; null: there is none. */
function doubtfulRunOf(reads: Reads, source: SourceName, now: number): DoubtfulRun | null {
  const found = findDoubtful(reads, source, now)
  if (found === null) return null
  const { id, snapshot, startedAt, endedAt, message } = found
  const stored = snapshot === null ? null : reads.changes.readDoubtsOf(source, snapshot)
  const kinds = stored?.run === id ? doubtedKinds(stored.doubted, stored.counts) : []
  const counts = kinds.map(([kind, ids]) => [kind, stored?.counts?.[kind] ?? ids.length] as const)
  const at = toIso(endedAt ?? startedAt)
  return {
    run: id,
    snapshot,
    at,
    message,
    words: doubtNews(counts, at),
    kinds: kinds.map(([kind, ids], place) => {
      const named = isPrivateSource(source) ? [] : ids.slice(0, NAMED)
      return { kind, records: counts[place]?.[1] ?? 0, ids: named }
    }),
  }
}

/** Returns the report on the last imported bundle, without the name of its file, which is private. */
function bundleStatus(last: ImportedBundle | null): BundleStatus | null {
  if (last === null) return null
  const { mirror, sequence, kind, keyId: key, rollback } = last
  return {
    mirror,
    sequence,
    kind,
    key,
    rollback,
    asOf: toIso(last.asOf),
    createdAt: toIso(last.createdAt),
    importedAt: toIso(last.importedAt),
  }
}
