import { DAY_MS } from '../../base/time.ts'
import type { RelayStatus } from '../../base/reports/transfer.ts'
import type { Db } from '../database/open.ts'
import { queries } from '../database/query.ts'
import { type TargetSetting, type UnsetTarget, createTargetSettings } from './target-settings.ts'

/** A target of the relay. Times are unix milliseconds. */
export interface RelayTarget {
  id: number
  /** As the settings named it; null: they did not. */
  name: string | null
  /** May contain a token: visible to its owner only. */
  url: string
  /** Delivering, failing temporarily, disabled permanently, or paused: not in the settings. */
  state: RelayStatus['state']
  /** Since when it fails, is disabled or paused. */
  since: number | null
  /** Consecutive failures. */
  failures: number
  /** Earliest time of the next delivery. */
  dueAt: number
  /** Reason of the last failure, one line. */
  reason: string | null
  /** Time of the last failure; null: there was none. */
  failedAt: number | null
  deliveredAt: number | null
  /** Deliveries that expired without success, were dropped when the target was disabled, or would have come since. */
  givenUp: number
  /** Deliveries that are pending. */
  pending: number
}

/** A delivery that is due. */
export interface DueDelivery {
  target: number
  event: number
  attempts: number
  webhookId: string
  body: Buffer
}

/**
 * Selects due deliveries; also those more than `longestMs` ahead, which only a clock that went backwards can have left.
 */
interface DueQuery {
  target: number
  now: number
  longestMs: number
  limit: number
}

/** A relayed event, in relay order. */
interface RelayEvent {
  id: number
  kind: 'webhook' | RelayedLog
  webhookId: string
  createdAt: number
  body: Buffer
}

/** How long an event is tried, and kept for readers of `/-/events` that come back, days: it bridges a long weekend. */
export const RELAY_DAYS = 4

const TARGET = `id, name, url, state, since, failures, due_at AS dueAt, reason, failed_at AS failedAt, delivered_at AS deliveredAt,
  given_up AS givenUp, (SELECT count(*) FROM relay_delivery WHERE target = relay_target.id) AS pending`

/** Creates reads of the relay, on any connection to webhooks.db. */
export function createOutboxReads(db: Db) {
  const { all, value, count } = queries(db)
  return {
    /** When the next delivery is due by its own time and that of its target, unix milliseconds; null when none waits. */
    nextDueAt: value<[], number>(
      `SELECT min(max(due_at, (SELECT min(due_at) FROM relay_delivery WHERE target = relay_target.id)))
         FROM relay_target WHERE state IN ('ok', 'failing')`,
    ),
    listTargets: all<[], RelayTarget>(`SELECT ${TARGET} FROM relay_target ORDER BY id`),
    /** The newest event's id, also if it is pruned; 0 if there was none. */
    lastEvent: count<[]>(
      `SELECT coalesce(max(id), (SELECT seq FROM sqlite_sequence WHERE name = 'relay_event')) FROM relay_event`,
    ),
    countEvents: count<[after: number]>('SELECT count(*) FROM relay_event WHERE id > ?'),
    listEvents: all<[after: number, limit: number], RelayEvent>(
      `SELECT id, kind, webhook_id AS webhookId, created_at AS createdAt, body FROM relay_event
       WHERE id > ? ORDER BY id LIMIT ?`,
    ),
  }
}

export type OutboxReads = ReturnType<typeof createOutboxReads>

