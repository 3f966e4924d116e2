import type { Reads } from '../../../store/reads.ts'
import { generationName } from './generation.ts'

/** Version of the rules. Increase it when equal rows give other views: then no generation updates an earlier one. */
const RULES = 12

/** The settings and rules that a generation depends on. */
export function folderForm(vendors: readonly string[]): string {
  return JSON.stringify([RULES, ...[...vendors].sort()])
}

/** Returns the name of the generation for the snapshot in `reads`; null before the first OSV snapshot. */
export function osvViewsName(reads: Pick<Reads, 'snapshots' | 'osv'>, vendors: readonly string[]): string | null {
  const snapshot = reads.snapshots.readSnapshot('osv')
  const archive = reads.osv.readArchive()
  if (snapshot === null || archive === null) return null
  const { sha256, changed } = archive
  return generationName('osv', [folderForm(vendors), snapshot.id, sha256, String(changed)])
}
