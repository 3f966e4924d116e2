import type { Db } from '../database/open.ts'
import { queries } from '../database/query.ts'

/** A document that an answer links to: the position of its URL in the answer, and its digest. */
export interface CatalogLink {
  /** Members and indexes from the answer's top to the URL; empty when the answer is the document itself. */
  at: readonly (string | number)[]
  /** SHA-256 of the document, hex. */
  digest: string
  /** Its media type for this answer; absent: the one that is stored with the document. */
  type?: string
}

/** A complete stored answer: an item, or the answer of an artifact path. */
export interface CatalogAnswer {
  path: string
  resource: string
  /** `resource/id` of the item it belongs to; it is removed with that item. */
  owner: string
  /** Digest of the owner's list item when this was fetched. */
  ownerSha: Buffer
  /** 200, or upstream's status without content: 404 or 204. */
  status: number
  /** A gzip member; null when upstream has none. */
  body: Buffer | null
  size: number
  sha256: Buffer
  changed: number
  etag: string | null
  links: readonly CatalogLink[]
  /** Ids of the artifact sets (AVRs) that it mentions. */
  mentions: readonly string[]
  /** Upstream's date when it last sent or confirmed it, Unix milliseconds; null: unknown. */
  confirmedAt: number | null
  /** The media type of its JSON; null or absent: `application/json`. */
  type?: string | null
}

/** The stored state of an answer, for the decision whether to fetch it again. */
export type StoredAnswer = Pick<
  CatalogAnswer,
  'path' | 'resource' | 'owner' | 'ownerSha' | 'etag' | 'status' | 'sha256' | 'confirmedAt'
>

/** The answers that are stored when a run begins, by path. */
export interface StoredAnswers {
  get(path: string): StoredAnswer | undefined
  has(path: string): boolean
  /** The items that have any. */
  owners(): ReadonlySet<string>
  /** The answers of the items for which `isWanted` returns true. */
  ofOwners(isWanted: (owner: string) => boolean): Iterable<Pick<StoredAnswer, 'path' | 'owner' | 'status'>>
}

type StoredRow = [
  path: string,
  resource: string,
  owner: string,
  ownerHex: string,
  etag: string | null,
  status: number,
  hex: string,
  confirmedAt: number | null,
]

/** Reports whether upstream answered that it has no such content. */
export function isNone(answer: Pick<CatalogAnswer, 'status'> | null | undefined): boolean {
  return answer?.status === 404 || answer?.status === 204
}

type AnswerRow = Omit<CatalogAnswer, 'links' | 'mentions'> & { links: string; mentions: string }

/** Columns of an answer, in the order of its table. */
const ANSWER =
  'path, resource, owner, owner_sha AS ownerSha, status, body, size, sha256, changed, etag, links, mentions, confirmed_at AS confirmedAt, type'

function toAnswer(row: AnswerRow | undefined): CatalogAnswer | null {
  if (row === undefined) return null
  const links = JSON.parse(row.links) as CatalogLink[]
  return { ...row, links, mentions: JSON.parse(row.mentions) as string[] }
}

/** SQL: the paths of VEX. */
export const IS_VEX_PATH = "substr(path, -4) = '/vex'"

/**
 * SQL: the answers about VEX; VEX paths of all resources end like this (service API, section 4). An index uses this
 * text.
 */
export const IS_VEX = `status = 200 AND ${IS_VEX_PATH}`

/** A path that the scope wants and the last run could not have. `reason`: null where it is not known here. */
export interface MissingPath {
  path: string
  resource: string
  reason: string | null
  /**
   * 403: the service refuses it to the credential, and what is stored of it is not served. 404, 204, or 200 for an empty list: it says
   * that there is nothing, which a second run is to find too. Null or absent: any other reason.
   */
  status?: number | null
}

/** Creates reads of the catalog's answers; usable on any connection. */
export function createCatalogAnswerReader(db: Db) {
  const { list, value, count, exists } = queries(db)
  const answer = db.prepare<[string], AnswerRow>(`SELECT ${ANSWER} FROM catalog_answer WHERE path = ?`)
  const state = db.prepare<[string], Pick<AnswerRow, 'status' | 'sha256' | 'links'>>(
    'SELECT status, sha256, links FROM catalog_answer WHERE path = ?',
  )
  const mentions = db
    .prepare<[], [string, string]>(
      `SELECT mentioned.value, a.owner FROM catalog_answer a, json_each(a.mentions) AS mentioned
         WHERE a.path NOT IN (SELECT path FROM catalog_fetched)
       UNION
       SELECT mentioned.value, f.owner FROM catalog_fetched f, json_each(f.mentions) AS mentioned`,
    )
    .raw()
  return {
    readAnswer: (path: string): CatalogAnswer | null => toAnswer(answer.get(path)),
    /** Returns the media type of a stored answer's JSON; null: `application/json`, or none is stored. */
    readAnswerType: value<[path: string], string>('SELECT type FROM catalog_answer WHERE path = ?'),
    /** Returns `answerState` of a stored answer without reading the answer itself. */
    readAnswerState: (path: string): string | null => answerState(state.get(path) ?? null),
    /** Whether any answer of an item is stored. */
    hasAnswers: exists<[owner: string]>('SELECT 1 FROM catalog_answer WHERE owner = ? LIMIT 1'),
    /** Ids of the tags whose stored SBOM may be of an earlier image: it was not fetched since their item changed. */
    listTagsWithOldSbom: list<[], string>(
      `SELECT e.id FROM catalog_list l JOIN catalog_entry e ON e.list = l.id JOIN catalog_answer a ON a.owner = 'tags/' || e.id
       WHERE l.resource = 'tags' AND substr(a.path, -5) = '/sbom' AND a.links <> '[]'
         AND (a.owner_sha <> e.sha OR a.path IN (SELECT path FROM catalog_lacking))`,
    ),
    /** Number of VEX documents that the last run was to fetch and could not. */
    countMissingVex: count<[]>(`SELECT count(*) FROM catalog_lacking WHERE ${IS_VEX_PATH}`),
    ...createMissingPaths(db),
    ...createStoredAnswers(db),
    /** Upstream's oldest confirmation of an answer about VEX, Unix milliseconds; null: there are none. */
    readVexConfirmedAt: value<[], number>(
      `SELECT min(coalesce(confirmed_at, changed * 1000)) FROM catalog_answer WHERE ${IS_VEX}`,
    ),
    /** `[id, owner]` of every artifact set that an answer mentions, published or only fetched. */
    listMentions: (): [string, string][] => mentions.all(),
  }
}

