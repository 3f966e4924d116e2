import type { Db } from './database.ts'

/** A paged list as it is held: its frame (upstream's envelope without the items) and where things lie in it. */
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
}

/** One page of upstream's as it was walked, and what makes asking for it again cheap. */
export interface CatalogPage {
  number: number
  /** The cursor that asked for it; null for the first. */
  cursor: string | null
  next: string | null
  etag: string | null
  lastModified: string | null
  sha256: Buffer
  entries: number
}

/** An item in a list: upstream's own bytes of it. */
export interface CatalogEntry {
  ordinal: number
  id: string
  body: Buffer
  /** Of the body, its first 16 bytes. */
  sha: Buffer
}

/** A document that an answer names: where in the answer its URL stands, and its digest. */
export interface CatalogLink {
  /** Members and indexes from the answer's top to the URL; empty when the answer is the document itself. */
  at: readonly (string | number)[]
  /** SHA-256 of the document, hex. */
  digest: string
}

/** An answer that is held whole: an item, or what an artifact path says. */
export interface CatalogAnswer {
  path: string
  resource: string
  /** `resource/id` of the item it belongs to; goes when that goes. */
  owner: string
  /** Digest of the owner as it was listed when this was fetched. */
  ownerSha: Buffer
  /** 200, or 404 when upstream has none. */
  status: number
  /** A gzip member; null for a 404. */
  body: Buffer | null
  size: number
  sha256: Buffer
  changed: number
  etag: string | null
  links: readonly CatalogLink[]
  /** Ids of artifact sets (AVRs) that it names. */
  mentions: readonly string[]
}

/** What an answer is known by before it is fetched again. */
export type HeldAnswer = Pick<CatalogAnswer, 'path' | 'owner' | 'ownerSha' | 'etag' | 'status'>

type AnswerRow = Omit<CatalogAnswer, 'links' | 'mentions'> & { links: string; mentions: string }

/** Columns of an answer, in the order of its table. */
const ANSWER =
  'path, resource, owner, owner_sha AS ownerSha, status, body, size, sha256, changed, etag, links, mentions'

function toAnswer(row: AnswerRow | undefined): CatalogAnswer | null {
  if (row === undefined) return null
  const links = JSON.parse(row.links) as CatalogLink[]
  return { ...row, links, mentions: JSON.parse(row.mentions) as string[] }
}

/** Reads of the catalog; usable on any connection. */
export function createCatalogReader(db: Db) {
  const list = db.prepare<[string], CatalogList>(
    'SELECT id, path, resource, frame, entries, changed FROM catalog_list WHERE path = ?',
  )
  const lists = db.prepare<[], CatalogList>(
    'SELECT id, path, resource, frame, entries, changed FROM catalog_list ORDER BY path',
  )
  const pages = db.prepare<[number], CatalogPage>(
    `SELECT number, cursor, next, etag, last_modified AS lastModified, sha256, entries
     FROM catalog_page WHERE list = ? ORDER BY number`,
  )
  const entry = db.prepare<[number, string], CatalogEntry>(
    'SELECT ordinal, id, body, sha FROM catalog_entry WHERE list = ? AND id = ?',
  )
  const entries = db.prepare<[number], CatalogEntry>(
    'SELECT ordinal, id, body, sha FROM catalog_entry WHERE list = ? ORDER BY ordinal',
  )
  const answer = db.prepare<[string], AnswerRow>(
    `SELECT ${ANSWER} FROM catalog_answer WHERE path = ?`,
  )
  const held = db.prepare<[], HeldAnswer>(
    'SELECT path, owner, owner_sha AS ownerSha, etag, status FROM catalog_answer',
  )
  const ofOwner = db
    .prepare<[string], number>('SELECT 1 FROM catalog_answer WHERE owner = ? LIMIT 1')
    .pluck()
  const lacks = db.prepare<[string], number>('SELECT 1 FROM catalog_lacking WHERE path = ?').pluck()
  const lacking = db.prepare<[], { path: string; resource: string }>(
    'SELECT path, resource FROM catalog_lacking ORDER BY path',
  )
  const holding = db
    .prepare<[number, string], number>(
      'SELECT 1 FROM catalog_entry WHERE list = ? AND instr(CAST(body AS TEXT), ?) > 0 LIMIT 1',
    )
    .pluck()
  const digests = db
    .prepare<[], [string, string, string]>(
      `SELECT path, 'answer ' || hex(sha256) || ' ' || links, resource FROM catalog_answer
       UNION ALL SELECT path, 'list ' || frame, resource FROM catalog_list ORDER BY 1, 2`,
    )
    .raw()
  const entryDigests = db
    .prepare<[], [string, Buffer, string]>(
      `SELECT l.path, e.sha, l.resource FROM catalog_list l JOIN catalog_entry e ON e.list = l.id
       ORDER BY l.path, e.ordinal`,
    )
    .raw()
  const mentions = db
    .prepare<[], [string, string, Buffer]>(
      `SELECT mentioned.value, a.owner, a.owner_sha FROM catalog_answer a, json_each(a.mentions) AS mentioned
         WHERE a.path NOT IN (SELECT path FROM catalog_fetched)
       UNION ALL
       SELECT mentioned.value, f.owner, f.owner_sha FROM catalog_fetched f, json_each(f.mentions) AS mentioned`,
    )
    .raw()
  const counts = db
    .prepare<[], [number, number, number]>(
      `SELECT (SELECT count(*) FROM catalog_entry), (SELECT count(*) FROM catalog_answer WHERE status = 200),
         (SELECT count(*) FROM catalog_document)`,
    )
    .raw()
  return {
    readCatalogList: (path: string): CatalogList | null => list.get(path) ?? null,
    listCatalogLists: (): CatalogList[] => lists.all(),
    listCatalogPages: (listId: number): CatalogPage[] => pages.all(listId),
    readCatalogEntry: (listId: number, id: string): CatalogEntry | null =>
      entry.get(listId, id) ?? null,
    eachCatalogEntry: (listId: number) => entries.iterate(listId),
    readCatalogAnswer: (path: string): CatalogAnswer | null => toAnswer(answer.get(path)),
    /** Whether anything of an item is held. */
    hasAnswers: (owner: string): boolean => ofOwner.get(owner) === 1,
    /** Whether the last run wanted this path and could not have it. */
    isLacking: (path: string): boolean => lacks.get(path) === 1,
    listLacking: (): { path: string; resource: string }[] => lacking.all(),
    /** Whether any item of a list holds this text as a JSON string. */
    listHolds: (listId: number, text: string): boolean =>
      holding.get(listId, JSON.stringify(text)) === 1,
    /** What is held of every answer, without the bytes. */
    eachHeldAnswer: () => held.iterate(),
    /** `[id, owner, owner's digest]` of every artifact set that an answer names, published or only in hand. */
    listMentions: (): [string, string, Buffer][] => mentions.all(),
    /** `[path, text, resource]` of every answer and list: with the entries' digests, all that the catalog serves. */
    eachCatalogDigest: () => digests.iterate(),
    /** `[list path, sha, resource]` of every entry, in order. */
    eachEntryDigest: () => entryDigests.iterate(),
    /** Entries of lists, answers and documents held. */
    countCatalog(): { entries: number; answers: number; documents: number } {
      const [all, answers, documents] = counts.get() ?? [0, 0, 0]
      return { entries: all, answers, documents }
    },
  }
}

export type CatalogReader = ReturnType<typeof createCatalogReader>
