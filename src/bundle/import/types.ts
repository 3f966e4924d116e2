import type { Config } from '../../config/schema.ts'
import type { OnProgress } from '../../domain/progress.ts'
import type { SourceName } from '../../domain/sources.ts'
import type { RowKind } from '../../store/replication/rows.ts'
import type { RunTrigger } from '../../store/runs/runs.ts'
import type { Writes } from '../../store/writer.ts'
import type { Bundle } from './open.ts'

/** What an import changes of a kind of rows. */
export interface RowCounts {
  put: number
  removed: number
}

/** What an import works with. */
export interface ImportOptions {
  config: Pick<Config, 'data'>
  store: Writes
  bundle: Bundle
  /** The bundle's name, for the ledger. */
  file: string
  trigger: RunTrigger
  now: () => number
  /** Say what would change, store nothing. */
  dryRun?: boolean
  /** Apply also what is older than what is held; the ledger says so then. */
  allowRollback?: boolean
  /** Write everything anew, also what is held as the bundle has it: what a disk damaged. Of a full bundle only. */
  again?: boolean
  progress?: OnProgress
}

/** What an import did to one source. */
export interface SourceReport {
  source: SourceName
  /** Snapshot ids; null: nothing was held. */
  before: string | null
  after: string
  /** Upstream's date, ISO 8601. */
  asOf: string
  records: number
  /** Rows by kind; only kinds that changed. */
  changed: Partial<Record<RowKind, RowCounts>>
}

/** What an import came to. */
export interface ImportReport {
  /** `same`: all of it was held already. `dry run`: this would be applied. */
  outcome: 'applied' | 'same' | 'dry run'
  dryRun: boolean
  /** `same`, and it has a later date or a higher number than what was imported last: that was written down. */
  renewed: boolean
  mirror: string
  sequence: number
  kind: 'full' | 'delta'
  /** Of the bundle's sources together. */
  digest: string
  /** Of all that the mirror holds with it: what `patchmirror digest` prints there. */
  held: string
  /** The trusted key that signed it; null: unsigned. */
  key: string | null
  rollback: boolean
  sources: SourceReport[]
}
