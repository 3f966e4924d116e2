import { createHash } from 'node:crypto'
import { ownsResource } from '../../domain/resources.ts'
import { SOURCES, type SourceName } from '../../domain/sources.ts'
import type { Db } from '../database/open.ts'
import { createRecordLines } from './record-lines.ts'
import { combineDigests } from './rows.ts'

/** Passes the lines of all records, in order, to `use`. */
type EachLine = (use: (lines: Uint8Array) => void) => void

/** Content digests of the stored sources. */
interface ContentDigests {
  /** Of all of them together, hex; null while one is not computed, and when nothing is stored. */
  digest: string | null
  /** By source; a source without a snapshot has none. */
  sources: Partial<Record<SourceName, string | null>>
}

/** Returns the content digests that were stored with the snapshots; nothing is computed. */
export function contentDigestOf(
  snapshots: { readSnapshot(source: SourceName): { contentDigest: string | null } | null },
  sources: readonly SourceName[] = SOURCES,
): ContentDigests {
  const digests: ContentDigests['sources'] = {}
  const known: Partial<Record<SourceName, string>> = {}
  for (const source of sources) {
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
export function createContentDigester(
  db: Db,
  eachRecord: EachLine = createRecordLines(db).read,
): (source: SourceName, records?: EachLine) => string {
  const parts = prepareParts(db)
  return (source, records = eachRecord) => {
    const hash = createHash('sha256')
    let text = ''
    const add = (line: readonly (string | null)[]): void => {
      text += `${JSON.stringify(line)}\n`
      if (text.length < 65_536) return
      hash.update(text)
      text = ''
    }
    for (const row of parts.documents.iterate(source)) add(['document', ...row])
    hash.update(text)
    text = ''
    if (source === 'osv') records((lines) => hash.update(lines))
    if (source === 'catalog' || source === 'identity') addCatalog(parts, source, add)
    return hash.update(text).digest('hex')
  }
}

type Parts = ReturnType<typeof prepareParts>

function addCatalog(
  parts: Parts,
  source: SourceName,
  add: (line: readonly (string | null)[]) => void,
): void {
  for (const [resource, path] of parts.lists.iterate())
    if (ownsResource(source, resource)) add(['list', path])
  for (const [resource, ...item] of parts.items.iterate())
    if (ownsResource(source, resource)) add(['item', ...item])
  for (const [resource, ...answer] of parts.answers.iterate())
    if (ownsResource(source, resource)) add(['answer', ...answer])
}

function prepareParts(db: Db) {
  return {
    documents: db
      .prepare<[string], [string, string]>(
        'SELECT path, lower(hex(sha256)) FROM document WHERE source = ? AND present = 1 ORDER BY path',
      )
      .raw(),
    lists: db
      .prepare<[], [string, string]>('SELECT resource, path FROM catalog_list ORDER BY path')
      .raw(),
    items: db
      .prepare<[], [string, string, string, string]>(
        `SELECT l.resource, l.path, e.id, lower(hex(e.sha)) FROM catalog_list l JOIN catalog_entry e ON e.list = l.id
         ORDER BY l.path, e.id`,
      )
      .raw(),
    answers: db
      .prepare<[], [string, string, string, string]>(
        `SELECT resource, path, lower(hex(sha256)), links FROM catalog_answer WHERE status = 200
         ORDER BY path`,
      )
      .raw(),
  }
}
