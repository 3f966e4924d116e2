import type { SourceName } from '../../base/domain/sources.ts'
import type { ChangeTracker } from '../changes/tracker.ts'
import type { Db } from '../database/open.ts'
import { queries } from '../database/query.ts'
import { createDateFloorReader, raiseDateFloor } from './date-floor.ts'

/** A complete JSON document served at one path: the index, the patch feed, the system matrix, an extra feed. */
export interface Document {
  path: string
  source: SourceName
  /** A gzip member of upstream's bytes; null when upstream answered 404. */
  body: Buffer | null
  /** Bytes of the content. */
  size: number
  sha256: Buffer
  /** Last-Modified, unix seconds; only ever moves forward. */
  changed: number
  /** Packages or records inside. */
  entries: number
}

/** Upstream's validators for the stored document, and upstream's bytes if the mirror serves different ones. */
export interface UpstreamState {
  etag: string | null
  lastModified: string | null
  body: Buffer | null
}

/** Creates reads of documents and of upstream's validators for them; usable on any connection. */
export function createDocumentReader(db: Db) {
  const { exists, one } = queries(db)
  const list = db.prepare<[string], Omit<Document, 'body'> & { present: number }>(
    'SELECT path, source, present, size, sha256, changed, entries FROM document WHERE source = ? ORDER BY path',
  )
  // By its type, so that the body is not read.
  const hasBody = db
    .prepare<[string], number>("SELECT typeof(body) = 'blob' FROM upstream_state WHERE path = ?")
    .pluck()
  return {
    ...createDateFloorReader(db),
    readDocument: one<[path: string], Document>(
      'SELECT path, source, body, size, sha256, changed, entries FROM document WHERE path = ?',
    ),
    /** Whether there is a row for a path, also one that records that upstream has no document there. */
    hasDocument: exists<[path: string]>('SELECT 1 FROM document WHERE path = ?'),
    /** All documents of a source by path, without their bodies. */
    listDocuments: (source: SourceName) =>
      list.all(source).map(({ present, ...row }) => ({ ...row, present: present === 1 })),
    readUpstreamState: one<[path: string], UpstreamState>(
      'SELECT etag, last_modified AS lastModified, body FROM upstream_state WHERE path = ?',
    ),
    /** Whether upstream's own bytes of a document are stored beside the served ones. */
    hasUpstreamBody: (path: string): boolean => hasBody.get(path) === 1,
  }
}

/**
 * Creates writes of documents, to be called inside a transaction of the caller's. Changes of a feed are recorded for the
 * change log; those of the OSV index are not, since its records are.
 */
export function createDocumentWriter(db: Db, tracker: ChangeTracker) {
  const write = db.prepare(
    `INSERT INTO document (path, source, present, body, size, sha256, changed, entries)
     VALUES (@path, @source, @body IS NOT NULL, @body, @size, @sha256, @changed, @entries)
     ON CONFLICT (path) DO UPDATE SET source = @source, present = @body IS NOT NULL, body = @body, size = @size,
       sha256 = @sha256, changed = @changed, entries = @entries`,
  )
  const remove = db.prepare('DELETE FROM document WHERE path = ?')
  const writeState = db.prepare(
    `INSERT INTO upstream_state (path, etag, last_modified, body) VALUES (@path, @etag, @lastModified, @body)
     ON CONFLICT (path) DO UPDATE SET etag = @etag, last_modified = @lastModified, body = @body`,
  )
  const before = db.prepare<[string], Pick<Document, 'source' | 'sha256'> & { present: number }>(
    'SELECT source, sha256, present FROM document WHERE path = ?',
  )
  const noteFeed = (path: string, next: Pick<Document, 'source' | 'sha256' | 'body'> | null) => {
    const stored = before.get(path)
    if ((next ?? stored)?.source !== 'feeds') return
    const was = stored?.present === 1 ? stored.sha256.toString('hex') : null
    const is = next === null || next.body === null ? null : next.sha256.toString('hex')
    tracker.record(path, was, is)
  }
  const removeState = db.prepare('DELETE FROM upstream_state WHERE path = ?')
  return {
    ...createDocumentReader(db),
    replaceDocument: (document: Document): void => {
      noteFeed(document.path, document)
      write.run(document)
    },
    /** Deletes a document and its validators, as when a path is removed from the settings. */
    removeDocument: (path: string): void => {
      noteFeed(path, null)
      remove.run(path)
      removeState.run(path)
    },
    replaceUpstreamState: (path: string, state: UpstreamState): void => {
      writeState.run({ path, ...state })
    },
    raiseDateFloor: (now: number): void => raiseDateFloor(db, now),
  }
}

/**
 * Returns the Last-Modified of a new version, Unix seconds: upstream's date if it is later than the previous one and not
 * in the future, else the smallest later value; never before `least`. Importers compare it with the last value they saw,
 * so it must increase at every change, removals included.
 */
export function nextChanged(
  previous: number | null,
  upstream: number | null,
  now: number,
  least: number | null = null,
): number {
  const nowSeconds = Math.floor(now / 1000)
  const candidate = Math.max(Math.min(upstream ?? nowSeconds, nowSeconds), least ?? 0)
  return previous === null ? candidate : Math.max(candidate, previous + 1)
}
