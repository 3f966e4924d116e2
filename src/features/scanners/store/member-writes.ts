import type { Db } from '../../../store/database/open.ts'
import { queries } from '../../../store/database/query.ts'
import { createRowInserts } from './row-inserts.ts'

/** A member of a view, with its deflate stream's length. */
interface PlacedMember {
  readonly num: number
  readonly derived: boolean
  readonly crc32: number
  readonly size: number
  readonly length: number
  /** Position of the stream in its part of the view's archive; while it is in none, `spooled`. */
  readonly place: number
}

/** A member, and the id of its record. */
type NamedMember = PlacedMember & { readonly id: string }

/** Returns the place of a stream that waits in the temporary file, at `at`. */
export function spooled(at: number): number {
  return -1 - at
}

/** Inverse of `spooled`; null for a stream that is not in the temporary file. */
export function spooledAt(place: number): number | null {
  return place < 0 ? -1 - place : null
}

/** A part of a view's archive: neighbouring members, or, without members, the directory. */
export interface ViewPart {
  /** Number of the record of its first member. */
  readonly first: number
  readonly members: number
  /** Where it begins in the archive. */
  readonly at: number
  readonly bytes: number
  /** Bytes of its members' entries in the directory. */
  readonly entries: number
  readonly crc32: number
  readonly crc32c: number
}

type MemberRow = [string, number, number, number, number, number, number]

/** Creates writes and reads of members and parts; `waits`: new members wait for `flush`, as those of `createRowInserts`. */
export function createMemberWriter(db: Db, waits: boolean) {
  const put = createRowInserts(db, 'INSERT INTO member', 7, waits)
  const list = db
    .prepare<[number, number, number], MemberRow>(
      `SELECT r.id, m.num, m.derived, m.crc32, m.size, m.length, m.place
       FROM member m JOIN record r ON r.num = m.num
       WHERE m.view = ? AND m.num >= ? AND m.num < ? ORDER BY m.num`,
    )
    .raw()
  const place = db.prepare('UPDATE member SET place = ? WHERE view = ? AND num = ?')
  const writes = {
    ...createPartWriter(db),
    ...createStampReader(db),
    insertMember: (view: number, member: PlacedMember): void =>
      put.add(
        ...[view, member.num, member.derived ? 1 : 0, member.crc32, member.size],
        ...[member.length, member.place],
      ),
    /** Members of a view with numbers from `from` up to `before`, in order. */
    listMembers: (view: number, from: number, before: number): NamedMember[] =>
      list.all(view, from, before).map(([id, num, derived, crc32, size, length, at]) => {
        return { id, num, derived: derived === 1, crc32, size, length, place: at }
      }),
    placeMember: (view: number, num: number, at: number): void => void place.run(at, view, num),
  }
  return { writes, flush: put.flush }
}

function createPartWriter(db: Db) {
  const { all, run } = queries(db)
  const put = db.prepare('INSERT INTO part VALUES (?, ?, ?, ?, ?, ?, ?, ?)')
  return {
    insertPart: (view: number, part: ViewPart): void =>
      void put.run(
        ...[view, part.first, part.members, part.at, part.bytes],
        ...[part.entries, part.crc32, part.crc32c],
      ),
    /** All parts of a view's archive, as they lie there. */
    listParts: all<[view: number], ViewPart>(
      `SELECT first, members, at, bytes, entries, crc32, crc32c FROM part
       WHERE view = ? ORDER BY first`,
    ),
    dropParts: run<[view: number]>('DELETE FROM part WHERE view = ?'),
  }
}

function createStampReader(db: Db) {
  const order = 'ORDER BY r.instant DESC'
  const stamps = db
    .prepare<[number], [string, string]>(
      `SELECT r.instant, r.id FROM member m JOIN record r ON r.num = m.num WHERE m.view = ? ${order}, m.num`,
    )
    .raw()
  const allStamps = db
    .prepare<[], [string, string]>(
      `SELECT r.instant, v.name || '/' || r.id FROM member m JOIN record r ON r.num = m.num
       JOIN view v ON v.id = m.view ${order}, 2`,
    )
    .raw()
  return {
    /** `[instant, id]` of a view, newest first; with null of all views, with the view's name before the id. */
    eachStamp: (view: number | null) => (view === null ? allStamps.iterate() : stamps.iterate(view)),
  }
}
