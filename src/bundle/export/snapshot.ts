import { closeSync, existsSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { faultOfArchive } from '../../archive/check.ts'
import { MirrorError } from '../../core/errors.ts'
import { type CarriedReader, createCarriedReader } from '../../store/replication/reader.ts'
import { type Db, derivedDir, openReader } from '../../store/database/open.ts'
import { whyUnread } from '../../store/database/older-folder.ts'
import type { ArchiveInfo } from '../../store/osv/reads.ts'
import { type Reads, createReads } from '../../store/reads.ts'

/** One moment of the mirror, held while it is read: syncs go on meanwhile. */
export interface ExportSnapshot {
  readonly reads: Reads
  readonly carried: CarriedReader
  /** The archive that belongs to it, open: it may be swept away meanwhile. Null when there is none. */
  readonly archive: { readonly fd: number; readonly info: ArchiveInfo } | null
  close(): void
}

/** A sync may publish between the look into the database and that into the folder; it does not do so all the time. */
const TRIES = 5

/**
 * Holds a moment on a connection of its own. Throws `not_ready` when nothing is mirrored, `corrupt` when the archive is
 * lost or damaged.
 */
export async function pinExportSnapshot(
  dataDir: string,
  withArchive: boolean,
): Promise<ExportSnapshot> {
  const db = openReader(dataDir)
  if (db === null) throw whyUnread(dataDir, `nothing is mirrored yet in ${dataDir}`)
  try {
    for (let left = TRIES; ; left--) {
      db.exec('BEGIN')
      const reads = createReads(db)
      const info = reads.readArchive() // the moment is taken here, with the first read
      if (info === null || !withArchive) return moment(db, reads, null)
      const path = join(derivedDir(dataDir), info.file)
      const fd = openIfThere(path)
      const fault =
        fd === null ? 'is not there' : await faultOfArchive(path, info, reads.listParts())
      if (fd !== null && fault === null) return moment(db, reads, { fd, info })
      if (fd !== null) closeSync(fd)
      if (left === 0 || existsSync(path))
        throw new MirrorError(
          'corrupt',
          `the archive ${path} ${fault ?? ''}: run "patchmirror verify --repair"`,
        )
      db.exec('COMMIT')
    }
  } catch (error) {
    db.close()
    throw error
  }
}

function moment(db: Db, reads: Reads, archive: ExportSnapshot['archive']): ExportSnapshot {
  return {
    reads,
    carried: createCarriedReader(db),
    archive,
    close() {
      if (archive !== null) closeSync(archive.fd)
      db.close()
    },
  }
}

function openIfThere(path: string): number | null {
  return existsSync(path) ? openSync(path, 'r') : null
}
