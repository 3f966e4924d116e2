import { toIso } from '../core/time.ts'
import type { Db } from './database/sqlite.ts'

/** What a mirror is to know that was restored from a backup. */
interface RestoredAt {
  /** Unix milliseconds. */
  readonly now: number
  /** Events from before are not announced any more, unix milliseconds. */
  readonly before: number
}

/** What was dropped, so that nothing old is announced as new. */
export interface DroppedEvents {
  /** Relayed events that waited for a target, once for each target. */
  readonly relayed: number
  /** Deliveries that were received and not settled. */
  readonly received: number
}

/**
 * Lets a restored change log continue at a number that the mirror did not reach before: seconds since 1970. A follower that comes
 * back with a number that was given after the backup gets the answer that it is not known here, now and when the log has grown.
 */
export function renumberChanges(mirror: Db, { now }: RestoredAt): void {
  skipNumbers(mirror, 'change_log', now)
}

/**
 * Does the same for relayed events, and drops what waited since before a time: receivers would take it for new. Deliveries that
 * were received before it request no refresh: the next sync looks at everything.
 */
export function settleOldEvents(inbox: Db, at: RestoredAt): DroppedEvents {
  const { before } = at
  const settle = inbox.transaction((): DroppedEvents => {
    skipNumbers(inbox, 'relay_event', at.now)
    inbox
      .prepare(
        'DELETE FROM relay_ready WHERE inbox IN (SELECT id FROM inbox WHERE received_at < ?)',
      )
      .run(before)
    const reason = `received before ${toIso(before)}, and restored from a backup`
    const received = inbox
      .prepare(
        "UPDATE inbox SET state = 'ignored', reason = ? WHERE state = 'pending' AND received_at < ?",
      )
      .run(reason, before).changes
    inbox.prepare(COUNT_GIVEN_UP).run({ before })
    const relayed = inbox.prepare(`DELETE FROM relay_delivery WHERE ${IS_OLD}`).run({ before })
    return { relayed: relayed.changes, received }
  })
  return settle.immediate()
}

/** Forgets how far the logs were relayed: they are skipped to their ends. */
export function forgetRelayed(inbox: Db): void {
  inbox.exec('DELETE FROM relay_cursor; DELETE FROM relay_findings')
}

const IS_OLD = 'event IN (SELECT id FROM relay_event WHERE created_at < @before)'
const COUNT_GIVEN_UP = `UPDATE relay_target SET given_up = given_up +
  (SELECT count(*) FROM relay_delivery WHERE target = relay_target.id AND ${IS_OLD})`

function skipNumbers(db: Db, table: string, now: number): void {
  const seq = Math.floor(now / 1000)
  const skip = db.prepare('UPDATE sqlite_sequence SET seq = max(seq + 1, ?) WHERE name = ?')
  if (skip.run(seq, table).changes > 0) return
  db.prepare('INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)').run(table, seq)
}
