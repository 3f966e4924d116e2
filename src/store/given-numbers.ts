import { existsSync } from 'node:fs'
import { messageOf } from '../base/errors.ts'
import type { Logger } from '../base/log.ts'
import { DAY_MS, HOUR_MS, toIso } from '../base/time.ts'
import { type GivenNumbers, databaseNote, noteDatabases } from './database/daemon-settings.ts'
import { LOST_WITH_INBOX } from './database/migration-copy.ts'
import { forgetMadeFrom, inboxPath, openInbox, openInboxReader, openReader, openWriter } from './database/open.ts'
import { type Loss, NEW_DATABASE, lossAt } from './database/faults.ts'
import type { Db } from './database/sqlite.ts'
import { forgetVerification } from './notes.ts'
import { raiseDateFloor } from './feeds/date-floor.ts'
import { createSecretReader } from './secret.ts'
import { RELAY_DAYS } from './webhooks/outbox.ts'
import { closing } from '../base/closing.ts'

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
 * back with a number that was given after the backup gets the answer that it is not known here, now and when the log has grown. A
 * client that asks by the date of newer data gets the older.
 */
export function renumberChanges(mirror: Db, { now }: RestoredAt): void {
  const renumber = mirror.transaction(() => {
    raiseDateFloor(mirror, now)
    skipNumbers(mirror, 'change_log', now)
  })
  renumber.immediate()
}

/**
 * Does the same for relayed events, and drops what waited since before a time: receivers would take it for new. Deliveries that
 * were received before it request no refresh: the next sync looks at everything.
 */
