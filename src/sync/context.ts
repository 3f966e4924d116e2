import type { Config } from '../config/schema.ts'
import type { EventTarget } from '../domain/image-reference.ts'
import type { SourceName } from '../domain/sources.ts'
import type { Quarantine } from '../store/runs/quarantine.ts'
import type { RunFacts, RunKind, RunOutcome, RunTrigger } from '../store/runs/runs.ts'
import type { Writes } from '../store/writer.ts'
import type { Session } from '../upstream/http/session.ts'
import type { Upstream } from '../upstream/surfaces.ts'

/** How far a run is. `total` null: unknown. */
export interface Progress {
  source: SourceName
  phase:
    'index' | 'archive' | 'ranges' | 'records' | 'ingest' | 'publish' | 'feeds' | 'lists' | 'items'
  unit: 'bytes' | 'records' | 'documents' | 'items'
  done: number
  total: number | null
}

/** What a source's policy works with. Everything it needs comes in here, the clock too. */
export interface SyncContext {
  source: SourceName
  config: Config
  store: Writes
  session: Session
  runId: number
  kind: RunKind
  /** Ignore what is known of upstream and compare everything anew. */
  full: boolean
  /** Look and report, store nothing. */
  dryRun: boolean
  /** Ids whose stored bytes are damaged: taken anew whatever their checksums say. */
  doubted: ReadonlySet<string>
  /** What events name, for the catalog. */
  targets: readonly EventTarget[]
  now: () => number
  progress: (progress: Progress) => void
  /** Facts for the run row; filled as the run goes, so that a failed run tells what it knew. */
  facts: RunFacts
}

/** How a source's run ended, when it did not throw. */
export interface SyncResult {
  outcome: RunOutcome
  /** Upstream's clock when it confirmed what is held now; null when it did not. */
  asOf: number | null
  message: string
}

/** Which source to run, in what way, and who asked. */
export interface RunRequest {
  source: SourceName
  kind: RunKind
  trigger: RunTrigger
  full?: boolean
  dryRun?: boolean
  /** What events name: it is looked for again though nothing in the lists says that it moved. For the catalog. */
  targets?: readonly EventTarget[]
  /** The quarantined run that someone approved; `kind` is then `approve`. */
  approved?: Quarantine
  /** Ids whose stored bytes are not to be believed: fetched again whatever their checksums say. */
  distrust?: readonly string[]
}

/** What a runner works with; `signal` ends the run in flight. */
export interface RunnerDeps {
  config: Config
  store: Writes
  upstream: Upstream
  now: () => number
  signal: AbortSignal
  onProgress?: (progress: Progress) => void
}