/** Creates reads and writes of the relay. Each write is one transaction; it is durable when it returns. */
export function createRelayOutbox(db: Db) {
  const sql = prepareWrites(db)
  const settling = createSettling(db)
  const settings = createTargetSettings(db)
  const reads = createOutboxReads(db)
  const cursors = createRelayCursors(db)
  const addEvent = (kind: RelayEvent['kind'], message: NewMessage, now: number): boolean => {
    if (sql.known.get(message.webhookId) !== undefined) return false
    const event = sql.event.run({ ...message, kind, now }).lastInsertRowid
    if (!message.deliver) return true
    const log = message.log ?? null
    sql.deliver[kind].run({ event, now, log })
    sql.lose[kind].run({ log })
    return true
  }
  const inOne = <T extends unknown[], R>(work: (...values: T) => R): ((...values: T) => R) => {
    const transaction = db.transaction(work)
    return (...values) => transaction.immediate(...values)
  }
  return {
    ...reads,
    cursors,
    /** Sets the targets, and returns the paused ones for which something waits. `now`: Unix milliseconds. */
    replaceTargets: inOne((targets: readonly TargetSetting[], now: number) => settings.replace(targets, now)),
    /** Enables a target: a disabled one gets events from now on, a failing one is retried at once. False if there is none. */
    enableTarget: inOne((id: number): boolean => {
      settling.advance(id, 0)
      return sql.enable.run(id).changes > 0
    }),
    /** Moves pauses back that the clock has moved away, which was set back by so many milliseconds; `now`: Unix milliseconds. */
    moveBack: inOne((by: number, now: number): void => {
      sql.moveTargets.run({ by, now })
      sql.moveDeliveries.run({ by, now })
    }),
    /** Up to `limit` inbox deliveries that are done and were not relayed yet: their receivers can read here what they announce. */
    listReady: (limit: number): number[] => sql.ready.all(limit),
    /** Relays inbox deliveries, each once; the same event at two endpoints is one. */
    passOn: inOne((ids: readonly number[], deliver: boolean, now: number): void => {
      for (const id of ids) {
        const row = sql.received.get(id)
        if (row !== undefined) addEvent('webhook', { ...row, deliver }, now)
        sql.passed.run(id)
      }
    }),
    /** Relays messages of a log and stores the position in it, in one transaction. */
    passOnLog: inOne((kind: RelayedLog, part: LogPart, now: number): void => {
      for (const message of part.messages) addEvent(kind, message, now)
      cursors[kind].move(part.instance, part.end)
    }),
    /** Due deliveries of a target: new ones first, so that a failing one does not delay the others. */
    listDue: ({ target, now, longestMs, limit }: DueQuery): DueDelivery[] =>
      sql.due.all(target, now, now + longestMs, limit),
    /** Stores the results of attempts. A result whose target or event does not exist any more is skipped. */
    settle: inOne((settled: readonly DeliveryResult[]): void => {
      for (const one of settled) settling.settle(one)
    }),
    /**
     * Gives up deliveries of the events before the first that is not older than `before`, and deletes these events. Returns the paused
     * targets that are forgotten: those of which the last event was given up long ago.
     */
    prune: inOne((before: number): UnsetTarget[] => {
      const upTo = sql.oldest.get({ before, ahead: before + (RELAY_DAYS + 1) * DAY_MS }) ?? null
      if (upTo !== null) {
        sql.countGivenUp.run({ upTo })
        sql.giveUp.run(upTo)
        sql.forget.run(upTo)
      }
      return settings.forget(before - RELAY_DAYS * DAY_MS)
    }),
  }
}

/** A message to relay; `deliver` false: only for followers of the events. */
interface NewMessage {
  webhookId: string
  body: Buffer
  deliver: boolean
  /** Its position in its log: targets added later do not get it. */
  log?: number
}

/** Messages of a part of a log, up to `end`. `instance`: of the log's database. */
interface LogPart {
  messages: readonly NewMessage[]
  instance: string
  end: number
}

function prepareWrites(db: Db) {
  return {
    enable: db.prepare(
      `UPDATE relay_target SET state = iif(state = 'disabled', 'ok', state), failures = 0, due_at = 0,
         since = iif(state = 'disabled', NULL, since) WHERE id = ?`,
    ),
    ...prepareRelay(db),
    due: db.prepare<[number, number, number, number], DueDelivery>(
      `SELECT d.target, d.event, d.attempts, e.webhook_id AS webhookId, e.body
       FROM relay_delivery d JOIN relay_event e ON e.id = d.event
       WHERE d.target = ? AND (d.due_at <= ? OR d.due_at > ?) ORDER BY d.due_at, d.event LIMIT ?`,
    ),
    // One that is dated in the future, by a clock that was ahead, keeps itself and those behind it no longer than these are young.
    oldest: db
      .prepare<{ before: number; ahead: number }, number | null>(
        `SELECT max(id) FROM relay_event WHERE id < coalesce((SELECT min(id) FROM relay_event AS one
           WHERE created_at >= @before AND NOT (created_at > @ahead AND EXISTS
             (SELECT 1 FROM relay_event WHERE id > one.id AND created_at < @before))), 9223372036854775807)`,
      )
      .pluck(),
    countGivenUp: db.prepare(
      `UPDATE relay_target SET given_up = given_up +
         (SELECT count(*) FROM relay_delivery WHERE target = relay_target.id AND event <= @upTo)`,
    ),
    giveUp: db.prepare('DELETE FROM relay_delivery WHERE event <= ?'),
    forget: db.prepare('DELETE FROM relay_event WHERE id <= ?'),
    moveTargets: db.prepare('UPDATE relay_target SET due_at = due_at - @by WHERE due_at > @now'),
    moveDeliveries: db.prepare('UPDATE relay_delivery SET due_at = due_at - @by WHERE due_at > @now'),
  }
}

