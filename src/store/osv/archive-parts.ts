import type { Db } from '../database/open.ts'
import { queries } from '../database/query.ts'

/** A range of consecutive members of the published archive. */
export interface ArchivePart {
  /** The first id that may be in it; empty for the archive's first part. */
  first: string
  members: number
  /** Bytes of its local headers and streams. */
  bytes: number
  crc32c: number
  /** Hex: there are tens of thousands of parts, and a text takes half the memory of a buffer. */
  sha256: string
}

/** A stored part: `dirty` when one of its records was written since the archive was published. */
export interface StoredPart extends ArchivePart {
  dirty: boolean
}

/** Creates reads of the archive's parts; usable on any connection. */
export function createPartReader(db: Db) {
  const list = db
    .prepare<[], [string, number, number, number, string, number]>(
      'SELECT first, members, bytes, crc32c, lower(hex(sha256)), dirty FROM osv_part ORDER BY first',
    )
    .raw()
  const around = db
    .prepare<[string], [number, number]>(
      // Records from the part's first id up to the next part's: a few dozen.
      `SELECT p.members, (SELECT count(*) FROM osv_record r WHERE r.id >= p.first AND
         r.id < ifnull((SELECT min(n.first) FROM osv_part n WHERE n.first > p.first), x'ff'))
       FROM osv_part p WHERE p.first <= ? ORDER BY p.first DESC LIMIT 1`,
    )
    .raw()
  return {
    /** Whether all records are stored of the part to which an id belongs; null if the archive has no parts. */
    isPartStored(id: string): boolean | null {
      const [members, stored] = around.get(id) ?? [null, null]
      return members === null ? null : members === stored
    },
    /** All parts in file order. */
    listParts: (): StoredPart[] =>
      list.all().map(([first, members, bytes, crc32c, sha256, dirty]) => {
        return { first, members, bytes, crc32c, sha256, dirty: dirty === 1 }
      }),
  }
}

/** Creates writes of the archive's parts. Call inside a transaction of the caller's. */
export function createPartWriter(db: Db) {
  const { run } = queries(db)
  const clear = db.prepare('DELETE FROM osv_part')
  const drop = db.prepare('DELETE FROM osv_part WHERE dirty = 1')
  const put = db.prepare(
    `INSERT OR REPLACE INTO osv_part (first, members, bytes, crc32c, sha256, dirty)
     VALUES (@first, @members, @bytes, @crc32c, unhex(@sha256), 0)`,
  )
  return {
    ...createPartReader(db),
    /** Marks the part of an id as dirty: the published file differs from the store. */
    touchPart: run<[id: string]>(
      'UPDATE osv_part SET dirty = 1 WHERE first = (SELECT max(first) FROM osv_part WHERE first <= ?)',
    ),
    /** Replaces all parts, after the whole archive was rebuilt. */
    replaceParts(parts: readonly ArchivePart[]): void {
      clear.run()
      for (const part of parts) put.run(part)
    },
    /** Replaces the dirty parts, after they were rebuilt; the others were copied unchanged. */
    renewParts(parts: readonly ArchivePart[]): void {
      drop.run()
      for (const part of parts) put.run(part)
    },
  }
}
