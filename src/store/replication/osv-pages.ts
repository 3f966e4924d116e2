import { sha256Hex } from '../../base/digest.ts'
import type { SourceName } from '../../base/domain/sources.ts'
import type { Db } from '../database/open.ts'
import type { DocumentValue, RecordValue, SourceValue, TombstoneValue } from './rows.ts'

/** Reads a kind's rows after a key, in order; fewer than `limit` only at the end. */
export type Pages<V> = (source: SourceName, after: string, limit: number) => V[]

/** Creates pages of records, documents and snapshots; usable on any connection. */
export function createOsvPages(db: Db) {
  return {
    source: createSourcePages(db),
    document: createDocumentPages(db),
    'osv-record': createRecordPages(db),
    'osv-tombstone': createTombstonePages(db),
  }
}

function createSourcePages(db: Db): Pages<SourceValue> {
  const read = db
    .prepare<[string], [string, number, number, number]>(
      'SELECT id, as_of, records, whole FROM snapshot WHERE source = ?',
    )
    .raw()
  const archive = db.prepare<[], NonNullable<SourceValue['archive']>>(
    'SELECT size, crc32c, sha256, changed FROM osv_archive',
  )
  return (source, after) => {
    const row = read.get(source)
    if (row === undefined || after >= source) return []
    const [snapshot, asOf, records, whole] = row
    const ownArchive = source === 'osv' ? (archive.get() ?? null) : null
    return [{ key: source, snapshot, asOf, records, whole: whole === 1, archive: ownArchive }]
  }
}

function createDocumentPages(db: Db): Pages<DocumentValue> {
  const list = db
    .prepare<[string, string, number], [string, number, Buffer | null, number, string, number, number]>(
      `SELECT path, present, body, size, lower(hex(sha256)), changed, entries FROM document
       WHERE source = ? AND path > ? ORDER BY path LIMIT ?`,
    )
    .raw()
  return (source, after, limit) =>
    list.all(source, after, limit).map(([key, present, body, size, sha256, changed, entries]) => {
      const blob = body === null ? null : sha256Hex(body)
      return { key, present: present === 1, size, sha256, changed, entries, blob }
    })
}

function createRecordPages(db: Db): Pages<RecordValue> {
  const list = db
    .prepare<[string, number], [string, string, number, number, string, number, number | null]>(
      `SELECT id, modified, crc32, size, lower(hex(sha256)), changed, as_of FROM osv_record
       WHERE id > ? ORDER BY id LIMIT ?`,
    )
    .raw()
  return (_, after, limit) =>
    list.all(after, limit).map(([key, modified, crc32, size, sha256, changed, asOf]) => {
      return { key, modified, crc32, size, sha256, changed, asOf }
    })
}

function createTombstonePages(db: Db): Pages<TombstoneValue> {
  const list = db
    .prepare<[string, number], [string, number]>(
      'SELECT id, removed_at FROM osv_tombstone WHERE id > ? ORDER BY id LIMIT ?',
    )
    .raw()
  return (_, after, limit) => list.all(after, limit).map(([key, removedAt]) => ({ key, removedAt }))
}
