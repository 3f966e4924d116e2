import { operatorName } from '../../base/domain/run-facts.ts'
import type { SourceName } from '../../base/domain/sources.ts'
import type { Db } from '../database/open.ts'
import { queries } from '../database/query.ts'
import { type Run, createDecisionWriter } from './runs.ts'

/** A document that a guard refused, stored so that one command can apply it. */
export interface Quarantine {
  runId: number
  source: SourceName
  path: string
  reason: string
  sha256: Buffer
  /** The refused document, a gzip member. */
  body: Buffer
  etag: string | null
  lastModified: string | null
  /** Upstream's date of the document, Unix milliseconds. */
  asOf: number
  decision: 'approved' | 'rejected' | 'superseded' | null
}

/** A refused change without its document, and when it was decided about, Unix milliseconds; null: never. */
export type Refusal = Pick<Quarantine, 'runId' | 'source' | 'path' | 'reason' | 'decision'> & {
  decidedAt: number | null
}

type Decision = Pick<Quarantine, 'runId' | 'source' | 'reason'> & {
  readonly decision: 'approved' | 'rejected'
}

/** Returns the run that stored what a run refused: itself, or the earlier one whose refused content it met again. */
export function refusedBy({ id, facts }: Pick<Run, 'id' | 'facts'>): number {
  const { quarantine: stored } = facts
  return typeof stored === 'number' ? stored : id
}

const COLUMNS =
  'run_id AS runId, source, path, reason, sha256, body, etag, last_modified AS lastModified, as_of AS asOf, decision'

/** Creates reads of quarantined documents; usable on any connection. */
export function createQuarantineReader(db: Db) {
  const { one, all, value, count, exists } = queries(db)
  return {
    readQuarantine: one<[runId: number], Quarantine>(`SELECT ${COLUMNS} FROM quarantine WHERE run_id = ?`),
    readRefusal: one<[runId: number], Refusal>(
      `SELECT run_id AS runId, source, path, reason, decision, decided_at AS decidedAt
       FROM quarantine WHERE run_id = ?`,
    ),
    /** The open or rejected quarantine of exactly this content, so that it is not stored twice. */
    findQuarantine: one<[path: string, sha256: Buffer], Quarantine>(
      `SELECT ${COLUMNS} FROM quarantine WHERE path = ? AND sha256 = ?
       AND (decision IS NULL OR decision = 'rejected') ORDER BY run_id DESC LIMIT 1`,
    ),
    /** Whether exactly this content was approved, and refused by a run later than `runId`. */
    isApprovedSince: exists<[path: string, sha256: Buffer, runId: number]>(
      `SELECT 1 FROM quarantine WHERE path = ? AND sha256 = ? AND run_id > ? AND decision = 'approved'`,
    ),
    listOpenQuarantines: all<[], { runId: number; source: SourceName; path: string; reason: string }>(
      'SELECT run_id AS runId, source, path, reason FROM quarantine WHERE decision IS NULL ORDER BY run_id',
    ),
    /** What somebody approved or rejected; approved ones are deleted after a while. */
    listDecisions: all<[], Decision>(
      `SELECT run_id AS runId, source, reason, decision FROM quarantine WHERE decision IN ('approved', 'rejected')`,
    ),
    /** When the first run began, after the run `published`, whose refused change is neither approved nor gone; null: none. */
    readHeldSince: value<[source: SourceName, published: number], number>(
      `SELECT min(r.started_at) FROM quarantine q JOIN run r ON r.id = q.run_id
       WHERE q.source = ? AND q.run_id > ? AND (q.decision IS NULL OR q.decision = 'rejected')`,
    ),
    /** When a run last refused a change, or one was decided about, Unix milliseconds; null: never. */
    readLastMoved: value<[], number>(
      `SELECT max(max(coalesce(r.ended_at, r.started_at), coalesce(q.decided_at, 0)))
       FROM quarantine q JOIN run r ON r.id = q.run_id`,
    ),
    countOpen: count<[source: SourceName]>('SELECT count(*) FROM quarantine WHERE decision IS NULL AND source = ?'),
  }
}

/** Creates writes of quarantined documents and of the decisions about them. */
export function createQuarantineWriter(db: Db) {
  const { run } = queries(db)
  const insert = db.prepare(
    `INSERT INTO quarantine (run_id, source, path, reason, sha256, body, etag, last_modified, as_of)
     VALUES (@runId, @source, @path, @reason, @sha256, @body, @etag, @lastModified, @asOf)`,
  )
  const decide = db.prepare(
    `UPDATE quarantine SET decision = ?, decided_at = ?
     WHERE run_id = ? AND (decision IS NULL OR decision <> 'approved')`,
  )
  const recordDecision = createDecisionWriter(db)
  const supersede = db.prepare(
    `UPDATE quarantine SET decision = 'superseded', decided_at = ? WHERE path = ? AND decision IS NULL`,
  )
  return {
    ...createQuarantineReader(db),
    keepQuarantine: (quarantine: Omit<Quarantine, 'decision'>): void => {
      supersede.run(quarantine.asOf, quarantine.path) // the newest refused version is the one to decide about
      insert.run(quarantine)
    },
    /**
     * Stores a decision, and in the refused run that the operator of this process made it: call it in the transaction that publishes.
     * Returns false if the quarantine does not exist or was approved before; publishing supersedes it, approving names it.
     */
    decideQuarantine: db.transaction((runId: number, decision: 'approved' | 'rejected', now: number): boolean => {
      if (decide.run(decision, now, runId).changes === 0) return false
      recordDecision(runId, decision, operatorName())
      return true
    }),
    /** Closes open quarantines of a document once a valid version of it has been published. */
    supersedeQuarantines: (path: string, now: number): void => {
      supersede.run(now, path)
    },
    forgetQuarantines: run<[before: number]>(
      `DELETE FROM quarantine WHERE decision IS NOT NULL AND decision <> 'rejected' AND decided_at < ?`,
    ),
  }
}
