import type { Config } from '../config/schema.ts'
import { openReader } from '../store/database.ts'
import { createReads } from '../store/pinned.ts'

/** The id of any tag of the service's that is mirrored here; null when there is none. */
export function anyMirroredTag({ data }: Config): string | null {
  const db = openReader(data.dir)
  if (db === null) return null
  try {
    const reads = createReads(db)
    const list = reads.readCatalogList('/v1/tags')
    return list === null ? null : reads.findHolding(list.id, [])
  } finally {
    db.close()
  }
}
