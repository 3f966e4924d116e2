import type { Reads } from '../../../../store/reads.ts'

/** Another number when the same documents make another repository. */
export const VEX_RULES = '13'

/** Returns what the VEX repository depends on beside the snapshot of the catalog: its rules, and by which VEX is believed. */
export function vexBasis({ catalog }: Pick<Reads, 'catalog'>): string {
  return `${VEX_RULES} ${catalog.readVexMark()}`
}
