import { closeSync, existsSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { faultOfArchive } from '../../../archive/check.ts'
import { MirrorError } from '../../../base/errors.ts'
import { createCarriedReader } from '../../../store/replication/reader.ts'
import { type Db, derivedDir, openReader } from '../../../store/database/open.ts'
import { whyUnread } from '../../../store/database/unread.ts'
import type { ArchiveInfo } from '../../../store/osv/reads.ts'
import { type Reads, createReads } from '../../../store/reads.ts'

/** A pinned snapshot of the mirror, read while syncs continue. */
export type ExportSnapshot = ReturnType<typeof createSnapshot>

/** Attempts to read the database and open the archive: a sync may publish between the two, but not every time. */
const TRIES = 5

/**
 * Pins a snapshot on a connection of its own. Throws `not_ready` when nothing is mirrored, `corrupt` when the archive is
 * missing or damaged.
 */
export async function pinExportSnapshot(dataDir: string, withArchive: boolean): Promise<ExportSnapshot> {
  const db = openReader(dataDir)
  if (db === null) throw whyUnread(dataDir, `nothing is mirrored yet in ${dataDir}`)
  try {
    for (let left = TRIES; ; left--) {
      db.exec('BEGIN')
      const reads = createReads(db)
      const info = reads.osv.readArchive() // the first read pins the snapshot
      if (info === null || !withArchive) return createSnapshot(db, reads, null)
      const path = join(derivedDir(dataDir), info.file)
      const fd = openIfThere(path)
      const fault = fd === null ? 'is missing' : await faultOfArchive(path, info, reads.osv.listParts())
      if (fd !== null && fault === null) return createSnapshot(db, reads, { fd, info })
      if (fd !== null) closeSync(fd)
      if (left === 0 || existsSync(path))
        throw new MirrorError('corrupt', `the archive ${path} ${fault ?? ''}: run "patchmirror doctor --data --repair"`)
      db.exec('COMMIT')
    }
  } catch (error) {
    db.close()
    throw error
  }
}

function createSnapshot(db: Db, reads: Reads, archive: { readonly fd: number; readonly info: ArchiveInfo } | null) {
  return {
    reads,
    carried: createCarriedReader(db),
    /** Its archive, open because it may be deleted meanwhile; null if there is none. */
    archive,
    close(): void {
      if (archive !== null) closeSync(archive.fd)
      db.close()
    },
  }
}

function openIfThere(path: string): number | null {
  return existsSync(path) ? openSync(path, 'r') : null
}
