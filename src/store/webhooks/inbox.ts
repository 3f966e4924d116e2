import { sha256Hex } from '../../base/digest.ts'
import type { Db } from '../database/open.ts'
import { queries } from '../database/query.ts'
import type { EventTarget } from '../../base/domain/image-reference.ts'

type StoredRow = Omit<InboxRow, 'target'> & { target: string | null }

const HEAD = `id, endpoint, webhook_id AS webhookId, state, type, dialect, secret, target, received_at AS receivedAt,
  stored_at AS storedAt, refreshed_at AS refreshedAt, visible_at AS visibleAt, attempts, due_at AS dueAt, reason, size, replays`
const LISTED = `${HEAD}, x'' AS body`

/** SQL: a stored delivery stays unchanged. */
const RECEIVE = `
  INSERT INTO inbox (endpoint, webhook_id, state, type, dialect, secret, target, received_at, stored_at, attempts, due_at,
    reason, size, body)
  VALUES (@endpoint, @webhookId, @state, @type, @dialect, @secret, @target, @receivedAt, @storedAt, 0, @receivedAt,
    @reason, @size, @body)
  ON CONFLICT (endpoint, webhook_id) DO NOTHING`

/** SQL: what was announced became visible once: a replay does not change when. */
const SETTLE = `
  UPDATE inbox SET state = @state, refreshed_at = @refreshedAt, visible_at = coalesce(visible_at, @visibleAt), attempts = @attempts,
    due_at = @dueAt, reason = @reason
  WHERE id = @id`

/** So many deliveries may be pending: more than any release announces, and about 200 MB if a signed sender runs wild. */
export const MAX_PENDING = 100_000

/** The reason of dead letters that an operator has dismissed. */
export const DISMISSED = 'dismissed'

/** Rows that one call of `prune` deletes at most, so that other commits wait only milliseconds. */
const PRUNED_AT_ONCE = 500

/** Creates reads of the inbox, on any connection to webhooks.db. */
export function createInboxReads(db: Db) {
  const { value } = queries(db)
  const pending = db.prepare<[number, number, number, number], StoredRow>(
    `SELECT ${LISTED} FROM inbox WHERE state = 'pending' AND id > ? AND (due_at <= ? OR due_at > ?)
     ORDER BY id LIMIT ?`,
  )
  const dead = db.prepare<[number, number], StoredRow>(
    `SELECT ${LISTED} FROM inbox WHERE state = 'dead' AND id < ? ORDER BY id DESC LIMIT ?`,
  )
  const one = db.prepare<[number], StoredRow>(`SELECT ${HEAD}, body FROM inbox WHERE id = ?`)
  const newest = db.prepare<{ state: string | null; before: number; limit: number }, StoredRow>(
    `SELECT ${LISTED} FROM inbox WHERE id < @before AND (@state IS NULL OR state = @state)
     ORDER BY id DESC LIMIT @limit`,
  )
  const tallies = db.prepare<[], { state: InboxState; rows: number }>('SELECT * FROM inbox_tally')
  const oldest = db
    .prepare<[], number>(`SELECT received_at FROM inbox WHERE state = 'pending' ORDER BY id LIMIT 1`)
    .pluck()
  return {
    /**
     * Returns rows that are due and have ids above `after`, oldest first, without their bodies. A row due more than
     * `longestMs` ahead can only be due to a clock that went backwards; it is returned too.
     */
    listPending: (now: number, limit: number, after = 0, longestMs = Infinity): InboxRow[] =>
      pending.all(after, now, now + longestMs, limit).map(rowOf),
    /** The newest dead letters with ids below `before`, without their bodies. */
    listDead: (limit: number, before: number): InboxRow[] => dead.all(before, limit).map(rowOf),
    /** When the next pending row is due, unix milliseconds; null: none is pending. */
    nextDueAt: value<[], number>("SELECT min(due_at) FROM inbox WHERE state = 'pending'"),
    /** A row with its body; null when there is none. */
    readRow: (id: number): InboxRow | null => {
      const row = one.get(id)
      return row === undefined ? null : rowOf(row)
    },
    /** The newest rows with ids below `before`, of one state or of all, without their bodies. */
    listRows: (state: InboxState | null, limit: number, before = Number.MAX_SAFE_INTEGER): InboxRow[] =>
      newest.all({ state, before, limit }).map(rowOf),
    counts: (): InboxCounts => {
      const rows = Object.fromEntries(tallies.all().map(({ state, rows }) => [state, rows]))
      const { pending = 0, dead = 0, done = 0, ignored = 0 } = rows
      return { pending, dead, done, ignored, oldestPendingAt: oldest.get() ?? null }
    },
  }
}

/** Creates the write that stores deliveries. */
function createReceipts(db: Db) {
  const insert = db.prepare(RECEIVE)
  const pendingRows = db.prepare<[], number>("SELECT rows FROM inbox_tally WHERE state = 'pending'").pluck()
  const known = db
    .prepare<Pick<NewDelivery, 'endpoint' | 'webhookId'>, Buffer>(
      'SELECT body FROM inbox WHERE endpoint = @endpoint AND webhook_id = @webhookId',
    )
    .pluck()
  /** Returns what a delivery is that has the id of a stored one; null when none has it. */
  const notNew = ({ endpoint, webhookId, body }: NewDelivery): 'duplicate' | 'altered' | null => {
    const stored = known.get({ endpoint, webhookId })
    if (stored === undefined) return null
    return stored.equals(body) ? 'duplicate' : 'altered'
  }
  const store = (delivery: NewDelivery): 'new' | 'duplicate' | 'altered' => {
    const target = delivery.target === null ? null : JSON.stringify(delivery.target)
    const size = delivery.body.byteLength
    const isStored = insert.run({ ...delivery, target, size }).changes > 0
    return isStored ? 'new' : (notNew(delivery) ?? 'duplicate')
  }
  return {
    /**
     * Stores a delivery; `duplicate` if one of this endpoint, id and body is stored already, else `full` if `maxPending`
     * rows are pending. One with the id of another body is stored under an id of its own, which has its digest.
     */
    receive: (delivery: NewDelivery, maxPending = Infinity): Received => {
      const isFull = (pendingRows.get() ?? 0) >= maxPending
      const first = isFull ? notNew(delivery) : store(delivery)
      if (first !== 'altered') return first ?? 'full'
      const own = { ...delivery, webhookId: alteredId(delivery) }
      if (isFull) return notNew(own) ?? 'full'
      return store(own) === 'new' ? 'altered' : 'duplicate'
    },
  }
}

