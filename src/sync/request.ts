import type { Config } from '../config/schema.ts'
import type { EventTarget } from '../event-target.ts'
import type { Quarantine } from '../store/quarantine.ts'
import type { RunKind, RunTrigger, SourceName } from '../store/runs.ts'
import type { Writes } from '../store/writes.ts'
import type { Upstream } from '../upstream/surfaces.ts'
import type { Progress } from './context.ts'

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
