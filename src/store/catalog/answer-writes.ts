import {
  type CatalogAnswer,
  type StoredAnswer,
  answerState,
  createCatalogAnswerReader,
} from './answers.ts'
import type { Db } from '../database/open.ts'
import { nextChanged } from '../feeds/documents.ts'
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
  const publish = (row: FetchedRow, now: number): void => {
    const before = reader.readAnswer(row.path)
    const same =
      before !== null &&
      before.status === row.status &&
      before.sha256.equals(row.sha256) &&
      JSON.stringify(before.links) === row.links
    const changed = same ? before.changed : nextChanged(before?.changed ?? null, null, now)
    tracker.record(row.path, answerState(before), answerState(row))
    sql.answer.run({ ...row, changed })
  }
  return {
    ...reader,
    ...createConfirmations(db),
    /** Stores an answer until it is published; it survives the process. */
    keepFetched: (answer: FetchedAnswer): void => {
      const { links, mentions } = answer
      sql.keep.run({ ...answer, links: JSON.stringify(links), mentions: JSON.stringify(mentions) })
    },
    ...createFetchedAnswers(sql),
    /** Publishes the fetched answers of the owned resources for the wanted paths; deletes their other ones. */
    publishFetched(
      owned: (resource: string) => boolean,
      wanted: (path: string) => boolean,
      now: number,
    ): number {
      let count = 0
      for (const { path, resource } of sql.fetchedPaths.all()) {
        if (!owned(resource)) continue
        const row = wanted(path) ? sql.fetchedRow.get(path) : undefined
        if (row !== undefined) {
          publish(row, now)
          count++
        }
        sql.dropFetched.run(path)
      }
      return count
    },
    /** Publishes the fetched answers of these paths only. */
    publishPaths(paths: readonly string[], now: number): void {
      for (const path of paths) {
        const row = sql.fetchedRow.get(path)
        if (row !== undefined) publish(row, now)
        sql.dropFetched.run(path)
      }
    },
    /** Stores which paths of the owned resources could not be fetched: path → resource. */
    replaceMissingPaths(
      owned: (resource: string) => boolean,
      paths: ReadonlyMap<string, string>,
    ): void {
      for (const { path, resource } of reader.listMissingPaths())
        if (owned(resource)) sql.removeMissing.run(path)
      for (const [path, resource] of paths) sql.addMissing.run(path, resource)
    },
    removeAnswer: (path: string): void => {
      tracker.record(path, reader.readAnswerState(path), null)
      sql.removeAnswer.run(path)
    },
  }
}

/** Creates reads and removals of answers that are fetched and not published. */
function createFetchedAnswers(sql: ReturnType<typeof prepareAnswerWrites>) {
  return {
    /** Status of a path's fetched answer, and the digest of its owner when it was fetched; null: none. */
    readFetched: (path: string): Pick<FetchedAnswer, 'status' | 'ownerSha'> | null =>
      sql.fetched.get(path) ?? null,
    /** The fetched answer of a path with its bytes; null: none. */
    readFetchedBody: (path: string): Pick<FetchedAnswer, 'status' | 'body' | 'size'> | null =>
      sql.fetchedRow.get(path) ?? null,
    /** Paths of the fetched answers. */
    eachFetchedPath: (): IterableIterator<string> => sql.fetchedNames.iterate(),
    /** Deletes fetched answers, so that they are requested again. */
    dropFetched: (paths: readonly string[]): void => {
      for (const path of paths) sql.dropFetched.run(path)
    },
  }
}

/** Creates writes of when answers were confirmed, and under which item; only their age changes for clients. */
function createConfirmations(db: Db) {
  const sql = {
    confirm: db.prepare(
      'UPDATE catalog_answer SET owner = ?, owner_sha = ?, confirmed_at = ? WHERE path = ?',
    ),
    confirmAt: db.prepare('UPDATE catalog_answer SET confirmed_at = ? WHERE path = ?'),
    askAgain: db.prepare("UPDATE catalog_answer SET owner_sha = x'00' WHERE path = ?"),
  }
  return {
    /** Confirms an unchanged answer under its current item; `at`: upstream's date, Unix milliseconds. */
    confirmAnswer: (
      path: string,
      by: Pick<StoredAnswer, 'owner' | 'ownerSha'>,
      at: number,
    ): void => {
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

type FetchedRow = Omit<FetchedAnswer, 'links' | 'mentions'> & { links: string; mentions: string }

function prepareAnswerWrites(db: Db) {
  const columns =
    'path, resource, owner, owner_sha, status, body, size, sha256, etag, links, mentions, confirmed_at'
  const named =
    '@path, @resource, @owner, @ownerSha, @status, @body, @size, @sha256, @etag, @links, @mentions, @confirmedAt'
  return {
    answer: db.prepare(
      `INSERT OR REPLACE INTO catalog_answer (${columns}, changed) VALUES (${named}, @changed)`,
    ),
    keep: db.prepare(`INSERT OR REPLACE INTO catalog_fetched (${columns}) VALUES (${named})`),
    fetched: db.prepare<[string], Pick<FetchedAnswer, 'status' | 'ownerSha'>>(
      'SELECT status, owner_sha AS ownerSha FROM catalog_fetched WHERE path = ?',
    ),
    fetchedNames: db.prepare<[], string>('SELECT path FROM catalog_fetched').pluck(),
    fetchedPaths: db.prepare<[], { path: string; resource: string }>(
      'SELECT path, resource FROM catalog_fetched',
    ),
    fetchedRow: db.prepare<[string], FetchedRow>(
      `SELECT path, resource, owner, owner_sha AS ownerSha, status, body, size, sha256, etag, links,
         mentions, confirmed_at AS confirmedAt FROM catalog_fetched WHERE path = ?`,
    ),
    dropFetched: db.prepare('DELETE FROM catalog_fetched WHERE path = ?'),
    removeMissing: db.prepare('DELETE FROM catalog_lacking WHERE path = ?'),
    addMissing: db.prepare('INSERT OR REPLACE INTO catalog_lacking VALUES (?, ?)'),
    removeAnswer: db.prepare('DELETE FROM catalog_answer WHERE path = ?'),
  }
}