/** Creates reads and writes of the inbox. A write is durable only after its transaction is committed. */
export function createInbox(db: Db) {
  const { run } = queries(db)
  const reads = createInboxReads(db)
  const update = db.prepare(SETTLE)
  const requeue = db.prepare(
    `UPDATE inbox SET state = 'pending', attempts = 0, due_at = @now, reason = NULL, refreshed_at = NULL,
       replays = replays + 1
     WHERE id = @id AND (state <> 'pending' OR due_at > @now)`,
  )
  const dismiss = db.prepare<{ id: number | null }>(
    `UPDATE inbox SET state = 'ignored', reason = '${DISMISSED}' WHERE state = 'dead' AND (@id IS NULL OR id = @id)`,
  )
  return {
    ...reads,
    ...createReceipts(db),
    /** Stores the results of rows. A row that does not exist any more is skipped. */
    settle: (settlements: readonly Settlement[]): void => {
      for (const settlement of settlements) {
        const row = reads.readRow(settlement.id)
        if (row === null) continue
        const { id, refreshedAt, visibleAt, attempts, dueAt, reason } = { ...row, ...settlement }
        update.run({
          id,
          state: settlement.state,
          refreshedAt,
          visibleAt,
          attempts,
          dueAt,
          reason,
        })
      }
    },
    /** Makes a row pending again, like a new delivery. Returns false if there is none, or it is pending. */
    replay: (id: number, now: number): boolean => requeue.run({ id, now }).changes === 1,
    /** Makes all dead letters pending again; returns their number. */
    replayDead: run<[now: number]>(
      `UPDATE inbox SET state = 'pending', attempts = 0, due_at = ?, reason = NULL, refreshed_at = NULL,
         replays = replays + 1
       WHERE state = 'dead'`,
    ),
    /** Makes a dead letter ignored, or all of them (`null`); returns their number. They are pruned with the others. */
    dismiss: (id: number | null): number => dismiss.run({ id }).changes,
    /** Deletes rows received before a time that are not pending, some hundred at a time: call it until it returns 0. */
    prune: run<[before: number]>(
      `DELETE FROM inbox WHERE id IN
         (SELECT id FROM inbox WHERE state <> 'pending' AND received_at < ? LIMIT ${PRUNED_AT_ONCE})`,
    ),
  }
}

/** Returns the id of a delivery whose own id another body has; it is of the form of an id. */
function alteredId({ webhookId, body }: NewDelivery): string {
  return `${webhookId.slice(0, 239)}:${sha256Hex(Buffer.from(body)).slice(0, 16)}`
}

function rowOf(row: StoredRow): InboxRow {
  const target = row.target === null ? null : (JSON.parse(row.target) as EventTarget)
  return { ...row, target }
}

/** State of a delivery: to be refreshed, refreshed, ignored, or failed for good. */
export type InboxState = 'pending' | 'done' | 'ignored' | 'dead'

/** A delivery whose signature was verified, to be stored. Times are unix milliseconds, here and below. */
export interface NewDelivery {
  /** Name of the endpoint. It identifies a delivery together with `webhookId`. */
  readonly endpoint: string
  readonly webhookId: string
  readonly state: InboxState
  /** The event's type as sent; null: it has none. */
  readonly type: string | null
  /** The form of signature that matched; never the key. */
  readonly dialect: string
  /** The label of the secret that matched; never the secret. */
  readonly secret: string
  readonly target: EventTarget | null
  readonly receivedAt: number
  readonly storedAt: number
  /** Why it is ignored or dead, in one line. */
  readonly reason: string | null
  readonly body: Uint8Array
}

/**
 * `altered`: stored beside a delivery of the same id with another body; `full`: the limit of pending rows is reached, and
 * nothing was stored.
 */
export type Received = 'new' | 'altered' | 'duplicate' | 'full'

/** A row of the inbox. */
export interface InboxRow extends Omit<NewDelivery, 'body'> {
  /** In order of arrival; never reused. */
  readonly id: number
  readonly refreshedAt: number | null
  readonly visibleAt: number | null
  /** Failures so far. */
  readonly attempts: number
  /** Earliest time of the next attempt, while pending. */
  readonly dueAt: number
  /** As received; empty where rows are listed. */
  readonly body: Buffer
  /** Bytes of the body. */
  readonly size: number
  /** Number of manual replays. */
  readonly replays: number
}

/** The result of a row. A field that is absent stays unchanged. */
export interface Settlement {
  readonly id: number
  readonly state: InboxState
  readonly refreshedAt?: number | null
  readonly visibleAt?: number | null
  readonly attempts?: number
  readonly dueAt?: number
  readonly reason?: string | null
}

/** Number of rows in each state, and when the oldest pending one was received. */
export interface InboxCounts {
  readonly pending: number
  readonly dead: number
  readonly done: number
  readonly ignored: number
  readonly oldestPendingAt: number | null
}
