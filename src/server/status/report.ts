import type { Config } from '../../config/schema.ts'
import { toIsoOrNull, toIso } from '../../base/time.ts'
import { type SignatureCounts, signatureText } from '../../base/domain/artifacts/signature.ts'
import { parseScopeText } from '../../base/domain/osv-scope.ts'
import type { RunProgress } from '../../base/domain/progress.ts'
import { type SourceName, SOURCES, ageSecondsOf, whyUnsynced } from '../../base/domain/sources.ts'
import type { StorageState } from '../../store/disk-state.ts'
import { type LastVerification, readLastVerification } from '../../store/last-verification.ts'
import { type Reads, isOwnData } from '../../store/reads.ts'
import { contentDigestOf } from '../../store/replication/content.ts'
import { changedScopeText } from '../../store/runs/run-scope.ts'
import { findRejected, heldBack, messageNow } from '../../store/runs/rejected.ts'
import type { Run, RunState } from '../../store/runs/runs.ts'
import type { RelayTarget, TargetState } from '../../store/webhooks/outbox.ts'
import type {
  BoxesStatus,
  EdgeTargetStatus,
  FleetStatus,
  SourceSyncing,
  TagFindingsStatus,
  ViewsStatus,
  WebhooksReport,
} from '../../base/domain/status.ts'
import { type MissingParts, missingOf } from '../snapshot/missing.ts'
import { type BundleStatus, bundleStatus } from './bundles.ts'
import { type DoubtfulRun, doubtfulRunOf } from './doubts.ts'
import { type PartialLists, partialListsOf } from './partial-lists.ts'

/** State of a source: its latest run while that runs, else how its last run ended; `stopped` hides nothing that is wrong. */
export type SourceState = RunState | 'never'

/** A run as the report shows it; times in ISO 8601 UTC. */
export type RunSummary = Pick<Run, 'id' | 'kind' | 'state' | 'code' | 'message' | 'facts'> & {
  startedAt: string
  endedAt: string | null
}

/** One source in the report; times in ISO 8601 UTC. */
export interface SourceStatus extends PartialLists, SourceSyncing, MissingParts {
  name: SourceName
  state: SourceState
  /** Snapshot id, hex; null before the first. */
  snapshot: string | null
  records: number
  /** Digest of the snapshot's content, hex, equal on any mirror with this content; null: none, or not computed yet. */
  contentDigest: string | null
  /** The snapshot that readers get now; null where nothing is served. */
  served: string | null
  /** When the contents of all OSV records were last compared with upstream's (reconcile); null: never, or another source. */
  comparedAt: string | null
  /** The scope that the snapshot was made with, for OSV; null: everything that upstream lists, or another source. */
  scope: OsvScopeStatus | null
  /** Upstream's date of what is served. */
  asOf: string | null
  /** Null without data, and where its date is later than this machine's clock (`asOf`). */
  ageSeconds: number | null
  /** End of the last run that checked everything and was complete; null: none yet. */
  lastSuccessAt: string | null
  /** When a snapshot was last published that differs from the one before; null: none yet. */
  lastChangeAt: string | null
  /** Refused documents that wait for `approve` or `reject`. */
  openQuarantines: number
  /** The runs whose refused change waits for that; without a reason for those without a key. */
  waiting?: readonly WaitingRun[]
  /** A rejected change that upstream still offers; null: none. */
  rejected?: { readonly run: number; readonly effect: string } | null
  /** When the first of the failed runs began that are the last ones; null: the last run did not fail. */
  failingSince?: string | null
  /** What was published and should not be believed; null: nothing, or it is acknowledged. */
  doubtful?: DoubtfulRun | null
  /** What the signatures of the stored artifacts came to; null: they are not verified, or another source. */
  signatures?: SignatureStatus | null
  lastRun: RunSummary | null
  /** How far its run is, where this daemon runs it; null: no run, one of another process, or nothing is known yet. */
  progress?: RunProgress | null
  nextRunAt: string | null
}

/** Numbers of artifacts by what their signatures came to, and the first that are not verified. */
interface SignatureStatus extends SignatureCounts {
  /** Whether what is not verified is not believed. */
  readonly enforced: boolean
  readonly unverified: readonly { readonly path: string; readonly reason: string }[]
}

/** A run whose refused change waits for a decision. */
interface WaitingRun {
  readonly run: number
  readonly reason: string | null
}

/** A scope of the OSV source; records that are out of it are not stored, and do not count as missing. */
interface OsvScopeStatus {
  readonly include: readonly string[]
  readonly exclude: readonly string[]
}

