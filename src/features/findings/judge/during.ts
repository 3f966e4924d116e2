import { MirrorError } from '../../../base/errors.ts'
import type { FindingsStore } from '../../../store/findings/writes.ts'
import type { Reads } from '../../../store/reads.ts'
import { isBack } from '../../../store/runs/rollback.ts'
import type { VexReader } from '../../../store/catalog/vex.ts'

/** Reads of one snapshot of the store; what is read by a digest may be another. */
export type DuringReads = <T>(work: (reads: Reads, vex: VexReader) => T) => T

/** Returns the snapshot of the catalog; null where there is none. */
export function catalogOf({ snapshots }: Pick<Reads, 'snapshots'>): string | null {
  return snapshots.readSnapshot('catalog')?.id ?? null
}

/** Throws `locked` where the catalog is another than the one that the tags are brought to. */
export function expectCatalog(reads: Pick<Reads, 'snapshots'>, catalog: string): void {
  if (catalogOf(reads) !== catalog) throw new MirrorError('locked', 'the catalog was replaced meanwhile')
}

/** Upstream's date of the catalog, Unix milliseconds, and whether the tags were judged by newer data than it has. */
export interface CatalogAge {
  readonly asOf: number
  readonly isBack: boolean
}

/** Returns the age of the catalog that the tags are brought to. Throws `locked` where it was replaced meanwhile. */
export function ageOfCatalog(
  store: Pick<FindingsStore, 'readState' | 'readFollowed'>,
  reads: Pick<Reads, 'snapshots' | 'runs'>,
  snapshot: string,
): CatalogAge {
  expectCatalog(reads, snapshot)
  const asOf = reads.snapshots.readSnapshot('catalog')?.asOf ?? 0
  const judged = store.readState()?.catalog ?? null
  const date = store.readFollowed('catalogAsOf')
  const from = judged === null ? null : { snapshot: judged, asOf: date === null ? null : Number(date) }
  return { asOf, isBack: from !== null && isBack(reads, 'catalog', from, { snapshot, asOf }) }
}