export function settleOldEvents(inbox: Db, at: RestoredAt): DroppedEvents {
  const { before } = at
  const settle = inbox.transaction((): DroppedEvents => {
    skipNumbers(inbox, 'relay_event', at.now)
    inbox.prepare('DELETE FROM relay_ready WHERE inbox IN (SELECT id FROM inbox WHERE received_at < ?)').run(before)
    const reason = `received before ${toIso(before)}, and restored from a backup`
    const received = inbox
      .prepare("UPDATE inbox SET state = 'ignored', reason = ? WHERE state = 'pending' AND received_at < ?")
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

/** The numbers by which a copy is found out, of mirror.db and of webhooks.db. */
const CHANGES = ['change_log']
const EVENTS = ['relay_event', 'inbox']

/**
 * Settles databases that were put in place by hand, before anything is read; then notes each hour, and at the end, how far the
 * numbers of the folder are. Returns what ends it. `now`: Unix milliseconds; `isInboxLost`: what `lossOfInbox` said before a new one was made.
 */
export function followNumbers(
  dataDir: string,
  log: Pick<Logger, 'warn'>,
  now: number,
  isInboxLost: boolean,
): () => void {
  const at = { now, before: now - RELAY_DAYS * DAY_MS }
  for (const text of settleCopies(dataDir, at, isInboxLost)) log.warn({}, text)
  const note = (): void => {
    try {
      noteNumbers(dataDir)
    } catch (error) {
      log.warn({}, `how far the numbers of the change log are could not be noted: ${messageOf(error)}`)
    }
  }
  note()
  const timer = setInterval(note, HOUR_MS).unref()
  return () => {
    clearInterval(timer)
    note()
  }
}

/**
 * Notes the highest numbers that were given in a data folder, and the name of its mirror.db, so that `settleCopies` finds a database
 * that is put back, or another one.
 */
export function noteNumbers(dataDir: string): void {
  const given = {
    ...numbersOf(() => openReader(dataDir), CHANGES),
    ...numbersOf(() => openInboxReader(dataDir), EVENTS),
  }
  const noted = databaseNote(dataDir)
  const mirror = nameOfMirror(dataDir) ?? noted.mirror
  const isNew = mirror !== noted.mirror || Object.entries(given).some(([table, seq]) => seq !== noted.given[table])
  if (isNew) noteDatabases(dataDir, { ...noted, given: { ...noted.given, ...given }, mirror })
}

/**
 * Does for databases that were put in place by hand what a restore does: one that has given fewer numbers than were noted in its
 * folder is a copy from before, and one of another name is another one. Returns a sentence on each. Call it before anything is read.
 */
export function settleCopies(dataDir: string, at: RestoredAt, isInboxLost = lossOfInbox(dataDir) !== null): string[] {
  const { given: noted, mirror } = databaseNote(dataDir)
  const highest = Math.max(0, ...Object.values(noted).map((seq) => seq ?? 0))
  const beyond = { ...at, now: Math.max(at.now, (highest + 1) * 1000) } // whatever the clock shows
  const sentences: string[] = []
  const changes = numbersOf(() => openReader(dataDir), CHANGES)
  const found = nameOfMirror(dataDir)
  const isOther = mirror !== null && found !== null && found !== mirror
  if (isOther || isBehind(changes, noted)) {
    const db = openWriter(dataDir)
    closing(db, () => renumberChanges(db, beyond))
    if (isOther) forgetMadeFrom(dataDir)
    else forgetVerification(dataDir)
    const next = 'its change log goes on with numbers that were never given, and followers are notified'
    const isNew = isUnused(changes)
    const what = isNew ? 'new' : 'new, or comes from another mirror'
    sentences.push(
      isNew || isOther
        ? `mirror.db is ${what}, and another one was here: ${next}. If that was lost, ${RESTORE}`
        : `mirror.db is a copy from before: ${next}`,
    )
  }
  const ofInbox = settleInbox(dataDir, noted, beyond, isInboxLost)
  if (isOther) {
    noteNumbers(dataDir) // it is the one of this folder from now on
    noteDatabases(dataDir, { ...databaseNote(dataDir), replacedAt: toIso(at.now) })
  }
  if (ofInbox === null) return sentences
  return isOther && ofInbox === LOST_INBOX ? [[...sentences, ofInbox].join('. ')] : [...sentences, ofInbox]
}

const NO_EVENTS: GivenNumbers = { relay_event: 0, inbox: 0 }
const LOST_INBOX = `webhooks.db is new, and another one was here. ${LOST_WITH_INBOX}`

/** Returns what became of a webhooks.db that a daemon noted; null: it is there, or none is noted. What it had since the note shows in nothing else. */
export function lossOfInbox(dataDir: string): Loss | null {
  return databaseNote(dataDir).given['inbox'] === undefined ? null : lossAt(inboxPath(dataDir))
}

/** Does it for webhooks.db; returns the sentence, null where it is the one of before. */
function settleInbox(dataDir: string, noted: GivenNumbers, at: RestoredAt, isLost: boolean): string | null {
  const isThere = existsSync(inboxPath(dataDir))
  const events = isThere ? numbersOf(() => openInboxReader(dataDir), EVENTS) : NO_EVENTS
  if (!isLost && !isBehind(events, noted)) return null
  const db = openInbox(dataDir)
  const { relayed, received } = closing(db, () => settleOldInbox(db, at))
  if (isUnused(events)) return LOST_INBOX
  return `webhooks.db is a copy from before: ${relayed} relayed events and ${received} deliveries from before ${toIso(at.before)} are given up`
}

const RESTORE = `stop the daemon and restore a backup into a new data folder ("patchmirror restore FILE"); ${NEW_DATABASE}`

/** Skips what the logs had before the copy, where it is as old as what is not announced any more. */
function settleOldInbox(db: Db, at: RestoredAt): DroppedEvents {
  const newest = db.prepare<[], number | null>('SELECT max(created_at) FROM relay_event').pluck()
  if ((newest.get() ?? 0) < at.before) forgetRelayed(db)
  skipNumbers(db, 'inbox', at.now)
  return settleOldEvents(db, at)
}

function isBehind(given: GivenNumbers | null, noted: GivenNumbers): boolean {
  if (given === null) return false
  return Object.entries(given).some(([table, seq = 0]) => seq < (noted[table] ?? 0))
}

/** Whether no number was given yet: nothing was published into this database. */
function isUnused(given: GivenNumbers | null): boolean {
  return given !== null && Object.values(given).every((seq) => seq === 0)
}

function numbersOf(open: () => Db | null, tables: readonly string[]): GivenNumbers | null {
  return readOrNull(open, (db) => numbersIn(db, tables))
}

/** Returns the name that a mirror.db has from its creation, which copies of it keep. */
function nameOfMirror(dataDir: string): string | null {
  return readOrNull(
    () => openReader(dataDir),
    (db) => createSecretReader(db).readInstance(),
  )
}

/** Null where the database is not there or cannot be read, which is reported by what reads it: then nothing is known. */
function readOrNull<T>(open: () => Db | null, read: (db: Db) => T): T | null {
  try {
    const db = open()
    return db === null ? null : closing(db, () => read(db))
  } catch {
    return null
  }
}

function numbersIn(db: Db, tables: readonly string[]): GivenNumbers {
  const seq = db.prepare<[string], number>('SELECT seq FROM sqlite_sequence WHERE name = ?').pluck()
  return Object.fromEntries(tables.map((table) => [table, seq.get(table) ?? 0]))
}
