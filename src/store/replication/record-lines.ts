import type { Db } from '../database/open.ts'
import { type KeptLines, createLines } from './kept-lines.ts'

/** The proof that a source's stored content is the published snapshot's. */
export interface ContentProof {
  /** Records that were read for it. */
  readonly records: number
  /** Their lines, so that a publication in the same run need not read all again; null: they are too many. */
  readonly kept: KeptLines | null
}

/** SQLite writes the lines, without an object for each record: `json_quote` escapes as `JSON.stringify` does. */
const LINE = `'["record",' || json_quote(id) || ',' || json_quote(modified) || ',"' || lower(hex(sha256)) || '"]' || char(10)`

/** Sorts after every text in SQLite. */
const END = Buffer.from([0xff])

/** Creates the reading of the lines that a content digest has for records. Usable on any connection. */
export function createRecordLines(db: Db) {
  // No id is empty.
  const next = db
    .prepare<[string, string | Buffer, number], [Buffer | null, string | null, number]>(
      `SELECT CAST(group_concat(${LINE}, '') AS BLOB), max(id), count(*)
       FROM (SELECT id, modified, sha256 FROM osv_record WHERE id > ? AND id <= ? ORDER BY id LIMIT ?)`,
    )
    .raw()
  return createLines(db, (after, end, limit) => {
    const [lines, last, records] = next.get(after, end ?? END, limit) ?? [null, null, 0]
    return lines === null || last === null ? null : { lines, last, records }
  })
}
