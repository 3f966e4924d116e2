import { sha256Hex } from '../../base/digest.ts'
import type { SourceName } from '../../base/domain/sources.ts'
import type { Db } from '../database/open.ts'
import type { DocumentValue, SourceValue, TombstoneValue } from './rows.ts'

/** Reads a kind's rows after a key, in order; fewer than `limit` only at the end. */
export type Pages<V> = (source: SourceName, after: string, limit: number) => V[]

/** Creates pages of tombstones, documents and snapshots; usable on any connection. */
export function createOsvPages(db: Db) {
  return {
    source: createSourcePages(db),
    document: createDocumentPages(db),
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

/** The values of a record (`RecordValue`) as `JSON.stringify` writes them: `json_quote` escapes alike. */
const RECORD = `'{"key":' || json_quote(id) || ',"modified":' || json_quote(modified) || ',"crc32":' || crc32 ||
  ',"size":' || size || ',"sha256":"' || lower(hex(sha256)) || '","changed":' || changed ||
  ',"asOf":' || coalesce(as_of, 'null') || '}'`

/** Creates pages of records: the key, and the values as JSON, which SQLite writes faster than an object is made. */
export function createRecordPages(db: Db): (after: string, limit: number) => [key: string, json: string][] {
  const list = db
    .prepare<[string, number], [string, string]>(
      `SELECT id, ${RECORD} FROM osv_record WHERE id > ? ORDER BY id LIMIT ?`,
    )
    .raw()
  return (after, limit) => list.all(after, limit)
}

function createTombstonePages(db: Db): Pages<TombstoneValue> {
  const list = db
    .prepare<[string, number], [string, number]>(
      'SELECT id, removed_at FROM osv_tombstone WHERE id > ? ORDER BY id LIMIT ?',
    )
    .raw()
  return (_, after, limit) => list.all(after, limit).map(([key, removedAt]) => ({ key, removedAt }))
}
