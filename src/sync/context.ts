import type { Config } from '../config/schema.ts'
import type { EventTarget } from '../base/domain/image-reference.ts'
import type { RunProgress } from '../base/reports/runs.ts'
import type { SourceName } from '../base/domain/sources.ts'
import type { CatalogDamage } from '../store/catalog/repair.ts'
import type { Quarantine } from '../store/runs/quarantine.ts'
import type { RunFacts, RunKind, RunOutcome, RunTrigger } from '../store/runs/runs.ts'
import type { Writes } from '../store/writes.ts'
import type { Session } from '../upstream/http/session.ts'
import type { Upstream } from '../upstream/surfaces.ts'

/** Progress of one phase of a source's run. */
export interface Progress extends RunProgress {
  readonly source: SourceName
}

/** Limits of a run where they are others than usual; the usual ones are constants beside the code that uses them. */
export interface RunLimits {
  /** Rows of the run log for each source. */
  readonly keepRuns?: number
  /** Single records that a run fetches to settle what an archive contradicts, or in its place. */
  readonly singleFetches?: number
  /** Pages of one list of the catalog. */
  readonly listPages?: number
  /** Bytes of one document, inflated. */
  readonly artifactBytes?: number
}

/** The dependencies and parameters of one source's run, including the clock. */
export interface SyncContext {
  source: SourceName
  config: Config
  store: Writes
  session: Session
  runId: number
  kind: RunKind
  /** Ignores stored validators and digests and compares everything again. */
  full: boolean
  /** Compares and reports only; stores nothing. */
  dryRun: boolean
  /** Ids of records whose stored bytes are damaged: fetched again even when their checksums match. */
  suspectIds: ReadonlySet<string>
  /** Images and tags that webhook events name; used by the catalog only. */
  targets: readonly EventTarget[]
  limits: RunLimits
  now: () => number
  progress: (progress: Progress) => void
  /** Facts of the run row, added during the run, so that a failed run still reports what it found. */
  facts: RunFacts
}

/** Outcome of a source's run that did not throw. */
export interface SyncResult {
  outcome: RunOutcome
  /** Upstream's date of its confirmation of the stored state, unix milliseconds; null when it did not confirm it. */
  asOf: number | null
  message: string
}

/** A request for one run: the source, the kind of run and what triggered it. */
export interface RunRequest {
  source: SourceName
  kind: RunKind
  trigger: RunTrigger
  full?: boolean
  dryRun?: boolean
  /**
   * Images and tags that webhook events name: fetched again even if no list entry changed. Used by the catalog only.
   */
  targets?: readonly EventTarget[]
  /** The quarantined change that the operator approved; `kind` is then `approve`. */
  approved?: Quarantine
  /** Ids of records whose stored bytes are damaged: fetched again even when their checksums match. */
  suspectIds?: readonly string[]
  /** What of the catalog is damaged: the run fetches it again. */
  damaged?: CatalogDamage
}

/** Dependencies of a runner; `signal` aborts the current run. */
export interface RunnerDeps {
  config: Config
  store: Writes
  /** Returns the connection to the service; is called with each run. */
  upstream: () => Upstream | Promise<Upstream>
  now: () => number
  signal: AbortSignal
  limits?: RunLimits
  onProgress?: (progress: Progress) => void
}
