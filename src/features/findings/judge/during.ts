import { MirrorError } from '../../../base/errors.ts'
import type { Reads } from '../../../store/reads.ts'
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
