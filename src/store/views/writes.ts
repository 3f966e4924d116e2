import type { Db } from '../database/open.ts'
import type { GenerationInfo, ViewAsset } from './reads.ts'

/** A member of a view, with its deflate stream's length. */
export interface PlacedMember {
  readonly id: string
  readonly derived: boolean
  readonly crc32: number
  readonly size: number
  readonly length: number
  /** Position of the stream in the view's archive; negative while it is in none (below). */
  readonly place: number
}

/** Position of a stream that must be copied from the stored record. */
export const STORED = -1

/** Returns the position of a stream at `at` in the temporary file. */
export function spooled(at: number): number {
  return -2 - at
}

/** Inverse of `spooled`; null for a stream that is not in the temporary file. */
export function spooledAt(place: number): number | null {
  return place <= -2 ? -2 - place : null
}

/** The values of a record's rows. */
interface RecordRow {
  readonly id: string
  readonly sha256: Buffer
  /** The index's `modified`. */
  readonly stamp: string
  readonly instant: string
  readonly prefixes: readonly string[]
  readonly malformed: boolean
}

/** Writes of a generation that is being built, and the reads that this needs. */
export type ViewsWriter = ReturnType<typeof createViewsWriter>

/** Works on a database of `openViewsWriter`, in one transaction. */
export function createViewsWriter(db: Db) {
  return {
    ...createRecordWriter(db),
    ...createMemberWriter(db),
    ...createAssetWriter(db),
    begin: () => void db.exec('BEGIN'),
    /** Completes a generation. */
    finish(info: GenerationInfo, form: string): void {
      db.prepare('INSERT OR REPLACE INTO generation VALUES (1, ?, ?, ?, ?, ?, ?)').run(
        ...[info.snapshot, info.asOf, info.changed, info.records, info.odd, form],
      )
      db.exec('COMMIT')
      db.exec('PRAGMA optimize')
    },
    /** The version with which a generation was built; null if it is incomplete. */
    readForm: (): string | null =>
      db.prepare<[], string>('SELECT form FROM generation').pluck().get() ?? null,
    isSound: (): boolean => db.pragma('quick_check(1)', { simple: true }) === 'ok',
  }
}

function createRecordWriter(db: Db) {
  const stored = db.prepare<[string], { sha256: Buffer; stamp: string }>(
    'SELECT sha256, stamp FROM record WHERE id = ?',
  )
  const ids = db
    .prepare<[string, number], string>('SELECT id FROM record WHERE id > ? ORDER BY id LIMIT ?')
    .pluck()
  const put = db.prepare('INSERT INTO record VALUES (?, ?, ?, ?, ?, ?)')
  const drops = ['record', 'member', 'affected', 'alias'].map((table) =>
    db.prepare(`DELETE FROM ${table} WHERE id = ?`),
  )
  const alias = db.prepare('INSERT OR IGNORE INTO alias VALUES (?, ?)')
  const views = db.prepare<[string], number>('SELECT view FROM member WHERE id = ?').pluck()
  const viewOf = db.prepare<[string], number>('SELECT id FROM view WHERE name = ?').pluck()
  const addView = db.prepare("INSERT INTO view (name, records, prefixes) VALUES (?, 0, '[]')")
  const known = new Map<string, number>()
  const odd = db.prepare<[], number>('SELECT count(*) FROM record WHERE odd').pluck()
  const count = db.prepare<[], number>('SELECT count(*) FROM view').pluck()
  let folders = count.get() ?? 0
  return {
    readStored: (id: string) => stored.get(id) ?? null,
    listRecordIds: (after: string, limit: number): string[] => ids.all(after, limit),
    insertRecord: ({ id, sha256, stamp, instant, prefixes, malformed: odd }: RecordRow): void =>
      void put.run(id, sha256, stamp, instant, JSON.stringify(prefixes), odd ? 1 : 0),
    /** Stores another id by which a record is found, in upper case. */
    insertAlias: (name: string, id: string): void => void alias.run(name, id),
    countOdd: (): number => odd.get() ?? 0,
    /** Number of folders; includes empty ones until they are counted again. */
    countFolders: () => folders,
    /** Removes a record from all views; returns the views that contained it. */
    dropRecord(id: string): number[] {
      const left = views.all(id)
      for (const drop of drops) drop.run(id)
      return left
    },
    /** Returns the id of a view; creates the view if there is none of that name. */
    viewId(name: string): number {
      const stored = known.get(name) ?? viewOf.get(name)
      if (stored === undefined) folders++
      const id = stored ?? Number(addView.run(name).lastInsertRowid)
      known.set(name, id)
      return id
    },
  }
}

