import type { Config } from '../../../config/schema.ts'
import type { OnProgress } from '../../../base/domain/progress.ts'
import type { SourceName } from '../../../base/domain/sources.ts'
import type { RowKind } from '../../../store/replication/rows.ts'
import type { RunTrigger } from '../../../store/runs/runs.ts'
import type { Writes } from '../../../store/writes.ts'
import type { Bundle } from './open.ts'

/** Numbers of changed rows of one kind. */
export interface RowCounts {
  put: number
  removed: number
}

/** Options of an import. */
export interface ImportOptions {
  config: Pick<Config, 'data'>
  store: Writes
  bundle: Bundle
  /** The bundle's name, for the ledger. */
  file: string
  trigger: RunTrigger
  now: () => number
  /** Report what would change, store nothing. */
  dryRun?: boolean
  /** Also apply a bundle that is older than the stored data; the ledger records it. */
  allowRollback?: boolean
  /** Write everything again, also rows that equal the stored ones, to repair disk damage. Needs a full bundle. */
  again?: boolean
  progress?: OnProgress
}

/** The changes of one source. */
export interface SourceReport {
  source: SourceName
  /** Snapshot ids; null: nothing was stored. */
  before: string | null
  after: string
  /** Upstream's date, ISO 8601. */
  asOf: string
  records: number
  /** Rows by kind; only kinds that changed. */
  changed: Partial<Record<RowKind, RowCounts>>
}

/** The result of an import. */
export interface ImportReport {
  /** `same`: all of it was stored already. `dry run`: it would be applied. */
  outcome: 'applied' | 'same' | 'dry run'
  dryRun: boolean
  /** `same`, but with a later date or a higher sequence than the last import, which was recorded. */
  renewed: boolean
  mirror: string
  sequence: number
  kind: 'full' | 'delta'
  /** Combined digest of the bundle's sources. */
  digest: string
  /** Digest of everything that the mirror stores afterwards: what `patchmirror status --digest` prints there. */
  held: string
  /** The trusted signing key; null: unsigned. */
  key: string | null
  rollback: boolean
  /** Sources of which the mirror that made the bundle withheld a newer state. */
  withheld: SourceName[]
  sources: SourceReport[]
}
