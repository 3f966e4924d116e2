import { existsSync, linkSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { MirrorError, systemCode } from '../base/errors.ts'
import { isPresent, syncFolder } from '../base/files.ts'
import type { SourceName } from '../base/domain/sources.ts'
import { createLogCuts } from './changes/log-adoption.ts'
import { namingFaults } from './database/faults.ts'
import { lockFile } from './database/lock.ts'
import { type Db, databasePath, forgetMadeFrom } from './database/open.ts'
import { openDamaged } from './database/sqlite.ts'
import { refuseForeignRoot, repairedPath, repairingDir } from './database/unfinished.ts'
import { raiseDateFloor } from './feeds/date-floor.ts'
import { renumberChanges } from './given-numbers.ts'
import { closing } from '../base/closing.ts'

/** How much was read of what is kept row by row; `none` only where some could not be read. */
type Extent = 'whole' | 'part' | 'none'

/** What a repair kept of a damaged mirror.db, and what it could not read. */
export interface Salvage {
  /** Whether the secret was read that signs links; without it no local key works any more. */
  readonly secret: boolean
  readonly keys: Extent
  /** How many local keys were kept. */
  readonly keyCount: number
  /** This mirror's identity in bundles. */
  readonly identity: boolean
  /** The numbers of the bundles that it exported and imported. */
  readonly bundles: Extent
  /** Of some records they could not be read: those begin again. */
  readonly dates: Extent
  /** Without its oldest part, where `part`: from there it does not lead on. */
  readonly changes: Extent
}

const NOTHING: Salvage = {
  secret: false,
  keys: 'none',
  keyCount: 0,
  identity: false,
  bundles: 'none',
  dates: 'none',
  changes: 'none',
}

/**
 * Copies into a new database what no upstream brings back: the secret, local keys, identity, ledgers, dates and the change
 * log, each row that the damaged file gives. `now`: Unix milliseconds.
 */
export function salvageInto(to: Db, damaged: string, now: number): Salvage {
  raiseDateFloor(to, now) // records that changed under one date had later ones
  const from = openOrNull(damaged)
  return from === null ? NOTHING : closing(from, () => to.transaction(() => copyGroups(to, from, now))())
}

function copyGroups(to: Db, from: Db, now: number): Salvage {
  const copy = (table: string): Copied => copyRows(to, from, table)
  const secret = copy('secret').rows === 1
  const keys = secret ? copy('local_key') : LOST
  const identity = copy('mirror_identity').rows === 1
  const exported = copy('bundle_export')
  const imported = copy('bundle_import')
  const changes = copyChanges(to, copy)
  const dates = copy('osv_dates')
  const hasNumbers = copyNumbers(to, from)
  if (!hasNumbers) renumberChanges(to, { now, before: now })
  // Under one identity no number of a bundle is given twice: without the last one, there is another identity.
  const isNumbered = hasNumbers || exported.isWhole
  if (!isNumbered) to.exec('UPDATE mirror_identity SET id = lower(hex(random_bytes(16)))')
  return {
    secret,
    keys: extentOf(keys),
    keyCount: keys.rows,
    identity: identity && isNumbered,
    bundles: extentOf(exported, imported),
    dates: extentOf(dates),
    changes,
  }
}

/** How many rows of a table were copied, and whether it gave all. */
interface Copied {
  readonly rows: number
  readonly isWhole: boolean
}

const LOST: Copied = { rows: 0, isWhole: false }

function extentOf(...tables: readonly Copied[]): Extent {
  if (tables.every(({ isWhole }) => isWhole)) return 'whole'
  return tables.some(({ rows }) => rows > 0) ? 'part' : 'none'
}

/** Rows by the names of their columns. */
type Row = Readonly<Record<string, unknown>>

/** Copies each row of a table that can be read and that the new table takes. */
function copyRows(to: Db, from: Db, table: string): Copied {
  const shape = shapeOf(to, from, table)
  if (shape === null) return LOST
  const places = shape.columns.map((name) => `@${name}`).join(', ')
  const put = to.prepare<[Row]>(`INSERT OR REPLACE INTO ${table} (${shape.columns.join(', ')}) VALUES (${places})`)
  let refused = 0
  let given = 0
  const isRead = readRows(from, shape, (row) => {
    given++
    if (!isTaken(() => put.run(row))) refused++
  })
  const count = to.prepare<[], number>(`SELECT count(*) FROM ${table}`).pluck()
  const rows = given === 0 ? 0 : (count.get() ?? 0) // a new database has rows by itself
  return { rows, isWhole: isRead && refused === 0 }
}

/** Writes a row. Returns false where a value of it can be no value of its column: it is damaged. */
function isTaken(write: () => void): boolean {
  try {
    write()
    return true
  } catch (error) {
    if (systemCode(error)?.startsWith('SQLITE_CONSTRAINT') === true) return false
    throw error // such as a full disk
  }
}

interface ColumnInfo {
  readonly name: string
  readonly type: string
  readonly pk: number
}

/** Returns the columns that both databases have, and the key; null: the table is lost. */
function shapeOf(to: Db, from: Db, table: string): Shape | null {
  const known = new Set(columnsOf(from, table).map(({ name }) => name))
  const shared = columnsOf(to, table).filter(({ name }) => known.has(name))
  const keys = shared.filter(({ pk }) => pk > 0).sort((one, other) => one.pk - other.pk)
  const [first] = keys
  if (first === undefined) return null
  return {
    table,
    columns: shared.map(({ name }) => name),
    keys: keys.map(({ name }) => name),
    isText: first.type === 'TEXT',
  }
}

/** Returns the columns of a table; none where the schema cannot be read. */
function columnsOf(db: Db, table: string): readonly ColumnInfo[] {
  try {
    return db.pragma(`table_info(${table})`) as ColumnInfo[]
  } catch {
    return []
  }
}

/** A table as both databases have it. */
interface Shape {
  readonly table: string
  readonly columns: readonly string[]
  /** Its primary key. */
  readonly keys: readonly string[]
  /** Whether the first column of the key is text; else it is a whole number. */
  readonly isText: boolean
}

/**
 * Reads the rows of a table in the order of its key. Where a page is damaged it goes on behind it, at the first key that can be
 * found again, and from there back to the damage; a row may be given twice. Returns whether all of the table was read.
 */
function readRows(from: Db, shape: Shape, use: (row: Row) => void): boolean {
  const [first = ''] = shape.keys
  const order = shape.keys.join(', ')
  const back = shape.keys.map((key) => `${key} DESC`).join(', ')
  const all = `SELECT ${shape.columns.join(', ')} FROM ${shape.table}`
  const onwards = from.prepare<[Key], Row>(`${all} WHERE ${first} >= ? ORDER BY ${order}`)
  const backwards = from.prepare<[Key], Row>(`${all} WHERE ${first} < ? ORDER BY ${back}`)
  let last: Key = shape.isText ? ' ' : 0
  const useForward = (row: Row): void => {
    use(row)
    last = row[first] as Key
  }
  if (readOn(from.prepare<[], Row>(`${all} ORDER BY ${order}`).iterate(), useForward)) return true
  for (;;) {
    const key = findBehind(onwards, last)
    if (key === null) break
    last = key
    readOn(backwards.iterate(key), use)
    if (readOn(onwards.iterate(key), useForward)) return false
  }
  readOn(from.prepare<[], Row>(`${all} ORDER BY ${back}`).iterate(), use)
  return false
}

/** A value of the first column of a key. */
type Key = string | number

/** Uses rows until one cannot be read. Returns whether all could. */
function readOn(rows: IterableIterator<Row>, use: (row: Row) => void): boolean {
  try {
    for (;;) {
      const next = nextOf(rows)
      if (next === null) return false
      if (next.done === true) return true
      use(next.value)
    }
  } finally {
    rows.return?.()
  }
}

function nextOf(rows: IterableIterator<Row>): IteratorResult<Row, unknown> | null {
  try {
    return rows.next()
  } catch {
    return null // what lies behind may be sound
  }
}

/** Reads rows from a key on. */
type KeyedRows = { iterate(key: Key): IterableIterator<Row> }

/** Returns a key behind a damage, from which rows can be read; null: none is found. */
function findBehind(onwards: KeyedRows, last: Key): Key | null {
  for (const key of typeof last === 'number' ? numbersBehind(last) : textsBehind(last)) {
    const rows = onwards.iterate(key)
    const next = nextOf(rows)
    rows.return?.()
    if (next !== null) return next.done === true ? null : key
  }
  return null
}

/** Yields larger numbers, farther and farther away. */
function* numbersBehind(last: number): Generator<number> {
  for (let step = 1; last + step <= Number.MAX_SAFE_INTEGER; step *= 2) yield last + step
}

/** The characters of ids and paths, in their order. */
const CHARACTERS = Array.from('-./0123456789:@ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~')

/** Yields larger texts, farther and farther away: with another last character, another one before it, and so on. */
function* textsBehind(last: string): Generator<string> {
  for (let at = last.length - 1; at >= 0; at--)
    for (const character of CHARACTERS.filter((one) => one > last.charAt(at))) {
      const begin = last.slice(0, at) + character
      yield begin
      for (const next of CHARACTERS) yield begin + next
    }
}

/** Copies the change log; what does not lead on to its end is left out, and where names are missing everything may have changed. */
function copyChanges(to: Db, copy: (table: string) => Copied): Extent {
  const log = copy('change_log')
  const names = copy('change_name')
  if (log.isWhole && names.isWhole) return 'whole'
  to.exec(
    `CREATE TEMP TABLE unnamed AS SELECT id FROM change_log WHERE complete = 1
       AND added + changed + removed <> (SELECT count(*) FROM change_name WHERE log = change_log.id);
     UPDATE change_log SET complete = 0, added = NULL, changed = NULL, removed = NULL
       WHERE id IN (SELECT id FROM unnamed);
     DELETE FROM change_name WHERE log NOT IN (SELECT id FROM change_log WHERE complete = 1);
     DROP TABLE unnamed;`,
  )
  createLogCuts(to).forgetBroken()
  return log.rows > 0 ? 'part' : 'none'
}

/** Lets numbers that are never given twice go on from where they were. Returns false where they cannot be read. */
function copyNumbers(to: Db, from: Db): boolean {
  if (columnsOf(from, 'sqlite_sequence').length === 0) return false
  const known = to.prepare<[string], number>('SELECT 1 FROM sqlite_sequence WHERE name = ?').pluck()
  const add = to.prepare('INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)')
  const raise = to.prepare('UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?')
  const rows = from.prepare<[], Row>('SELECT name, seq FROM sqlite_sequence').iterate()
  return readOn(rows, ({ name, seq }) => {
    if (known.get(String(name)) === undefined) add.run(name, seq)
    else raise.run(seq, name)
  })
}

function openOrNull(path: string): Db | null {
  try {
    return openDamaged(path)
  } catch {
    return null
  }
}

/** Stores which sources a repair mirrors again, before it begins: however often it is interrupted, it goes on. */
export function beginRepair(db: Db, sources: readonly SourceName[], { dates }: Salvage): void {
  const add = db.prepare('INSERT OR REPLACE INTO repair_left (source, undated) VALUES (?, ?)')
  for (const source of sources) add.run(source, source === 'osv' && dates !== 'whole' ? 1 : 0)
}

/** Returns the sources that a repair was to mirror again, and of which nothing is mirrored yet. */
export function listRepairLeft(db: Db): SourceName[] {
  const left = db.prepare<[], SourceName>(
    'SELECT source FROM repair_left WHERE source NOT IN (SELECT source FROM snapshot)',
  )
  return left.pluck().all()
}

/** Returns the name that a damaged file is kept under. */
export function asideOf(path: string): string {
  return `${path}.damaged-${new Date().toISOString().replace(/[:.]/g, '-')}`
}

/** Moves the write-ahead log of a database beside the name that it is kept under. */
export function moveLog(path: string, aside: string): void {
  for (const suffix of ['-wal', '-shm']) if (existsSync(path + suffix)) renameSync(path + suffix, aside + suffix)
}

/**
 * Ends a repair that was killed while it replaced the database: the damaged one may be without its log by now. Returns what that is
 * kept as; null: there is no such repair. Throws `locked` while one is running, and `storage`.
 */
export function finishReplacing(dir: string): string | null {
  return namingFaults(dir, () => {
    if (!isPresent(repairedPath(dir))) return null
    refuseForeignRoot(dir)
    const lock = lockFile(join(dir, 'serve.lock')) // `acquireLock` refuses such a folder
    if (lock === null) throw new MirrorError('locked', `another repair in ${dir} is running: wait until it has ended`)
    try {
      return isPresent(repairedPath(dir)) ? putRepaired(dir) : null
    } finally {
      lock.release()
    }
  })
}

/** Puts the repaired mirror.db in the place of the damaged one; returns what that is kept as. */
export function putRepaired(dir: string): string {
  const path = databasePath(dir)
  const aside = asideOf(path)
  if (isPresent(path)) keepAs(path, aside)
  moveLog(path, aside)
  forgetMadeFrom(dir) // before the new one is there, which it is not about
  renameSync(repairedPath(dir), path)
  syncFolder(dir)
  rmSync(repairingDir(dir), { recursive: true, force: true })
  return aside
}

/** Gives a file a second name; on a file system without such names, another one. */
function keepAs(path: string, aside: string): void {
  try {
    linkSync(path, aside)
  } catch {
    renameSync(path, aside)
  }
}

/** Says what a damaged database is kept as. */
export function keptAs(aside: string): string {
  return `the damaged database is kept as ${aside}`
}
