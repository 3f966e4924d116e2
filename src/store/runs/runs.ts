import { dirname } from 'node:path'
import type { SourceName } from '../../base/domain/sources.ts'
import type { Db } from '../database/open.ts'
import { IN_PART, createRunDates } from './run-dates.ts'
import type { RunFacts, RunKind, RunState } from '../../base/reports/runs.ts'
import { isLocked } from '../database/lock.ts'
import { openAnyVersion } from '../database/sqlite.ts'
import { closing } from '../../base/closing.ts'

export type { RunFacts, RunKind, RunState } from '../../base/reports/runs.ts'

/** What caused a run. `start`: the schedule was missed while this mirror did not run, or did not lead its fleet; `retry`: a first sync had failed, or the disk was full. */
export type RunTrigger = 'schedule' | 'start' | 'retry' | 'command' | 'webhook' | 'inbox' | 'fleet'
/** How a run can end. */
export type RunOutcome = Exclude<RunState, 'running'>

/** A row of the run log. */
export interface Run {
  id: number
  source: SourceName
  kind: RunKind
  trigger: RunTrigger
  pid: number
  /** Unix milliseconds, as every `…At` and `asOf`. */
  startedAt: number
  endedAt: number | null
  state: RunState
  asOf: number | null
  snapshot: string | null
  code: string | null
  message: string | null
  facts: RunFacts
}

/** What an operator decided about a run: what it refused, or what it published and should not be believed. */
type RunDecision = 'approved' | 'rejected' | 'acknowledged'

export type RunStart = Pick<Run, 'source' | 'kind' | 'trigger' | 'startedAt'>
export type RunEnd = Pick<Run, 'asOf' | 'snapshot' | 'code' | 'message' | 'facts'> & {
  state: RunOutcome
  endedAt: number
}

/** The dates of a run, unix milliseconds or ISO 8601, and how it ended. */
interface LastedRun extends Pick<Run, 'state' | 'code'> {
  readonly startedAt: number | string
  readonly endedAt: number | string | null
}

/**
 * Returns how long a run took, milliseconds; null while it runs, and for one whose process died: its row was ended by the
 * next run.
 */
export function lastedMs({ startedAt, endedAt, state, code }: LastedRun): number | null {
  const isOrphan = state === ORPHANED.state && code === ORPHANED.code
  if (endedAt === null || isOrphan) return null
  return new Date(endedAt).getTime() - new Date(startedAt).getTime()
}

/** Which runs are wanted; '' for any. */
interface RunFilter {
  /** Only runs with smaller ids. */
  before: number
  source: SourceName | ''
  kind: RunKind | ''
  state: RunState | ''
  limit: number
}

/** Creates reads of the runs that the state of a source comes from. */
function createResultReads({ lastWhere }: ReturnType<typeof createSight>) {
  const readLatestRun = lastWhere('TRUE')
  const readResult = lastWhere(HAS_RESULT)
  const readWholeResult = lastWhere(`${HAS_RESULT} AND NOT ${IN_PART}`)
  const published = lastWhere(`${HAS_PUBLISHED} AND NOT ${IN_PART} AND snapshot = ?`)
  const doubtful = lastWhere(
    `${HAS_PUBLISHED} AND kind <> 'approve' AND json_extract(facts, '$.doubts') IS NOT NULL
       AND json_extract(facts, '$.decision') IS NOT 'acknowledged' AND ended_at >= ?`,
  )
  return {
    readLatestRun,
    readLatestEndedRun: lastWhere('ended_at IS NOT NULL'),
    /** The last ended run that checked everything: no refresh, and no reconcile of the catalog. */
    readLatestWholeRun: lastWhere(`ended_at IS NOT NULL AND NOT ${IN_PART}`),
    /** The runs with a result that the state of a source comes from: the last one that checked everything, and the last one. */
    readResults(source: SourceName): Run[] {
      const last = readLatestRun(source)
      const isOrphan = last?.endedAt === null && last.state !== 'running'
      return [readWholeResult(source), isOrphan ? last : readResult(source)].filter((run) => run !== null)
    },
    /** The last run that checked everything and decided about it: neither a failed nor a stopped one. */
    readLatestJudged: lastWhere(`state IN ('complete', 'partial', 'quarantined') AND NOT ${IN_PART}`),
    /** The last run that published a snapshot, or found that it still is what upstream has, as far as it could tell. */
    readLatestWith: (source: SourceName, snapshot: string) => published(source, snapshot),
    /** The newest run since a time that published what should not be believed, and was neither approved nor acknowledged. */
    readLatestDoubtful: (source: SourceName, since: number) => doubtful(source, since),
  }
}

