import { IS_OWNED, ownerFlag } from '../catalog/digest-lines.ts'
import { namedDigests } from '../catalog/documents.ts'
import { FACETS } from '../catalog/list-query.ts'
import { FACET_COLUMNS } from '../catalog/list-staging.ts'
import type { Db } from '../database/open.ts'
import type { Pages } from './osv-pages.ts'
import type { AnswerValue, CatalogDocumentValue, EntryValue, ListValue, MissingValue, RowExtras } from './rows.ts'

/** Returns the key of an item in a list: canonical paths contain no space, so keys are ordered by path, then id. */
function entryKey(path: string, id: string): string {
  return `${path} ${id}`
}

/** Returns the list's path and the item's id. */
export function splitEntryKey(key: string): [path: string, id: string] {
  const at = key.indexOf(' ')
  return at < 0 ? [key, ''] : [key.slice(0, at), key.slice(at + 1)]
}

/** Creates pages of lists, answers and the documents that they link to; usable on any connection. */
export function createCatalogPages(db: Db) {
  return {
    'catalog-list': createListPages(db),
    'catalog-entry': createEntryPages(db),
    'catalog-answer': createAnswerPages(db),
    'catalog-lacking': createMissingPages(db),
    'catalog-document': createDocumentPages(db),
  }
}

function createListPages(db: Db): Pages<ListValue> {
  const list = db.prepare<[number, string, number], ListValue>(
    `SELECT path AS key, resource, frame, entries, changed FROM catalog_list
     WHERE ${IS_OWNED} AND path > ? ORDER BY path LIMIT ?`,
  )
  return (source, after, limit) => list.all(ownerFlag(source), after, limit)
}

function createEntryPages(db: Db): Pages<EntryValue> {
  type Row = [id: string, ordinal: number, sha: string, ...facets: (string | null)[]]
  const lists = db
    .prepare<[number, string], [number, string]>(
      `SELECT id, path FROM catalog_list WHERE ${IS_OWNED} AND path >= ? ORDER BY path`,
    )
    .raw()
  const entries = db
    .prepare<[number, string, number], Row>(
      `SELECT id, ordinal, lower(hex(sha)), ${FACET_COLUMNS} FROM catalog_entry
       WHERE list = ? AND id > ? ORDER BY id LIMIT ?`,
    )
    .raw()
  return (source, after, limit) => {
    const [from, last] = splitEntryKey(after)
    const found: EntryValue[] = []
    for (const [list, path] of lists.all(ownerFlag(source), from)) {
      const rows = entries.all(list, path === from ? last : '', limit - found.length)
      for (const [id, ordinal, sha, ...facets] of rows)
        found.push({ key: entryKey(path, id), ordinal, sha, facets: facets.slice(0, FACETS) })
      if (found.length === limit) break
    }
    return found
  }
}

function createAnswerPages(db: Db): Pages<AnswerValue> {
  const list = db.prepare<[number, string, number], AnswerValue>(
    `SELECT path AS key, resource, owner, lower(hex(owner_sha)) AS ownerSha, status, size,
       lower(hex(sha256)) AS sha256, changed, links, mentions
     FROM catalog_answer WHERE ${IS_OWNED} AND path > ? ORDER BY path LIMIT ?`,
  )
  return (source, after, limit) => list.all(ownerFlag(source), after, limit)
}

function createMissingPages(db: Db): Pages<MissingValue> {
  const list = db.prepare<[number, string, number], MissingValue>(
    `SELECT path AS key, resource FROM catalog_lacking WHERE ${IS_OWNED} AND path > ? ORDER BY path LIMIT ?`,
  )
  return (source, after, limit) => list.all(ownerFlag(source), after, limit)
}

function createDocumentPages(db: Db): Pages<CatalogDocumentValue> {
  const list = db.prepare<[number, string, number], CatalogDocumentValue>(
    `SELECT digest AS key, size, stored, type, changed, digest AS blob FROM catalog_document
     WHERE digest IN (${namedDigests('catalog_answer', `${IS_OWNED} AND links <> '[]'`)})
       AND digest > ? ORDER BY digest LIMIT ?`,
  )
  return (source, after, limit) => list.all(ownerFlag(source), after, limit)
}

/** Creates reads of the bytes and dates that row lines have besides their values. */
export function createCatalogExtras(db: Db) {
  const entry = db
    .prepare<[string, string], Buffer>(
      `SELECT e.body FROM catalog_list l JOIN catalog_entry e ON e.list = l.id AND e.id = ?
       WHERE l.path = ?`,
    )
    .pluck()
  const answer = db
    .prepare<[string], [Buffer | null, number | null]>('SELECT body, confirmed_at FROM catalog_answer WHERE path = ?')
    .raw()
  const walked = db.prepare<[string], number | null>('SELECT confirmed_at FROM catalog_list WHERE path = ?').pluck()
  const chunks = db
    .prepare<[string], number>('SELECT length(bytes) FROM catalog_chunk WHERE digest = ? ORDER BY number')
    .pluck()
  const scope = db.prepare<[string], string | null>('SELECT scope FROM snapshot WHERE source = ?').pluck()
  return {
    source: (key: string): RowExtras['source'] => {
      const text = scope.get(key) ?? null
      return text === null ? {} : { scope: text }
    },
    'catalog-list': (key: string): RowExtras['catalog-list'] => {
      return { confirmed: walked.get(key) ?? null }
    },
    'catalog-entry': (key: string): RowExtras['catalog-entry'] => {
      const [path, id] = splitEntryKey(key)
      const body = entry.get(id, path) ?? Buffer.alloc(0)
      const text = body.toString('utf8')
      return Buffer.from(text).equals(body) ? { text } : { base64: body.toString('base64') }
    },
    'catalog-answer': (key: string): RowExtras['catalog-answer'] => {
      const [body = null, confirmed = null] = answer.get(key) ?? []
      return { base64: body?.toString('base64') ?? null, confirmed }
    },
    'catalog-document': (key: string): RowExtras['catalog-document'] => {
      return { chunks: chunks.all(key) }
    },
  }
}
