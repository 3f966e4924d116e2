import { MirrorError, messageOf } from '../../base/errors.ts'
import { parseExactly } from '../../base/json/objects.ts'
import { createCompletenessReader } from './completeness.ts'
import type { Db } from '../database/open.ts'
import { queries } from '../database/query.ts'

/** A stored paged list: its frame is upstream's envelope without the items, and their positions in it. */
export interface CatalogList {
  id: number
  /** Canonical path. */
  path: string
  resource: string
  /** JSON of a `Frame` (api and sync know its shape; the store does not). */
  frame: string
  entries: number
  /** Last-Modified, unix seconds; only ever moves forward. */
  changed: number
  /** Upstream's date when it was last walked, Unix milliseconds; null: unknown. */
  confirmedAt: number | null
}

/** One page of upstream's as it was walked, with its validators. */
export interface CatalogPage {
  number: number
  /** The cursor with which it was requested; null for the first page. */
  cursor: string | null
  next: string | null
  etag: string | null
  lastModified: string | null
  sha256: Buffer
  entries: number
}

/** Cursor of the page of carried-over items, which no walk read: they stay because the list may be incomplete. */
export const CARRIED = ''

/** Reports whether a page is the one with the carried-over items. */
export function isCarried({ cursor }: Pick<CatalogPage, 'cursor'>): boolean {
  return cursor === CARRIED
}

/** An item of a list, in upstream's bytes. */
export interface CatalogEntry {
  ordinal: number
  id: string
  body: Buffer
  /** The first 16 bytes of the SHA-256 of the body. */
  sha: Buffer
}

/** A list that may be incomplete. */
interface PartialList {
  /** Canonical. */
  path: string
  resource: string
  reason: string
}

const LIST = 'id, path, resource, frame, entries, changed, confirmed_at AS confirmedAt'

/** Creates reads of the catalog's lists; usable on any connection. */
export function createCatalogListReader(db: Db) {
  const { all, one, value } = queries(db)
  const list = db.prepare<[string], CatalogList>(`SELECT ${LIST} FROM catalog_list WHERE path = ?`)
  const entries = db.prepare<[number], CatalogEntry>(
    'SELECT ordinal, id, body, sha FROM catalog_entry WHERE list = ? ORDER BY ordinal',
  )
  const withTexts = db
    .prepare<{ list: number; texts: string; objects: string }, string>(
      `SELECT e.id FROM catalog_entry e WHERE e.list = @list AND NOT EXISTS (
         SELECT 1 FROM json_each(@texts) AS wanted WHERE wanted.value NOT IN (
           SELECT field.value FROM json_each(CAST(e.body AS TEXT)) AS field WHERE field.type = 'text'
           UNION ALL
           SELECT inner.value FROM json_each(CAST(e.body AS TEXT)) AS field,
             json_each(iif(field.type = 'object', field.value, '{}')) AS inner
           WHERE inner.type = 'text' AND lower(field.key) IN (SELECT value FROM json_each(@objects))))
       ORDER BY e.ordinal LIMIT 1`,
    )
    .pluck()
  return {
    ...createDoubtReader(db),
    readList: (path: string): CatalogList | null => list.get(path) ?? null,
    listLists: all<[], CatalogList>(`SELECT ${LIST} FROM catalog_list ORDER BY path`),
    listPages: all<[listId: number], CatalogPage>(
      `SELECT number, cursor, next, etag, last_modified AS lastModified, sha256, entries
       FROM catalog_page WHERE list = ? ORDER BY number`,
    ),
    ...createFieldNameReader(db),
    ...createCompletenessReader(db),
    /** Returns on what the completeness of a list rests, as JSON; null when it was not judged. */
    readEvidence: value<[listId: number], string>('SELECT evidence FROM catalog_list WHERE id = ?'),
    readEntry: one<[listId: number, id: string], CatalogEntry>(
      'SELECT ordinal, id, body, sha FROM catalog_entry WHERE list = ? AND id = ?',
    ),
    eachEntry: (listId: number) => entries.iterate(listId),
    /** Ids and digests of the items of a stored page, by its number from 0. */
    listOfPage: all<[listId: number, number: number], Pick<CatalogEntry, 'id' | 'sha'>>(
      `SELECT e.id, e.sha FROM catalog_page p JOIN catalog_entry e ON e.list = p.list
         AND e.ordinal >= p.number * 1000000 AND e.ordinal < (p.number + 1) * 1000000
       WHERE p.list = ? AND p.number = ?`,
    ),
    /**
     * Returns the id of a list's first item in which each of these texts is the value of a field, its own or of one of
     * these objects of it; null if there is none.
     */
    findEntryWith: (listId: number, texts: readonly string[], objects: readonly string[] = []): string | null => {
      const names = { texts: JSON.stringify(texts), objects: JSON.stringify(objects) }
      return withTexts.get({ list: listId, ...names }) ?? null
    },
  }
}