function createMemberWriter(db: Db) {
  const put = db.prepare('INSERT INTO member VALUES (?, ?, ?, ?, ?, ?, ?)')
  const name = db.prepare('INSERT INTO affected VALUES (?, ?, ?)')
  const list = db
    .prepare<[number, string, number], [string, number, number, number, number, number]>(
      'SELECT id, derived, crc32, size, length, place FROM member WHERE view = ? AND id > ? ORDER BY id LIMIT ?',
    )
    .raw()
  const place = db.prepare('UPDATE member SET place = ? WHERE view = ? AND id = ?')
  const order = 'ORDER BY r.instant DESC'
  const stamps = db
    .prepare<[number], [string, string]>(
      `SELECT r.instant, m.id FROM member m JOIN record r ON r.id = m.id WHERE m.view = ? ${order}, m.id`,
    )
    .raw()
  const allStamps = db
    .prepare<[], [string, string]>(
      `SELECT r.instant, v.name || '/' || m.id FROM member m JOIN record r ON r.id = m.id
       JOIN view v ON v.id = m.view ${order}, 2`,
    )
    .raw()
  return {
    insertMember: (view: number, member: PlacedMember): void =>
      void put.run(
        ...[view, member.id, member.derived ? 1 : 0, member.crc32, member.size],
        ...[member.length, member.place],
      ),
    insertName: (view: number, key: string, id: string): void => void name.run(view, key, id),
    listMembers: (view: number, after: string, limit: number): PlacedMember[] =>
      list.all(view, after, limit).map(([id, derived, crc32, size, length, at]) => {
        return { id, derived: derived === 1, crc32, size, length, place: at }
      }),
    placeMember: (view: number, id: string, at: number): void => void place.run(at, view, id),
    /** `[instant, id]` of a view, newest first; with null of all views, with the view's name before the id. */
    eachStamp: (view: number | null) =>
      view === null ? allStamps.iterate() : stamps.iterate(view),
  }
}

function createAssetWriter(db: Db) {
  const put = db.prepare(
    `INSERT OR REPLACE INTO asset
     VALUES (@path, @view, @type, @file, @size, @sha256, @crc32c, @gzipFile, @gzipSize, @prefixes)`,
  )
  const drop = db.prepare('DELETE FROM asset WHERE view = ?')
  const dropView = db.prepare('DELETE FROM view WHERE id = ?')
  const count = db.prepare<[number], number>('SELECT count(*) FROM member WHERE view = ?').pluck()
  const prefixes = db
    .prepare<[number], string>(
      `SELECT DISTINCT p.value FROM member m JOIN record r ON r.id = m.id, json_each(r.prefixes) p
       WHERE m.view = ? AND m.derived = 1 ORDER BY 1`,
    )
    .pluck()
  const setView = db.prepare('UPDATE view SET records = ?, prefixes = ? WHERE id = ?')
  const views = db.prepare<[], { id: number; name: string; prefixes: string }>(
    'SELECT id, name, prefixes FROM view ORDER BY name',
  )
  const files = db
    .prepare<[], string>(
      'SELECT file FROM asset UNION SELECT gzip_file FROM asset WHERE gzip_file IS NOT NULL',
    )
    .pluck()
  const archive = db
    .prepare<[number], string>("SELECT file FROM asset WHERE view = ? AND path LIKE '%/all.zip'")
    .pluck()
  return {
    putAsset({ path, view, gzip, ...asset }: ViewAsset & { path: string; view: number | null }) {
      const gzipped = { gzipFile: gzip?.file ?? null, gzipSize: gzip?.size ?? null }
      put.run({ ...asset, ...gzipped, path, view, prefixes: JSON.stringify(asset.prefixes) })
    },
    /** Counts a view's records again: returns its prefixes, or null if the view was empty and is removed. */
    countView(view: number): string[] | null {
      const records = count.get(view) ?? 0
      drop.run(view)
      if (records === 0) dropView.run(view)
      else setView.run(records, JSON.stringify(prefixes.all(view)), view)
      return records === 0 ? null : prefixes.all(view)
    },
    listViewIds: () =>
      views.all().map((row) => ({ ...row, prefixes: JSON.parse(row.prefixes) as string[] })),
    /** The archive that contains a view's members. */
    readArchiveFile: (view: number): string | null => archive.get(view) ?? null,
    /** The name of every file of the generation. */
    listFiles: (): string[] => files.all(),
  }
}
