import { refuseFullDisk, reserveFor } from '../../../../base/disk-space.ts'
import { manifestSources } from '../admission.ts'
import { eachMissing } from './staging.ts'
import type { ImportOptions } from '../types.ts'

/** Reserve beside the write-ahead log, for SQLite and the file system, bytes: least and most. */
const SLACK = [4 * 2 ** 20, 64 * 2 ** 20] as const

/** Where a bundle is imported. */
type SpaceOptions = Pick<ImportOptions, 'bundle' | 'store' | 'config' | 'again'>

/** Throws `storage` if the disk is too small for the import. Returns the number of missing documents. */
export async function checkSpace({ bundle, store, config, again }: SpaceOptions): Promise<number> {
  const { manifest } = bundle
  let documents = 0
  let bytes = 0
  for (const [source] of manifestSources(manifest))
    for await (const { value } of eachMissing(bundle, store, source, again)) {
      documents++
      bytes += value.stored
    }
  for (const { name, size } of manifest.members) {
    if (name.startsWith('rows/')) bytes += 2 * size // in the log and in the database
    if (name.startsWith('osv/')) bytes += 3 * size // and in the derived archive
  }
  if (manifest.kind === 'delta') bytes += store.osv.readArchive()?.size ?? 0
  await refuseFullDisk(config.data.dir, bytes + reserveFor(bytes, ...SLACK))
  return documents
}
