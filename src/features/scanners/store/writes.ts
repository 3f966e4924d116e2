import type { Db } from '../../../store/database/open.ts'
import { queries } from '../../../store/database/query.ts'
import type { GenerationInfo, ViewAsset } from './reads.ts'
import { createMemberWriter } from './member-writes.ts'
import { numberBetween } from './numbers.ts'
import { createRowInserts, createSortedInserts } from './row-inserts.ts'

/** The values of a record's rows. */
interface RecordRow {
  readonly num: number
  readonly id: string
  readonly sha256: Buffer
  /** The index's `modified`. */
  readonly stamp: string
  readonly instant: string
  readonly views: readonly number[]
  readonly prefixes: readonly string[]
  readonly malformed: boolean
}

/** A record of the generation: its number, its id, and what its rows were made from. */
type StoredRow = [num: number, id: string, sha256: Buffer, stamp: string]

/** Writes of a generation that is being built, and the reads that this needs. */
export type ViewsWriter = ReturnType<typeof createViewsWriter>

/**
 * Works on a database of `openViewsWriter`, in one transaction. `isNew`: the generation is filled from the beginning, so the rows
 * of records wait until there are many, or until `insertWaiting`; reads of them belong behind it.
 */
export function createViewsWriter(db: Db, isNew = false) {
  const records = createRecordWriter(db, isNew)
  const members = createMemberWriter(db, isNew)
  const ecosystems = createEcosystemCounts(db)
  return {
    countEcosystems: ecosystems.count,
    ...createFolderWriter(db),
    ...records.writes,
    ...members.writes,
    ...createAssetWriter(db),
    /** Inserts the rows that wait. */
    insertWaiting(): void {
      records.flush()
      members.flush()
    },
    begin: () => void db.exec('BEGIN'),
    /** Completes a generation. */
    finish(info: GenerationInfo, form: string): void {
      ecosystems.store()
      db.prepare('INSERT OR REPLACE INTO generation VALUES (1, ?, ?, ?, ?, ?, ?)').run(
        ...[info.snapshot, info.asOf, info.changed, info.records, info.odd, form],
      )
      db.exec('COMMIT')
    },
    /** Id of the snapshot that the generation shows; null if it is incomplete. */
    readSnapshot: (): string | null => db.prepare<[], string>('SELECT snapshot FROM generation').pluck().get() ?? null,
    /** The version with which a generation was built; null if it is incomplete. */
    readForm: (): string | null => db.prepare<[], string>('SELECT form FROM generation').pluck().get() ?? null,
    isSound: (): boolean => db.pragma('quick_check(1)', { simple: true }) === 'ok',
  }
}

/** Creates the counts of the records that name each ecosystem; they are written once, at the end. */
function createEcosystemCounts(db: Db) {
  const stored = db.prepare<[], [string, number]>('SELECT name, records FROM ecosystem').raw()
  const put = db.prepare('INSERT OR REPLACE INTO ecosystem VALUES (?, ?)')
  const counts = new Map<string, number>(stored.all())
  return {
    /** Counts a record that names these, 1, or one that does not any more, -1. */
    count: (names: readonly string[], by: 1 | -1): void => {
      for (const name of names) counts.set(name, (counts.get(name) ?? 0) + by)
    },
    store(): void {
      for (const [name, records] of counts) put.run(name, records)
      db.exec('DELETE FROM ecosystem WHERE records <= 0')
    },
  }
}

function createFolderWriter(db: Db) {
  const viewOf = db.prepare<[string], number>('SELECT id FROM view WHERE name = ?').pluck()
  const addView = db.prepare("INSERT INTO view (name, records, prefixes) VALUES (?, 0, '[]')")
  const known = new Map<string, number>()
  let folders = db.prepare<[], number>('SELECT count(*) FROM view').pluck().get() ?? 0
  return {
    /** Number of folders; includes empty ones until they are counted again. */
    countFolders: () => folders,
    /** Returns the id of a view; creates the view if there is none of that name. */
    viewId(name: string): number {
      const before = known.get(name)
      if (before !== undefined) return before
      const stored = viewOf.get(name)
      if (stored === undefined) folders++
      const id = stored ?? Number(addView.run(name).lastInsertRowid)
      known.set(name, id)
      return id
    },
  }
}

function createRecordWriter(db: Db, isNew: boolean) {
  const inserts = createRecordInserts(db, isNew)
  const flush = (): void => inserts.all.forEach((one) => one.flush())
  return { writes: { ...createRecordReader(db), ...inserts.writes, ...createDrops(db) }, flush }
}

function createRecordInserts(db: Db, isNew: boolean) {
  const put = isNew ? 'INSERT INTO record' : 'INSERT OR REPLACE INTO record'
  const record = createRowInserts(db, put, 8, isNew)
  const alias = createSortedInserts(db, 'INSERT OR IGNORE INTO', 'alias', ['name', 'num'], isNew)
  const affected = ['view', 'name', 'num'] as const
  const name = createSortedInserts(db, 'INSERT INTO', 'affected', affected, isNew)
  const writes = {
    /** Stores a record; its digest is copied. */
    insertRecord: (row: RecordRow): void =>
      record.add(
        ...[row.num, row.id, Buffer.from(row.sha256), row.stamp, row.instant],
        ...[JSON.stringify(row.views), JSON.stringify(row.prefixes), row.malformed ? 1 : 0],
      ),
    /** Stores another id by which a record is found, in upper case. */
    insertAlias: (alias_: string, num: number): void => alias.add(alias_, num),
    /** Stores a package that a record names in a view. */
    insertName: (view: number, key: string, num: number): void => name.add(view, key, num),
  }
  return { writes, all: [record, alias, name] }
}