/** Prepares the statements that add events. */
function prepareRelay(db: Db) {
  return {
    ready: db
      .prepare<[number], number>(
        `SELECT inbox FROM relay_ready JOIN inbox ON inbox.id = relay_ready.inbox
         WHERE inbox.state = 'done' ORDER BY inbox LIMIT ?`,
      )
      .pluck(),
    received: db.prepare<[number], Pick<RelayEvent, 'webhookId' | 'body'>>(
      'SELECT webhook_id AS webhookId, body FROM inbox WHERE id = ?',
    ),
    passed: db.prepare('DELETE FROM relay_ready WHERE inbox = ?'),
    known: db.prepare<[string], number>('SELECT 1 FROM relay_event WHERE webhook_id = ?').pluck(),
    event: db.prepare(
      'INSERT INTO relay_event (kind, webhook_id, created_at, body) VALUES (@kind, @webhookId, @now, @body)',
    ),
    deliver: {
      webhook: prepareDeliveries(db, ''),
      snapshot: prepareDeliveries(db, 'AND log < @log'),
      findings: prepareDeliveries(db, 'AND findings < @log'),
    },
    /** Count an event that a disabled target does not get. */
    lose: {
      webhook: prepareLosses(db, ''),
      snapshot: prepareLosses(db, 'AND log < @log'),
      findings: prepareLosses(db, 'AND findings < @log'),
    },
  }
}

function prepareLosses(db: Db, and: string) {
  return db.prepare(`UPDATE relay_target SET given_up = given_up + 1 WHERE state = 'disabled' ${and}`)
}

function prepareDeliveries(db: Db, and: string) {
  return db.prepare(
    `INSERT INTO relay_delivery (target, event, attempts, due_at)
     SELECT id, @event, 0, @now FROM relay_target WHERE state IN ('ok', 'failing') ${and}`,
  )
}

export type RelayOutbox = ReturnType<typeof createRelayOutbox>

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
  /** Nothing was sent, as it is no news: that says nothing of the target. */
  | { kind: 'skipped' }
  | { kind: 'disabled'; reason: string }
  | { kind: 'retry'; reason: string; dueAt: number; targetDueAt: number | null }
)

/** Delay before the backlog is retried once a target has recovered, milliseconds. */
const SOON_MS = 60_000

/** Creates the writes of results. A result whose target or event does not exist any more is skipped. */
function createSettling(db: Db) {
  const sql = prepareSettling(db)
  const advance = (target: number, at: number): void => {
    sql.advance.run({ target, at })
  }
  return { advance, settle: (settled: DeliveryResult): void => settleOne(sql, settled) }
}

function settleOne(sql: ReturnType<typeof prepareSettling>, settled: DeliveryResult): void {
  const { target, event, at } = settled
  if (settled.kind === 'skipped') sql.done.run(target, event)
  else if (settled.kind === 'done') {
    if (sql.done.run(target, event).changes === 0) sql.countTaken.run(target) // it was given up while it was sent
    if (sql.state.get(target) === 'failing') sql.advance.run({ target, at: at + SOON_MS })
    sql.succeeded.run(at, target)
  } else if (settled.kind === 'disabled') {
    sql.disable.run({ at, reason: settled.reason, target })
    sql.countDropped.run(target)
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
    countDropped: db.prepare(
      `UPDATE relay_target SET given_up = given_up + (SELECT count(*) FROM relay_delivery WHERE target = relay_target.id)
       WHERE id = ?`,
    ),
    countTaken: db.prepare('UPDATE relay_target SET given_up = max(0, given_up - 1) WHERE id = ?'),
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
type RelayedLog = keyof typeof LOGS

/** Creates reads and writes of the relay's positions in each log. */
function createRelayCursors(db: Db) {
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
