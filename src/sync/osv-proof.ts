import { createHash } from 'node:crypto'
import { MirrorError } from '../errors.ts'
import type { Reads } from '../store/pinned.ts'
import { OSV_INDEX } from '../upstream/osv.ts'
import type { SyncContext } from './context.ts'
import { rebuildLostArchive } from '../archive/build.ts'

type StoredRecords = Pick<
  Reads,
  'readSnapshot' | 'listDocuments' | 'readArchive' | 'countRecords' | 'countBodies'
>

/**
 * The proof of a run that changes nothing: what is held is still what was published, by count and by digest, and its
 * archive lies there (a lost one is rebuilt; a reconcile also reads it through, and mends it). Throws `proof` when something altered the database since.
 */
export async function proveStored({ store, config, dryRun, kind }: SyncContext): Promise<void> {
  const fault = faultOfStored(store)
  if (fault !== null) {
    throw new MirrorError(
      'proof',
      `upstream has nothing new, but ${fault}: run "patchmirror verify --repair"`,
    )
  }
  if (!dryRun) await rebuildLostArchive(store, config.data.dir, kind === 'reconcile')
}

/** Why index, records and archive held are not the published snapshot; null when they are, or none was published. */
export function faultOfStored(held: StoredRecords): string | null {
  const snapshot = held.readSnapshot('osv')
  const index = held.listDocuments('osv').find(({ path }) => path === OSV_INDEX)
  const archive = held.readArchive()
  const records = held.countRecords()
  if (snapshot === null) return records > 0 ? 'the records held were never published' : null
  if (index?.present !== true) return 'the index is lost'
  if (archive === null) return 'the archive is lost'
  if (records !== snapshot.records)
    return `${records} records are held where ${snapshot.records} were published`
  if (held.countBodies() !== records) return 'bytes of records are lost'
  const id = createHash('sha256').update(index.sha256).update(archive.sha256, 'hex').digest('hex')
  return id === snapshot.id ? null : 'index and archive are not the ones published'
}