const HAS_RESULT = "ended_at IS NOT NULL AND state <> 'stopped'"
const HAS_PUBLISHED = "state IN ('complete', 'partial')"

/** Creates reads of the run log; usable on any connection. */
export function createRunReader(db: Db) {
  const sight = createSight(db)
  const { mayRun, current } = sight
  const origins = db.prepare<[string], { imported: number | null; synced: number | null }>(
    "SELECT max(kind = 'import') AS imported, max(kind IN ('sync', 'refresh', 'reconcile')) AS synced FROM run WHERE source = ?",
  )
  const found = db.prepare<[RunFilter & { open: RunState }], Row>(
    `SELECT * FROM run WHERE id < @before AND (@source = '' OR source = @source) AND (@kind = '' OR kind = @kind)
       AND (@state = '' OR iif(ended_at IS NULL, @open, state) = @state) ORDER BY id DESC LIMIT @limit`,
  )
  const failing = db.prepare<{ source: string }, { since: number | null; runs: number }>(
    `SELECT min(started_at) AS since, count(*) AS runs FROM run WHERE source = @source AND state = 'failed' AND id >
       coalesce((SELECT max(id) FROM run WHERE source = @source AND state IN ('complete', 'partial', 'quarantined')), 0)`,
  )
  const lost = db
    .prepare<{ source: string }, number>(
      `SELECT count(*) FROM run WHERE source = @source AND ${IS_ORPHAN} AND id >
         coalesce((SELECT max(id) FROM run WHERE source = @source AND state <> 'running' AND NOT ${IS_ORPHAN}), 0)`,
    )
    .pluck()
  const list = db.prepare<[number], Row>('SELECT * FROM run ORDER BY id DESC LIMIT ?')
  return {
    readRun: sight.readRun,
    /** When the first of the failed runs began that are the last ones of a source, Unix milliseconds; null: the last did not fail. */
    readFailingSince: (source: SourceName): number | null => failing.get({ source })?.since ?? null,
    /** How many of the last runs of a source failed; 0: the last did not fail. */
    countFailing: (source: SourceName): number => failing.get({ source })?.runs ?? 0,
    /** How many of the last runs of a source ended with their process or thread; 0: the last ended by itself. */
    countLost: (source: SourceName): number => lost.get({ source }) ?? 0,
    ...createResultReads(sight),
    ...createRunDates(db),
    /** Reports whether imports brought all data of a source, by the runs that are kept: none of them asked upstream. */
    isOnlyImported(source: SourceName): boolean {
      const found = origins.get(source)
      return found?.imported === 1 && found.synced === 0
    },
    /** Returns the runs that a filter leaves, newest first; one that was killed is not running. */
    findRuns(filter: RunFilter): Run[] {
      const open = mayRun() ? 'running' : ORPHANED.state
      return found.all({ ...filter, open }).map(current)
    },
    /** Newest first. */
    listRuns: (limit: number) => list.all(limit).map(current),
  }
}

/** Runs that are kept of each source, and refreshes apart: about three weeks of hourly ones. */
const KEEP_RUNS = 500

/** Creates writes of the run log. Every run has a row; a row without an end is running, or its process died. */
export function createRunWriter(db: Db) {
  const insert = db.prepare(
    `INSERT INTO run (source, kind, trigger, pid, started_at, state, facts)
     VALUES (@source, @kind, @trigger, @pid, @startedAt, 'running', '{}')`,
  )
  const end = db.prepare(
    `UPDATE run SET ended_at = @endedAt, state = @state, as_of = @asOf, snapshot = @snapshot,
       code = @code, message = @message, facts = @facts WHERE id = @id`,
  )
  const orphans = db.prepare(
    `UPDATE run SET ended_at = @now, state = @state, code = @code,
       message = iif(id IN (SELECT run_id FROM snapshot), '${ENDED_AFTER}', @message) WHERE ended_at IS NULL`,
  )
  const prune = db.prepare(
    `DELETE FROM run WHERE source = @source AND ${IN_PART} = @part
       AND id NOT IN (SELECT run_id FROM quarantine WHERE decision IS NULL)
       AND id <> coalesce((SELECT max(id) FROM run WHERE source = @source AND state IN ('complete', 'partial') AND NOT ${IN_PART}), 0)
       AND id < (SELECT min(id) FROM (SELECT id FROM run WHERE source = @source AND ${IN_PART} = @part
         ORDER BY id DESC LIMIT @keep))`,
  )
  return {
    ...createRunReader(db),
    startRun: (run: RunStart): number => Number(insert.run({ ...run, pid: process.pid }).lastInsertRowid),
    endRun: (id: number, result: RunEnd): void => {
      end.run({ ...result, id, facts: JSON.stringify(result.facts) })
    },
    recordDecision: createDecisionWriter(db),
    /**
     * Closes the rows of runs whose process died; call it with the sync lock, when every open row is such a row. Returns
     * their number.
     */
    closeOrphanRuns: (now: number): number => orphans.run({ ...ORPHANED, now }).changes,
    /**
     * Deletes old runs, but not the last of everything that published: what is stored follows its settings. Partial runs are counted separately: many events do not displace the runs that determine the
     * data's age.
     */
    pruneRuns: (source: SourceName, keep = KEEP_RUNS): void => {
      for (const part of [0, 1]) prune.run({ source, keep, part })
    },
  }
}

