import {
  type CatalogAnswer,
  type MissingPath,
  type StoredAnswer,
  answerState,
  createCatalogAnswerReader,
} from './answers.ts'
import type { Db } from '../database/open.ts'
import { createDateFloorReader } from '../feeds/date-floor.ts'
import { nextChanged } from '../feeds/documents.ts'
import { MARK_SIGNATURES } from './signatures.ts'
import type { ChangeTracker } from '../changes/tracker.ts'

/** An answer that was fetched and is not published yet. */
export type FetchedAnswer = Omit<CatalogAnswer, 'changed'>

/**
 * Creates writes of the catalog's answers. All except `keepFetched` belong inside the transaction that publishes;
 * changes are recorded for the change log.
 */
export function createCatalogAnswerWriter(db: Db, tracker: ChangeTracker) {
  const sql = prepareAnswerWrites(db)
  const reader = createCatalogAnswerReader(db)
  const publish = createPublication(sql, tracker, createDateFloorReader(db))
  return {
    ...reader,
    ...createConfirmations(db),
    /** Stores an answer until it is published; it survives the process. */
    keepFetched: (answer: FetchedAnswer): void => {
      const { links, mentions } = answer
      const texts = { links: JSON.stringify(links), mentions: JSON.stringify(mentions) }
      sql.keep.run({ type: null, ...answer, ...texts })
    },
    ...createFetchedAnswers(sql),
    /** Publishes the fetched answers of the owned resources for the wanted paths; deletes their other ones. */
    publishFetched(owned: (resource: string) => boolean, wanted: (path: string) => boolean, now: number): number {
      let count = 0
      let areAllOwned = true
      for (const [, path, resource] of fetchedRows(sql)) {
        areAllOwned &&= owned(resource)
        if (owned(resource) && wanted(path) && publish(path, now)) count++
      }
      if (areAllOwned) sql.dropAllFetched.run()
      else for (const [, path, resource] of fetchedRows(sql)) if (owned(resource)) sql.dropFetched.run(path)
      return count
    },
    /** Publishes the fetched answers of these paths only. */
    publishPaths(paths: readonly string[], now: number): void {
      for (const path of paths) {
        publish(path, now)
        sql.dropFetched.run(path)
      }
    },
    /** Stores which paths of the owned resources could not be fetched; of a repeated path the last one. */
    replaceMissingPaths(owned: (resource: string) => boolean, paths: Iterable<MissingPath>): void {
      for (const { path, resource } of reader.listMissingPaths()) if (owned(resource)) sql.removeMissing.run(path)
      for (const missing of paths) sql.addMissing.run({ status: null, ...missing })
    },
    removeAnswer: (path: string): void => {
      tracker.record(path, reader.readAnswerState(path), null)
      sql.removeAnswer.run(path)
      sql.dropSignatures.run(path)
    },
  }
}

/** Returns a function that publishes the fetched answer of a path; false: there is none. It stays with the fetched ones. */
function createPublication(
  sql: ReturnType<typeof prepareAnswerWrites>,
  tracker: ChangeTracker,
  { lastServed }: ReturnType<typeof createDateFloorReader>,
) {
  return (path: string, now: number): boolean => {
    const before = sql.answerState.get(path)
    if (before === undefined && !tracker.isComplete()) {
      adoptSignature(sql, path)
      return sql.adopt.run(nextChanged(null, null, now), path).changes > 0 // no log lists it
    }
    const fetched = sql.fetchedState.get(path)
    if (fetched === undefined) return false
    if (before !== undefined) before.links = JSON.stringify(JSON.parse(before.links))
    const same =
      before?.status === fetched.status && before.sha256.equals(fetched.sha256) && before.links === fetched.links
    const changed = same ? before.changed : nextChanged(lastServed(before?.changed ?? null), null, now)
    tracker.record(path, answerState(before ?? null), answerState(fetched))
    sql.adopt.run(changed, path)
    adoptSignature(sql, path)
    return true
  }
}

/** Publishes what the signatures of a fetched answer came to, if they were verified. */
function adoptSignature(sql: ReturnType<typeof prepareAnswerWrites>, path: string): void {
  if (sql.adoptSignature.run(path).changes === 0) return
  sql.dropFetchedSignature.run(path)
  sql.markSignatures.run()
}

