import { createHash } from 'node:crypto'
import { freeBytes } from '../../base/free-bytes.ts'
import { SOURCES, type SourceName, isPrivateSource } from '../../base/domain/sources.ts'
import { createDigestLines } from '../catalog/digest-lines.ts'
import type { Db } from '../database/open.ts'
import { combineDigests } from './rows.ts'

/** Content digests of the stored sources. */
interface ContentDigests {
  /** Of all of them together, hex; null while one is not computed, and when nothing is stored. */
  digest: string | null
  /** By source; a source without a snapshot has none. */
  sources: Partial<Record<SourceName, string | null>>
}

/** Returns the content digests that were stored with the snapshots; nothing is computed. */
export function contentDigestOf(snapshots: {
  readSnapshot(source: SourceName): { contentDigest: string | null } | null
}): ContentDigests {
  const digests: ContentDigests['sources'] = {}
  const known: Partial<Record<SourceName, string>> = {}
  for (const source of SOURCES) {
    const snapshot = snapshots.readSnapshot(source)
    if (snapshot === null) continue
    const { contentDigest } = snapshot
    digests[source] = contentDigest
    if (contentDigest !== null) known[source] = contentDigest
  }
  const isKnown = Object.values(digests).length > 0 && !Object.values(digests).includes(null)
  const digest = isKnown ? combineDigests(known) : null
  return { digest, sources: digests }
}

/**
 * Creates the computation of content digests: equal on any two mirrors that serve equal content, whatever they fetched in
 * which order, and however it is compressed. Not covered: dates, validators, tombstones, what is missing, the envelopes of
 * lists and the order of their items. Usable on any connection.
 *
 * A digest is SHA-256, hex, over a line for each part, a JSON array and a newline, by kind and then by name:
 * `["document", path, sha256]`, `["record", id, modified, sha256]`, `["list", path]`,
 * `["item", list path, id, first half of its SHA-256]`, `["answer", path, sha256, links]`.
 */
export function createContentDigester(db: Db): (source: SourceName) => string {
  const records = createRecordLines(db)
  const documents = db
    .prepare<[string], [string, string]>(
      'SELECT path, lower(hex(sha256)) FROM document WHERE source = ? AND present = 1 ORDER BY path',
    )
    .raw()
  const catalog = createDigestLines(db)
  return (source) => {
    const hash = createHash('sha256')
    for (const row of documents.iterate(source)) hash.update(`${JSON.stringify(['document', ...row])}\n`)
    if (source === 'osv')
      for (const lines of records()) {
        hash.update(lines)
        freeBytes(lines) // too many for the garbage collector
      }
    if (isPrivateSource(source)) for (const lines of catalog.contentLines(source)) hash.update(lines)
    return hash.digest('hex')
  }
}

/** Records whose lines are in memory at a time. */
const BLOCK = 128

/** SQLite writes the lines, without an object for each record: `json_quote` escapes as `JSON.stringify` does. */
const LINE = `'["record",' || json_quote(id) || ',' || json_quote(modified) || ',"' || lower(hex(sha256)) || '"]' || char(10)`

/** Creates the reading of the lines of all records. */
function createRecordLines(db: Db): () => Generator<Buffer> {
  // No id is empty.
  const next = db
    .prepare<[string], [Buffer | null, string | null]>(
      `SELECT CAST(group_concat(${LINE}, '') AS BLOB), max(id)
       FROM (SELECT id, modified, sha256 FROM osv_record WHERE id > ? ORDER BY id LIMIT ${BLOCK})`,
    )
    .raw()
  return function* () {
    for (let after: string | null = ''; after !== null;) {
      const [lines, last]: [Buffer | null, string | null] = next.get(after) ?? [null, null]
      if (lines !== null) yield lines
      after = last
    }
  }
}
