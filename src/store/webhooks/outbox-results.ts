import type { Db } from '../database/open.ts'
import { queries } from '../database/query.ts'

/**
 * The result of an attempt, to be stored. Times are Unix milliseconds. `seen`: the target's consecutive failures when
 * the attempt began, so that several concurrent failures count as one. `latest`: the latest possible end of a pause; a
 * later one was stored before the clock went backwards.
 */
export type DeliveryResult = {
  target: number
  event: number
  at: number
  seen: number
  latest: number
} & (
  | { kind: 'done' }
  | { kind: 'disabled'; reason: string }
  | { kind: 'retry'; reason: string; dueAt: number; targetDueAt: number | null }
)

/** Delay before the backlog is retried once a target has recovered, milliseconds. */
const SOON_MS = 60_000

/** Creates the writes of results. A result whose target or event does not exist any more is skipped. */
export function createSettling(db: Db) {
  const sql = prepareSettling(db)
  const advance = (target: number, at: number): void => {
    sql.advance.run({ target, at })
  }
  return { advance, settle: (settled: DeliveryResult): void => settleOne(sql, settled) }
}

function settleOne(sql: ReturnType<typeof prepareSettling>, settled: DeliveryResult): void {
  const { target, event, at } = settled
  if (settled.kind === 'done') {
    sql.done.run(target, event)
    if (sql.state.get(target) === 'failing') sql.advance.run({ target, at: at + SOON_MS })
    sql.succeeded.run(at, target)
  } else if (settled.kind === 'disabled') {
    sql.disable.run({ at, reason: settled.reason, target })
    sql.dropDeliveries.run(target)
  } else {
    const { reason, dueAt, targetDueAt, seen, latest } = settled
    sql.postpone.run(dueAt, target, event)
    if (targetDueAt === null) sql.refused.run({ at, reason, target })
    else sql.failed.run({ at, reason, dueAt: targetDueAt, target, seen, latest })
  }
}

function prepareSettling(db: Db) {
  return {
    dropDeliveries: db.prepare('DELETE FROM relay_delivery WHERE target = ?'),
    done: db.prepare('DELETE FROM relay_delivery WHERE target = ? AND event = ?'),
    state: db.prepare<[number], string>('SELECT state FROM relay_target WHERE id = ?').pluck(),
    advance: db.prepare('UPDATE relay_delivery SET due_at = @at WHERE target = @target AND due_at > @at'),
    succeeded: db.prepare(
      `UPDATE relay_target SET state = iif(state = 'disabled', state, 'ok'), failures = 0, due_at = 0,
         since = iif(state = 'disabled', since, NULL), delivered_at = ? WHERE id = ?`,
    ),
    disable: db.prepare(
      `UPDATE relay_target SET state = 'disabled', since = @at, reason = @reason, failed_at = @at WHERE id = @target`,
    ),
    postpone: db.prepare(
      'UPDATE relay_delivery SET attempts = attempts + 1, due_at = ? WHERE target = ? AND event = ?',
    ),
    refused: db.prepare('UPDATE relay_target SET reason = @reason, failed_at = @at WHERE id = @target'),
    failed: db.prepare(
      `UPDATE relay_target SET state = 'failing', since = coalesce(since, @at), failures = max(failures, @seen + 1),
         due_at = max(iif(due_at > @latest, 0, due_at), @dueAt), reason = @reason, failed_at = @at
       WHERE id = @target AND state <> 'disabled'`,
    ),
  }
}

/** A log that is relayed: the table of its cursor, and the column of each target's first position in it. */
const LOGS = {
  snapshot: { cursor: 'relay_cursor', first: 'log' },
  findings: { cursor: 'relay_findings', first: 'findings' },
} as const

/** The logs that are relayed: published snapshots, and changed findings of tags. */
export type RelayedLog = keyof typeof LOGS

/** Creates reads and writes of the relay's positions in each log. */
export function createRelayCursors(db: Db) {
  return { snapshot: createCursor(db, 'snapshot'), findings: createCursor(db, 'findings') }
}

/**
 * Creates reads and writes of the relay's position in a log, which is identified by the instance of its database, and of each
 * target's first position.
 */
function createCursor(db: Db, of: RelayedLog) {
  const { exists, run, value } = queries(db)
  const { cursor, first } = LOGS[of]
  const placeAll = db.prepare(`UPDATE relay_target SET ${first} = ?`)
  const move = db.prepare(`INSERT OR REPLACE INTO ${cursor} (only, instance, log) VALUES (1, ?, ?)`)
  const skip = db.transaction((instance: string, log: number): void => {
    placeAll.run(log)
    move.run(instance, log)
  })
  return {
    /** How far the log of this database was relayed; null: never. */
    read: value<[instance: string], number>(`SELECT log FROM ${cursor} WHERE instance = ?`),
    /** Whether there is a target that `place` has not seen. */
    hasNewTargets: exists<[]>(`SELECT 1 FROM relay_target WHERE ${first} IS NULL`),
    /** Sets the log's end as the start of new targets: they receive nothing from before. */
    place: run<[log: number]>(`UPDATE relay_target SET ${first} = ? WHERE ${first} IS NULL`),
    /** Stores how far the log was relayed; within the transaction of its messages. */
    move: (instance: string, log: number): void => void move.run(instance, log),
    /** Skips the log up to here for all targets, whatever position was stored. */
    skipTo: (instance: string, log: number): void => skip.immediate(instance, log),
    /** Forgets the position: the log is skipped to its end when it is looked at the next time. */
    forget: run<[]>(`DELETE FROM ${cursor}`),
  }
}