/** Creates reads of the paths that the scope wants and the last run could not have. */
function createMissingPaths(db: Db) {
  const { all, one } = queries(db)
  const missing = db.prepare<[], MissingPath>(
    'SELECT path, resource, reason, status FROM catalog_lacking ORDER BY path',
  )
  return {
    /** Returns the path when the last run was to fetch it and could not; null otherwise. */
    readMissingPath: one<[path: string], MissingPath>(
      'SELECT path, resource, reason, status FROM catalog_lacking WHERE path = ?',
    ),
    listMissingPaths: (): MissingPath[] => missing.all(),
    /** Of these, the paths that the service refuses to the credential (403). */
    listForbiddenPaths: (): MissingPath[] => missing.all().filter(({ status }) => status === 403),
    /** Numbers of the same paths by their resource. */
    countMissingPaths: all<[], { resource: string; paths: number }>(
      'SELECT resource, count(*) AS paths FROM catalog_lacking GROUP BY resource',
    ),
  }
}

/**
 * Creates the reading of all stored answers. The rows come as arrays: of many thousands, objects made here take half the
 * time of those that the library makes.
 */
function createStoredAnswers(db: Db) {
  const { exists } = queries(db)
  const columns = 'path, resource, owner, hex(owner_sha), etag, status, hex(sha256), confirmed_at'
  const rows = db.prepare<[], StoredRow>(`SELECT ${columns} FROM catalog_answer`).raw()
  const one = db.prepare<[string], StoredRow>(`SELECT ${columns} FROM catalog_answer WHERE path = ?`).raw()
  const owners = db.prepare<[], string>('SELECT DISTINCT owner FROM catalog_answer').pluck()
  const ofOwner = db.prepare<[string], Pick<StoredAnswer, 'path' | 'owner' | 'status'>>(
    'SELECT path, owner, status FROM catalog_answer WHERE owner = ?',
  )
  const eachStoredAnswer = function* (): Generator<StoredAnswer> {
    for (const row of rows.iterate()) yield new StoredAnswerRow(row)
  }
  return {
    /** Every stored answer, without its bytes. */
    eachStoredAnswer,
    /** Reads every stored answer, for a run that compares most of them. */
    readStoredAnswers(): StoredAnswers {
      const all = new Map([...eachStoredAnswer()].map((answer) => [answer.path, answer]))
      return {
        get: (path) => all.get(path),
        has: (path) => all.has(path),
        owners: () => new Set([...all.values()].map(({ owner }) => owner)),
        ofOwners: (isWanted) => [...all.values()].filter(({ owner }) => isWanted(owner)),
      }
    },
    /** Reads the names of the items alone, for a run that compares few: their answers are read when they are asked for. */
    readStoredOwners(): StoredAnswers {
      const names: ReadonlySet<string> = new Set(owners.all())
      return {
        get(path) {
          const row = one.get(path)
          return row && new StoredAnswerRow(row)
        },
        has: exists<[path: string]>('SELECT 1 FROM catalog_answer WHERE path = ?'),
        owners: () => names,
        ofOwners: (isWanted) => [...names].filter(isWanted).flatMap((owner) => ofOwner.all(owner)),
      }
    },
  }
}

/** A stored answer of many: its digests are texts until they are asked for, which take a fifth of the memory of buffers. */
class StoredAnswerRow implements StoredAnswer {
  readonly path
  readonly resource
  readonly owner
  readonly etag
  readonly status
  readonly confirmedAt
  readonly #ownerHex
  readonly #hex

  constructor([path, resource, owner, ownerHex, etag, status, hex, confirmedAt]: StoredRow) {
    this.path = path
    this.resource = resource
    this.owner = owner
    this.#ownerHex = ownerHex
    this.etag = etag
    this.status = status
    this.#hex = hex
    this.confirmedAt = confirmedAt
  }

  get ownerSha(): Buffer {
    return Buffer.from(this.#ownerHex, 'hex')
  }

  get sha256(): Buffer {
    return Buffer.from(this.#hex, 'hex')
  }
}

/** Returns a text that differs whenever the served answer differs; null if none is served, as upstream has none. */
export function answerState(
  answer: (Pick<CatalogAnswer, 'status' | 'sha256'> & { links: CatalogAnswer['links'] | string }) | null,
): string | null {
  if (answer === null || answer.status !== 200) return null
  const { links, sha256 } = answer
  return `${sha256.toString('base64')} ${typeof links === 'string' ? links : JSON.stringify(links)}`
}
