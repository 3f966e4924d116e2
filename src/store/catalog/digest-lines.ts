import type { SourceName } from '../../base/domain/sources.ts'
import type { Db } from '../database/open.ts'

/** SQL: whether a resource belongs to the source of `ownerFlag`: `users` to the identity surface, all others to the catalog. */
export const IS_OWNED = "(resource = 'users') = ?"

/** Returns the value of a source for `IS_OWNED`. */
export function ownerFlag(source: SourceName): number {
  return source === 'identity' ? 1 : 0
}

/** Rows whose lines are in memory at a time: some hundred kilobytes; a list's frame may have 64 KiB by itself. */
const BLOCKS = { answers: 2048, lists: 64, items: 8192 }

type Lines = Generator<Uint8Array, void>

/**
 * Creates the reading of what digests of the catalog cover, as the bytes that are hashed; usable on any connection. SQLite
 * joins them, thousands of rows at a time: rows that are passed to JavaScript one by one take more than twice the time.
 */
export function createDigestLines(db: Db, blocks = BLOCKS) {
  const sql = prepareLines(db, blocks)
  const lists = db
    .prepare<[number], [id: number, path: string]>(`SELECT id, path FROM catalog_list WHERE ${IS_OWNED} ORDER BY path`)
    .raw()
  return {
    /**
     * Yields what a snapshot's id is the SHA-256 of: everything that the source serves. For each answer and list in the order
     * of the paths its path, kind, digest and links, or frame; then for each item its list's path and its digest.
     */
    *servedLines(source: SourceName): Lines {
      const own = ownerFlag(source)
      for (let after: string | Buffer | undefined = ''; typeof after === 'string';) {
        const last = sql.boundary.get(after, after)
        const lines = last && sql.served.get(own, after, last, own, after, last)
        if (lines) yield lines
        after = last
      }
      for (const [id, path] of lists.all(own))
        yield* inTurn<number>((ordinal) => sql.digests.get(path, id, ordinal), -1)
    },
    /** Yields the lines of the content digest (`replication/content.ts`) for lists, items and answers. */
    *contentLines(source: SourceName): Lines {
      const own = ownerFlag(source)
      const stored = lists.all(own)
      for (const [, path] of stored) yield Buffer.from(`${JSON.stringify(['list', path])}\n`)
      for (const [id, path] of stored) yield* inTurn<string>((after) => sql.items.get(path, id, after), '')
      yield* inTurn<string>((after) => sql.answers.get(own, after), '')
    },
  }
}

/** The joined lines of some rows, and the last of them; nulls: there are none. */
type Block<Place> = [lines: Uint8Array | null, last: Place | null]

/** Yields the blocks one after the other, each behind the last row of the one before. */
function* inTurn<Place>(read: (after: Place) => Block<Place> | undefined, first: Place): Lines {
  for (let after: Place | null = first; after !== null;) {
    const [lines, last]: Block<Place> = read(after) ?? [null, null]
    if (lines !== null) yield lines
    after = last
  }
}

const joined = (line: string): string => `CAST(group_concat(${line}, '') AS BLOB)`

/** `json_quote` escapes as `JSON.stringify` does. No path or id is empty. */
function prepareLines(db: Db, { answers, lists, items }: typeof BLOCKS) {
  const nth = (table: string, count: number): string =>
    `coalesce((SELECT path FROM ${table} WHERE path > ? ORDER BY path LIMIT 1 OFFSET ${count - 1}), x'ff')`
  const range = `${IS_OWNED} AND path > ? AND path <= ?`
  return {
    /** The path up to which so many answers and lists follow; a blob, which sorts after every text, for all of the rest. */
    boundary: db
      .prepare<[string, string], string | Buffer>(
        `SELECT min(${nth('catalog_answer', answers)}, ${nth('catalog_list', lists)})`,
      )
      .pluck(),
    /** A path may have both an answer and a list. */
    served: db
      .prepare<[number, string, string | Buffer, number, string, string | Buffer], Uint8Array>(
        `SELECT ${joined("path || ' ' || kind || ' ' || state || char(10)")} FROM (
           SELECT path, iif(status = 204, 'none', 'answer') AS kind, hex(sha256) || ' ' || links AS state
             FROM catalog_answer WHERE ${range}
           UNION ALL SELECT path, 'list', frame FROM catalog_list WHERE ${range} ORDER BY 1, 2)`,
      )
      .pluck(),
    digests: db
      .prepare<[string, number, number], Block<number>>(
        `SELECT ${joined('CAST(? AS BLOB) || sha')}, max(ordinal) FROM (
           SELECT sha, ordinal FROM catalog_entry WHERE list = ? AND ordinal > ? ORDER BY ordinal LIMIT ${items})`,
      )
      .raw(),
    items: db
      .prepare<[string, number, string], Block<string>>(
        `SELECT ${joined(`'["item",' || json_quote(?) || ',' || json_quote(id) || ',"' || lower(hex(sha)) || '"]' || char(10)`)}, max(id)
         FROM (SELECT id, sha FROM catalog_entry WHERE list = ? AND id > ? ORDER BY id LIMIT ${items})`,
      )
      .raw(),
    answers: db
      .prepare<[number, string], Block<string>>(
        `SELECT ${joined(`'["answer",' || json_quote(path) || ',"' || lower(hex(sha256)) || '",' || json_quote(links) || ']' || char(10)`)}, max(path)
         FROM (SELECT path, sha256, links FROM catalog_answer WHERE status = 200 AND ${IS_OWNED} AND path > ?
           ORDER BY path LIMIT ${answers})`,
      )
      .raw(),
  }
}