function createRecordReader(db: Db) {
  const { count, exists } = queries(db)
  const rows = db.prepare<[], StoredRow>('SELECT num, id, sha256, stamp FROM record ORDER BY num').raw()
  const row = db.prepare<[string], StoredRow>('SELECT num, id, sha256, stamp FROM record WHERE id = ?').raw()
  const before = db.prepare<[string], number>('SELECT num FROM record WHERE id < ? ORDER BY id DESC LIMIT 1').pluck()
  const after = db.prepare<[string], number>('SELECT num FROM record WHERE id > ? ORDER BY id LIMIT 1').pluck()
  return {
    /** All records, in the order of their ids. */
    eachRecord: () => rows.iterate(),
    /** The row of a record; null when it is not stored. */
    readRow: (id: string): StoredRow | null => row.get(id) ?? null,
    /** Number of records of the generation that was complete last. */
    countRecords: count<[]>('SELECT records FROM generation'),
    /** Whether a record has no date that can be read. */
    hasUndated: exists<[]>("SELECT 1 FROM record WHERE instant = '' LIMIT 1"),
    countOdd: count<[]>('SELECT count(*) FROM record WHERE odd'),
    /** A number for a record that is not stored; null when there is none between its neighbours. */
    numberFor: (id: string): number | null => numberBetween(before.get(id) ?? null, after.get(id) ?? null),
  }
}

function createDrops(db: Db) {
  const member = db.prepare('DELETE FROM member WHERE view = ? AND num = ?')
  const record = db.prepare('DELETE FROM record WHERE num = ?')
  const named = db.prepare('DELETE FROM affected WHERE view = ? AND name = ? AND num = ?')
  const alias = db.prepare('DELETE FROM alias WHERE name = ? AND num = ?')
  return {
    /** Removes a record from a view, with the packages that it names there; false when one of these rows is missing. */
    dropMember(view: number, num: number, names: readonly string[]): boolean {
      const found = names.map((name) => named.run(view, name, num).changes)
      return member.run(view, num).changes === 1 && found.every((changes) => changes === 1)
    },
    /** Removes the other ids of a record; false when one is missing. */
    dropAliases: (num: number, names: readonly string[]): boolean =>
      names.map((name) => alias.run(name, num).changes).every((changes) => changes === 1),
    /** Removes a record's own row; false when it is missing. */
    dropRow: (num: number): boolean => record.run(num).changes === 1,
  }
}

/** Creates writes of views and of the files that they are served as. */
function createAssetWriter(db: Db) {
  const { list, value } = queries(db)
  const put = db.prepare(
    `INSERT OR REPLACE INTO asset
     VALUES (@path, @view, @type, @file, @size, @sha256, @crc32c, @gzipFile, @gzipSize, @prefixes)`,
  )
  return {
    ...createViewCounter(db),
    putAsset({ path, view, gzip, ...asset }: ViewAsset & { path: string; view: number | null }) {
      const gzipped = { gzipFile: gzip?.file ?? null, gzipSize: gzip?.size ?? null }
      put.run({ ...asset, ...gzipped, path, view, prefixes: JSON.stringify(asset.prefixes) })
    },
    /** The file at a path under /osv/, such as `Debian/all.zip`; null when there is none. */
    readFile: value<[path: string], string>('SELECT file FROM asset WHERE path = ?'),
    /** The name of every file of the generation. */
    listFiles: list<[], string>('SELECT file FROM asset UNION SELECT gzip_file FROM asset WHERE gzip_file IS NOT NULL'),
  }
}

/** What a view contains. */
interface ViewCount {
  readonly records: number
  readonly prefixes: readonly string[]
}

function createViewCounter(db: Db) {
  const drop = db.prepare('DELETE FROM asset WHERE view = ?')
  const dropView = db.prepare('DELETE FROM view WHERE id = ?')
  const count = db.prepare<[number], number>('SELECT count(*) FROM member WHERE view = ?').pluck()
  const shown = db
    .prepare<[number, string], number>(
      `SELECT 1 FROM member m JOIN record r ON r.num = m.num
       WHERE m.view = ? AND m.derived = 1 AND ? IN (SELECT value FROM json_each(r.prefixes)) LIMIT 1`,
    )
    .pluck()
  const setView = db.prepare('UPDATE view SET records = ?, prefixes = ? WHERE id = ?')
  const views = db.prepare<[], { id: number; name: string; records: number; prefixes: string }>(
    'SELECT id, name, records, prefixes FROM view ORDER BY name',
  )
  return {
    /**
     * Counts a view's records again: returns their number and the prefixes, of all that `possible` names, in order, or null if
     * the view was empty and is removed.
     */
    countView(view: number, possible: Iterable<string>): ViewCount | null {
      const records = count.get(view) ?? 0
      drop.run(view)
      const prefixes = [...possible].filter((one) => shown.get(view, one) === 1).sort()
      if (records === 0) dropView.run(view)
      else setView.run(records, JSON.stringify(prefixes), view)
      return records === 0 ? null : { records, prefixes }
    },
    listViewIds: () => views.all().map((row) => ({ ...row, prefixes: JSON.parse(row.prefixes) as string[] })),
  }
}