/** Creates what adds to the facts of a quarantined or doubtful run what was decided about it, and who did. */
export function createDecisionWriter(db: Db) {
  const decided = db.prepare(
    "UPDATE run SET facts = json_set(facts, '$.decision', @decision, '$.decidedBy', @by) WHERE id = @id",
  )
  return (id: number, decision: RunDecision, by: string): void => void decided.run({ id, decision, by })
}

/** A row of the run log as it is stored. */
interface Row extends Omit<Run, 'startedAt' | 'endedAt' | 'asOf' | 'facts'> {
  started_at: number
  ended_at: number | null
  as_of: number | null
  facts: string
}

function fromRow(row: Row): Run {
  const { started_at, ended_at, as_of, facts, ...rest } = row
  return {
    ...rest,
    startedAt: started_at,
    endedAt: ended_at,
    asOf: as_of,
    facts: JSON.parse(facts) as RunFacts,
  }
}

/** What a run is whose process ended before it. */
const ORPHANED = {
  state: 'failed',
  code: 'aborted',
  message: 'the process or its sync thread ended before the run did; nothing was committed',
} as const

const IS_ORPHAN = `(state = '${ORPHANED.state}' AND code IS '${ORPHANED.code}')`

/** What is said of one that had published by then. */
const ENDED_AFTER = 'the process or its sync thread ended before the run did, after it had published'

const BY_ID = 'SELECT * FROM run WHERE id = ?'

/** Returns a row as it is committed now, on a connection of its own: one with an open transaction sees an earlier state. */
function readCommitted(file: string, id: number): Row | undefined {
  const fresh = openAnyVersion(file)
  return closing(fresh, () => fresh.prepare<[number], Row>(BY_ID).get(id))
}

/** Shows a row as it is now: one without an end, while no process has the sync lock, is of a process that has ended. */
function createSight(db: Db) {
  const byId = db.prepare<[number], Row>(BY_ID)
  /** Whether a run may be running: any without an end is of a process that has ended, where this is false. */
  const mayRun = (): boolean => isLocked(dirname(db.name), 'sync')
  const published = db.prepare<[number], number>('SELECT 1 FROM snapshot WHERE run_id = ?').pluck()
  const orphaned = (run: Run): Run => {
    const hasPublished = published.get(run.id) !== undefined
    return { ...run, ...ORPHANED, ...(hasPublished && { message: ENDED_AFTER }) }
  }
  const current = (row: Row): Run => {
    const run = fromRow(row)
    if (run.endedAt !== null || mayRun()) return run
    // It may have ended before the lock was looked at.
    const now = (db.inTransaction ? readCommitted(db.name, row.id) : byId.get(row.id)) ?? row
    return now.ended_at === null ? orphaned(run) : fromRow(now)
  }
  const see = (row: Row | undefined): Run | null => (row === undefined ? null : current(row))
  return {
    mayRun,
    current,
    readRun: (id: number): Run | null => see(byId.get(id)),
    /** Creates the read of the last run of a source for which a condition in SQL holds. */
    lastWhere: (condition: string): ((source: SourceName, ...values: (string | number)[]) => Run | null) => {
      const last = db.prepare<[string, ...(string | number)[]], Row>(
        `SELECT * FROM run WHERE source = ? AND ${condition} ORDER BY id DESC LIMIT 1`,
      )
      return (source, ...values) => see(last.get(source, ...values))
    },
  }
}