/** Creates reads and removals of answers that are fetched and not published. */
function createFetchedAnswers(sql: ReturnType<typeof prepareAnswerWrites>) {
  return {
    /** Status of a path's fetched answer, and the digest of its owner when it was fetched; null: none. */
    readFetched: (path: string): Pick<FetchedAnswer, 'status' | 'ownerSha'> | null => sql.fetched.get(path) ?? null,
    /** The fetched answer of a path with its bytes; null: none. */
    readFetchedBody: (path: string): Pick<FetchedAnswer, 'status' | 'body' | 'size'> | null =>
      sql.fetchedBody.get(path) ?? null,
    /** Paths of the fetched answers. */
    eachFetchedPath: (): IterableIterator<string> => sql.fetchedNames.iterate(),
    /** The fetched answers about VEX and SBOMs, with what they link to and what the published ones do. */
    listFetchedArtifacts: (): FetchedArtifact[] =>
      sql.fetchedArtifacts.all().map(({ before, now, ...row }) => {
        return { ...row, before: before === null ? null : digestsIn(before), now: digestsIn(now) }
      }),
    /** Whether a fetched answer replaces one that links to other documents. */
    replacesLinks: (path: string): boolean => sql.otherLinks.get(path) === 1,
    /** Whether a fetched answer of a tag mentions other artifact sets than the published one. */
    movesMentions: (): boolean => sql.otherMentions.get() === 1,
    /** `[set, owner, path]` of each artifact set that the published answer about an item mentions, where the fetched one mentions none. */
    listLostMentions: (): [string, string, string][] => sql.lostMentions.all(),
    /** Deletes fetched answers, so that they are requested again. */
    dropFetched: (paths: readonly string[]): void => {
      for (const path of paths) sql.dropFetched.run(path)
    },
  }
}

/** A fetched answer about VEX or an SBOM: SHA-256 of the documents, hex. */
export interface FetchedArtifact {
  readonly path: string
  readonly owner: string
  /** Those of the published answer; null: there is none. */
  readonly before: readonly string[] | null
  /** None where upstream has no such answer any more. */
  readonly now: readonly string[]
  /** When the SBOM that is published of the same owner last changed, Unix seconds; null: there is none. */
  readonly sbomChanged: number | null
}

function digestsIn(links: string): string[] {
  return (JSON.parse(links) as { digest: string }[]).map(({ digest }) => digest)
}

/** Creates writes of when answers were confirmed, and under which item; only their age changes for clients. */
function createConfirmations(db: Db) {
  const sql = {
    confirm: db.prepare('UPDATE catalog_answer SET owner = ?, owner_sha = ?, confirmed_at = ? WHERE path = ?'),
    confirmAt: db.prepare('UPDATE catalog_answer SET confirmed_at = ? WHERE path = ?'),
    askAgain: db.prepare("UPDATE catalog_answer SET owner_sha = x'00' WHERE path = ?"),
  }
  return {
    /** Confirms an unchanged answer under its current item; `at`: upstream's date, Unix milliseconds. */
    confirmAnswer: (path: string, by: Pick<StoredAnswer, 'owner' | 'ownerSha'>, at: number): void => {
      sql.confirm.run(by.owner, by.ownerSha, at, path)
    },
    /** Confirms unchanged answers: path and upstream's date, Unix milliseconds. */
    confirmAnswers: (answers: readonly (readonly [path: string, at: number])[]): void => {
      for (const [path, at] of answers) sql.confirmAt.run(at, path)
    },
    /** Makes the next sync request these answers, even if their list items are unchanged. */
    askAgain: (paths: readonly string[]): void => {
      for (const path of paths) sql.askAgain.run(path)
    },
  }
}

const ROWS_AT_A_TIME = 1000

/** Iterates over the fetched answers, without their bytes; rows that were yielded may be deleted meanwhile. */
function* fetchedRows({ fetchedPaths }: ReturnType<typeof prepareAnswerWrites>) {
  for (let after: number | undefined = 0; after !== undefined;) {
    const rows: FetchedRow[] = fetchedPaths.all(after, ROWS_AT_A_TIME)
    yield* rows
    after = rows.at(-1)?.[0]
  }
}

type FetchedRow = [rowid: number, path: string, resource: string]

type FetchedArtifactRow = Omit<FetchedArtifact, 'before' | 'now'> & {
  now: string
  before: string | null
}

type AnswerStateRow = Pick<FetchedAnswer, 'status' | 'sha256'> & { links: string }

/** SQL: whether a fetched answer of a tag mentions other artifact sets than the published one. */
const OTHER_MENTIONS = `SELECT EXISTS (SELECT 1 FROM catalog_fetched f JOIN catalog_answer a USING (path)
  WHERE substr(f.owner, 1, 5) = 'tags/' AND a.mentions <> f.mentions)`