function createDoubtReader(db: Db) {
  const { all } = queries(db)
  const whyPartial = db
    .prepare<{ path: string }, string>(
      `SELECT json_extract(frame, '$.partial') FROM catalog_list
         WHERE path = @path AND json_extract(frame, '$.partial') IS NOT NULL
       UNION ALL
       SELECT coalesce(reason, 'the last run could not fetch it') FROM catalog_lacking WHERE path = @path LIMIT 1`,
    )
    .pluck()
  return {
    /** Returns why a list may be incomplete, or older than the rest of the catalog; null: it is neither. */
    whyListPartial: (path: string): string | null => whyPartial.get({ path }) ?? null,
    /** Lists that are not known to be complete. */
    listPartialLists: all<[], PartialList>(
      `SELECT path, resource, json_extract(frame, '$.partial') AS reason FROM catalog_list
       WHERE json_extract(frame, '$.partial') IS NOT NULL ORDER BY path`,
    ),
    /** Lists of which nothing says that there is more, and nothing proves the end. */
    listUnprovedLists: all<[], PartialList>(
      `SELECT path, resource, json_extract(frame, '$.unproved') AS reason FROM catalog_list
       WHERE json_extract(frame, '$.unproved') IS NOT NULL ORDER BY path`,
    ),
  }
}

function createFieldNameReader(db: Db) {
  const { list } = queries(db)
  const fields = db.prepare<[number], string | null>('SELECT fields FROM catalog_list WHERE id = ?').pluck()
  return {
    /** Names of the fields of a list's items, as recorded by a walk; null if none was recorded. */
    readFieldNames(listId: number): string[] | null {
      const text = fields.get(listId) ?? null
      return text === null ? null : (JSON.parse(text) as string[])
    },
    /** Names of the fields, read from the items themselves. Reads the whole list. */
    findFieldNames: list<[listId: number], string>(
      `SELECT DISTINCT field.key FROM catalog_entry e, json_each(iif(json_valid(CAST(e.body AS TEXT)),
         CAST(e.body AS TEXT), '{}')) AS field WHERE e.list = ? LIMIT 2000`,
    ),
  }
}

/** Parses an item of a list, which was parsed once before it was staged. Throws `corrupt` for one whose stored bytes are damaged. */
export function parseItem(body: Buffer): Record<string, unknown> {
  try {
    return parseExactly(body.toString('utf8')) as Record<string, unknown>
  } catch (error) {
    const why = `the stored item of a list is damaged (${messageOf(error)})`
    throw new MirrorError('corrupt', `${why}: "patchmirror doctor --data --repair" fetches it again`, { cause: error })
  }
}

/** Parses the stored item that another one replaces; null: it is damaged, so what it said is not known. */
export function parseReplaced(body: Buffer): Record<string, unknown> | null {
  try {
    return parseItem(body)
  } catch {
    return null
  }
}