/** A target of the relay in the report; times in ISO 8601 UTC. */
interface RelayStatus {
  id: number
  /** Scheme and host alone: the rest of a URL may be a token. Null for those without a key. */
  target: string | null
  state: TargetState
  /** Since when it fails, or is disabled. */
  since: string | null
  /** Of the last failure, which may be long over; null for those without a key. */
  reason: string | null
  failedAt: string | null
  deliveredAt: string | null
  pending: number
  givenUp: number
}

/** The report on the whole mirror. */
export interface Status {
  version: string
  /** Id of the running daemon, another one after each start; null when the report does not come from one. */
  instance: string | null
  /** Null when the report does not come from a running server. */
  uptimeSeconds: number | null
  sources: SourceStatus[]
  /** The content digests of all sources with a snapshot in one; null while one of them is null. */
  contentDigest: string | null
  /** Whether the data folder can be written to. */
  storage: StorageState
  /** Targets of the relay; empty when nothing is passed on. */
  relay: RelayStatus[]
  /** The bundle that was imported last; null: none ever was. */
  bundle: BundleStatus | null
  /** The last verification of all that is stored; null: none is known. */
  verified?: VerifiedStatus | null
  /** State of webhooks, where a daemon receives them. */
  webhooks?: WebhooksReport
  /** What scanners read, where a daemon makes it. */
  views?: readonly ViewsStatus[]
  /** How far the SBOMs of the mirrored tags are judged, where a daemon does it. */
  findings?: TagFindingsStatus
  /** Outbox and inbox, where a daemon has any. */
  boxes?: BoxesStatus
  /** Its part in a fleet, where it has one. */
  fleet?: FleetStatus
  /** Shared caches to purge, where the settings name any. */
  edge?: readonly EdgeTargetStatus[]
}

/** The last verification in the report. */
type VerifiedStatus = Omit<LastVerification, 'since'>

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
  /** Targets of the relay; none when not given. */
  readonly relayTargets?: () => readonly RelayTarget[]
}

/** The state of the mirror, from the run log and the snapshots; the same for HTTP and for the command line. */
export function buildStatus(options: StatusOptions): Status {
  const { version, startedAt, now } = options
  return {
    version,
    instance: options.instance ?? null,
    uptimeSeconds: startedAt === null ? null : Math.max(0, Math.floor((now() - startedAt) / 1000)),
    sources: SOURCES.filter((source) => isShown(source, options)).map((source) => sourceStatus(source, options)),
    contentDigest: contentDigestOf(options.reads.snapshots).digest,
    storage: options.storage?.() ?? { state: 'ok', reason: null, freeBytes: null },
    relay: (options.relayTargets?.() ?? []).map(relayStatus),
    bundle: bundleStatus(options.reads.ledger.readLastImport()),
    verified: verifiedStatus(options.config.data.dir),
  }
}

function verifiedStatus(dataDir: string): VerifiedStatus | null {
  const last = readLastVerification(dataDir)
  if (last === null || last.endedAt === null) return null
  const { since: _, ...shown } = last
  return shown
}

/** The report where the database cannot be read: only what needs none of it. Nothing is claimed of the sources. */
export function unreadStatus({ version, instance, startedAt, now, storage }: StatusOptions): Status {
  return {
    version,
    instance: instance ?? null,
    uptimeSeconds: startedAt === null ? null : Math.max(0, Math.floor((now() - startedAt) / 1000)),
    sources: [],
    contentDigest: null,
    storage: storage?.() ?? { state: 'damaged', reason: null, freeBytes: null },
    relay: [],
    bundle: null,
  }
}

/** A target as it may be shown. */
export function relayStatus(target: RelayTarget): RelayStatus {
  const { id, url, state, since, reason, failedAt, deliveredAt, pending, givenUp } = target
  return {
    id,
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
  const snapshot = reads.snapshots.readSnapshot(name)
  const asOf = snapshot === null ? null : reads.runs.readAsOf(name, snapshot)
  return {
    name,
    state: stateOf(latest, reads.runs.readResults(name), snapshot !== null),
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
  return open.map(({ runId, reason }) => ({ run: runId, reason }))
}

function rejectedOf(reads: Reads, name: SourceName): NonNullable<SourceStatus['rejected']> | null {
  const found = findRejected(reads, name)
  return found === null ? null : { run: found.runId, effect: heldBack(found) }
}

const WORST = ['failed', 'quarantined', 'partial'] as const

/**
 * A refresh looks at a part only, so that it ended well does not hide how the last run ended that looked at all. A run that was
 * stopped on request hides nothing that was wrong before it, nor that nothing is stored.
 */
function stateOf(latest: Run | null, results: readonly Run[], isStored: boolean): SourceState {
  if (latest?.state === 'running') return 'running'
  const wrong = WORST.find((state) => results.some((run) => run.state === state))
  if (wrong !== undefined) return wrong
  if (results.length === 0 && !isStored) return 'never'
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
