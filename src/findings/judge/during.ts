import type { Reads } from '../../store/reads.ts'
import type { VexReader } from '../../store/views/vex.ts'

/** Reads of one snapshot of the store; what is read by a digest may be another. */
export type DuringReads = <T>(work: (reads: Reads, vex: VexReader) => T) => T

/** Returns the snapshot of the catalog; null where there is none. */
export function catalogOf({ snapshots }: Pick<Reads, 'snapshots'>): string | null {
  return snapshots.readSnapshot('catalog')?.id ?? null
}
