import { dirname } from 'node:path'
import type { SourceName } from '../../base/domain/sources.ts'
import type { RunFacts, RunKind, RunState } from '../../base/reports/runs.ts'
import { isLocked } from '../database/lock.ts'
import type { Db } from '../database/open.ts'
import { openAnyVersion } from '../database/sqlite.ts'

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

/** A row of the run log as it is stored. */
export interface Row {
  id: number
  source: SourceName
  kind: RunKind
  trigger: RunTrigger
  pid: number
  started_at: number
  ended_at: number | null
  state: RunState
  as_of: number | null
  snapshot: string | null
  code: string | null
  message: string | null
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
export const ORPHANED = {
  state: 'failed',
  code: 'aborted',
  message: 'the process ended before the run did; nothing was committed',
} as const

const BY_ID = 'SELECT * FROM run WHERE id = ?'

/** Returns a row as it is committed now, on a connection of its own: one with an open transaction sees an earlier state. */
function readCommitted(file: string, id: number): Row | undefined {
  const fresh = openAnyVersion(file)
  try {
    return fresh.prepare<[number], Row>(BY_ID).get(id)
  } finally {
    fresh.close()
  }
}

/** Shows a row as it is now: one without an end, while no process has the sync lock, is of a process that has ended. */
export function createSight(db: Db) {
  const byId = db.prepare<[number], Row>(BY_ID)
  /** Whether a run may be running: any without an end is of a process that has ended, where this is false. */
  const mayRun = (): boolean => isLocked(dirname(db.name), 'sync')
  const current = (row: Row): Run => {
    const run = fromRow(row)
    if (run.endedAt !== null || mayRun()) return run
    // It may have ended before the lock was looked at.
    const now = (db.inTransaction ? readCommitted(db.name, row.id) : byId.get(row.id)) ?? row
    return now.ended_at === null ? { ...run, ...ORPHANED } : fromRow(now)
  }
  const see = (row: Row | undefined): Run | null => (row === undefined ? null : current(row))
  return { byId, mayRun, current, see }
}