/** SQL: each artifact set that the published answer about an item mentions, where the fetched one mentions none. */
const LOST_MENTIONS = `SELECT mentioned.value, a.owner, a.path
  FROM catalog_fetched f JOIN catalog_answer a USING (path), json_each(a.mentions) AS mentioned
  WHERE f.resource <> 'releases' AND f.status = 200 AND f.mentions = '[]'`

function prepareAnswerWrites(db: Db) {
  const columns =
    'path, resource, owner, owner_sha, status, body, size, sha256, etag, links, mentions, confirmed_at, type'
  const named =
    '@path, @resource, @owner, @ownerSha, @status, @body, @size, @sha256, @etag, @links, @mentions, @confirmedAt, @type'
  return {
    /** Copies a fetched answer within the database. */
    adopt: db.prepare(
      `INSERT OR REPLACE INTO catalog_answer (${columns}, changed)
         SELECT ${columns}, ? FROM catalog_fetched WHERE path = ?`,
    ),
    adoptSignature: db.prepare(
      `INSERT OR REPLACE INTO catalog_signature
         SELECT path, 0, answer, basis, state, signer, reason, subject, enforced
         FROM catalog_signature WHERE path = ? AND fetched = 1`,
    ),
    markSignatures: db.prepare(MARK_SIGNATURES),
    dropFetchedSignature: db.prepare('DELETE FROM catalog_signature WHERE path = ? AND fetched = 1'),
    dropSignatures: db.prepare('DELETE FROM catalog_signature WHERE path = ?'),
    answerState: db.prepare<[string], AnswerStateRow & { changed: number }>(
      'SELECT status, sha256, links, changed FROM catalog_answer WHERE path = ?',
    ),
    fetchedState: db.prepare<[string], AnswerStateRow>(
      'SELECT status, sha256, links FROM catalog_fetched WHERE path = ?',
    ),
    keep: db.prepare(`INSERT OR REPLACE INTO catalog_fetched (${columns}) VALUES (${named})`),
    fetched: db.prepare<[string], Pick<FetchedAnswer, 'status' | 'ownerSha'>>(
      'SELECT status, owner_sha AS ownerSha FROM catalog_fetched WHERE path = ?',
    ),
    fetchedNames: db.prepare<[], string>('SELECT path FROM catalog_fetched').pluck(),
    fetchedPaths: db
      .prepare<[number, number], FetchedRow>(
        'SELECT rowid, path, resource FROM catalog_fetched WHERE rowid > ? ORDER BY rowid LIMIT ?',
      )
      .raw(),
    fetchedBody: db.prepare<[string], Pick<FetchedAnswer, 'status' | 'body' | 'size'>>(
      'SELECT status, body, size FROM catalog_fetched WHERE path = ?',
    ),
    otherLinks: db
      .prepare<[string], number>(
        'SELECT a.links <> f.links FROM catalog_answer a JOIN catalog_fetched f USING (path) WHERE path = ?',
      )
      .pluck(),
    otherMentions: db.prepare<[], number>(OTHER_MENTIONS).pluck(),
    lostMentions: db.prepare<[], [string, string, string]>(LOST_MENTIONS).raw(),
    fetchedArtifacts: db.prepare<[], FetchedArtifactRow>(
      `SELECT f.path, f.owner, iif(f.status = 200, f.links, '[]') AS now, a.links AS before,
         (SELECT max(s.changed) FROM catalog_answer s WHERE s.owner = f.owner AND s.status = 200 AND substr(s.path, -5) = '/sbom') AS sbomChanged
       FROM catalog_fetched f LEFT JOIN catalog_answer a ON a.path = f.path AND a.status = 200
       WHERE (f.status = 200 OR a.path IS NOT NULL) AND (substr(f.path, -4) = '/vex' OR substr(f.path, -5) = '/sbom')`,
    ),
    dropFetched: db.prepare('DELETE FROM catalog_fetched WHERE path = ?'),
    /** Without a condition: SQLite frees the pages of the table without deleting row by row. */
    dropAllFetched: db.prepare('DELETE FROM catalog_fetched'),
    removeMissing: db.prepare('DELETE FROM catalog_lacking WHERE path = ?'),
    addMissing: db.prepare(
      'INSERT OR REPLACE INTO catalog_lacking (path, resource, reason, status) VALUES (@path, @resource, @reason, @status)',
    ),
    removeAnswer: db.prepare('DELETE FROM catalog_answer WHERE path = ?'),
  }
}
