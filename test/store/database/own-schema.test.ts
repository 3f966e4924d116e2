import { copyFileSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { MirrorError } from '../../../src/base/errors.ts'
import { inspectDatabases } from '../../../src/store/database/inspect.ts'
import { MIRROR_SCHEMA } from '../../../src/store/database/schema/mirror.ts'
import { newestOf } from '../../../src/store/database/schema/schema.ts'
import {
  databasePath,
  inboxPath,
  openInbox,
  openInboxReader,
  openReader,
  openViewsReader,
  openViewsWriter,
  openWriter,
} from '../../../src/store/database/open.ts'
import { addStep, scratch } from '../fixtures.ts'

/** Changes a database as somebody else's program would. */
function change(path: string, sql: string): void {
  const db = new Database(path)
  db.unsafeMode(true)
  db.exec(sql)
  db.close()
}

/** What opening says. */
function refusal(open: () => unknown): string {
  try {
    open()
  } catch (error) {
    if (error instanceof MirrorError) return `${error.code}: ${error.message}`
    throw error
  }
  return 'it was opened'
}

const ENDLESS = 'WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n'

/** Changes of mirror.db, and what is said of each. */
const FOREIGN: readonly [what: string, sql: string, said: string][] = [
  [
    'a trigger',
    'CREATE TRIGGER keep AFTER UPDATE ON local_key BEGIN UPDATE local_key SET revoked_at = NULL; END',
    'it has trigger "keep" on "local_key"',
  ],
  ['a view', `CREATE VIEW more AS ${ENDLESS}`, 'it has view "more" on "more"'],
  [
    'a view instead of a table',
    `DROP TABLE osv_tombstone; CREATE VIEW osv_tombstone AS ${ENDLESS}`,
    'its view "osv_tombstone" is another one',
  ],
  ['a table', 'CREATE TABLE more (a)', 'it has table "more" on "more"'],
  [
    'an index of an expression',
    'CREATE INDEX more ON local_key (abs(created_at))',
    'it has index "more" on "local_key"',
  ],
  [
    'another CHECK',
    `PRAGMA writable_schema = ON;
     UPDATE sqlite_schema SET sql = replace(sql, 'name TEXT', 'name TEXT CHECK (name <> ''x'')') WHERE name = 'local_key'`,
    'its table "local_key" is another one',
  ],
  [
    'a text that looks like a comment',
    `PRAGMA writable_schema = ON;
     UPDATE sqlite_schema SET sql = replace(sql, 'name TEXT', 'name TEXT DEFAULT ''--
''') WHERE name = 'local_key'`,
    'its table "local_key" is another one',
  ],
]

test.each(FOREIGN)('a mirror.db with %s is refused by readers and writers', (_, sql, said) => {
  const dir = scratch()
  openWriter(dir).close()
  change(databasePath(dir), sql)
  for (const open of [openReader, openWriter]) {
    const text = refusal(() => open(dir))
    expect(text).toMatch(/^schema: .*mirror\.db is not a database as Patchmirror makes it: /)
    expect(text).toContain(said)
  }
  expect(inspectDatabases(dir, { quick: true })[0]?.faults.join()).toContain(said)
})

test('the write-ahead log of another database is refused without a byte of it in mirror.db, which is whole without it', () => {
  const dir = scratch()
  openWriter(dir).close()
  const path = databasePath(dir)
  const own = readFileSync(path)
  const other = new Database(join(scratch(), 'other.db'))
  other.pragma('journal_mode = WAL')
  other.exec('CREATE TABLE more (a)')
  copyFileSync(`${other.name}-wal`, `${path}-wal`)
  other.close()
  for (const open of [openWriter, openReader, openWriter])
    expect(refusal(() => open(dir))).toMatch(
      /it has table "more".* move mirror\.db-wal and mirror\.db-shm to another folder/,
    )
  expect(readFileSync(path).equals(own)).toBe(true)
  for (const end of ['-wal', '-shm']) renameSync(`${path}${end}`, join(scratch(), `moved${end}`))
  openWriter(dir).close()
  expect(inspectDatabases(dir, { quick: true })[0]?.faults).toEqual([])
})

/** Puts the journal of a database beside another one, as a process leaves it that is killed in a transaction. */
function putJournal(path: string, { pageSize = 4096, spills = true, before = '' } = {}): void {
  const other = new Database(join(scratch(), 'other.db'))
  other.pragma(`page_size = ${pageSize}`)
  other.exec(`CREATE TABLE more (a); INSERT INTO more VALUES (zeroblob(90000)); ${before}`)
  other.pragma('cache_size = 2')
  other.exec(`BEGIN; UPDATE more SET a = randomblob(80000); ${spills ? 'DROP TABLE more' : ''}`)
  copyFileSync(`${other.name}-journal`, `${path}-journal`)
  other.close()
}

test.each([
  ['of another size of pages', { pageSize: 512 }, /its pages have another size/],
  [
    'that begins at another change',
    { before: 'CREATE TABLE b (a); CREATE TABLE c (a); CREATE TABLE d (a)' },
    /at change/,
  ],
  ['that has only some later pages', { spills: false }, /it is of one of \d+ pages|at change|never as it says/],
])('the rollback journal of another database %s is refused, and nothing is changed', (_, made, said) => {
  const dir = scratch()
  openWriter(dir).close()
  const path = databasePath(dir)
  const own = readFileSync(path)
  putJournal(path, made)
  for (const open of [openWriter, openReader, openWriter]) {
    expect(refusal(() => open(dir))).toMatch(
      /^schema: .*mirror\.db-journal is the rollback journal of another database/,
    )
    expect(refusal(() => open(dir))).toMatch(said)
  }
  expect(refusal(() => inspectDatabases(dir, { quick: true }))).toMatch(/move that file to another folder/)
  expect(readFileSync(path).equals(own)).toBe(true)
  renameSync(`${path}-journal`, join(scratch(), 'moved'))
  openWriter(dir).close()
  expect(inspectDatabases(dir, { quick: true })[0]?.faults).toEqual([])
})

test('a database is made where a process was killed when it had written the first page of it, before its journal went', () => {
  const dir = scratch()
  const path = databasePath(dir)
  const killed = new Database(path)
  killed.exec('PRAGMA synchronous = OFF; BEGIN; CREATE TABLE first (a)')
  const journal = readFileSync(`${path}-journal`)
  killed.exec('COMMIT')
  killed.close()
  writeFileSync(`${path}-journal`, journal)
  openWriter(dir).close()
  expect(inspectDatabases(dir, { quick: true })[0]?.faults).toEqual([])
})

test('a mirror.db that lacks a table is damaged: what is left of it is ours, and a repair may keep it', () => {
  const dir = scratch()
  openWriter(dir).close()
  change(databasePath(dir), 'DROP TABLE osv_tombstone')
  for (const open of [openReader, openWriter])
    expect(refusal(() => open(dir))).toMatch(/^corrupt: .*mirror\.db is damaged \(it has no table osv_tombstone\)/)
})

test('a schema that differs in comments and spaces alone is accepted', () => {
  const dir = scratch()
  openWriter(dir).close()
  change(
    databasePath(dir),
    `PRAGMA writable_schema = ON;
     UPDATE sqlite_schema SET sql = replace(sql, 'name TEXT', 'name /* own */   TEXT') WHERE name = 'local_key'`,
  )
  openReader(dir)?.close()
  openWriter(dir).close()
})

test('a database of an earlier schema is compared with that schema', () => {
  const dir = scratch()
  openWriter(dir).close()
  change(databasePath(dir), 'CREATE TABLE more (a)')
  addStep()
  expect(refusal(() => openWriter(dir))).toContain('it has table "more"')
  change(databasePath(dir), 'DROP TABLE more')
  openWriter(dir, null).close()
})

test('a database that names a schema which it is not is refused before it is migrated', () => {
  const dir = scratch()
  openWriter(dir).close()
  change(databasePath(dir), 'PRAGMA user_version = 0')
  expect(refusal(() => openWriter(dir))).toContain('is not a database as Patchmirror')
  addStep()
  change(databasePath(dir), `PRAGMA user_version = ${newestOf(MIRROR_SCHEMA)}`)
  expect(refusal(() => openWriter(dir))).toContain('it has no table added')
})

test('a webhooks.db and views with a trigger of somebody else are refused', () => {
  const dir = scratch()
  openInbox(dir).close()
  change(inboxPath(dir), 'CREATE TRIGGER lost BEFORE INSERT ON inbox BEGIN SELECT RAISE(IGNORE); END')
  for (const open of [openInboxReader, openInbox])
    expect(refusal(() => open(dir))).toContain('it has trigger "lost" on "inbox"')
  const views = join(dir, 'views.db')
  openViewsWriter(views).close()
  openViewsReader(views).close()
  change(views, 'CREATE VIEW more AS SELECT 1')
  expect(refusal(() => openViewsReader(views))).toContain('it has view "more"')
})
