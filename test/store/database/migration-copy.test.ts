import { existsSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { expect, onTestFinished, test } from 'vitest'
import { migrate } from '../../../src/store/database/migrate.ts'
import { databasePath, openWriter, readyFolder } from '../../../src/store/database/open.ts'
import { copyBeforeMigration } from '../../../src/store/database/migration-copy.ts'
import { MIRROR_SCHEMA } from '../../../src/store/database/schema/mirror.ts'
import { newestOf } from '../../../src/store/database/schema/schema.ts'
import { addStep } from '../fixtures.ts'

const before = newestOf(MIRROR_SCHEMA)

/** A data folder whose mirror.db is of the schema before the newest, with a row still in the write-ahead log. */
function olderFolder(): string {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-older-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  const db = new Database(databasePath(dir))
  onTestFinished(() => void db.close())
  db.pragma('journal_mode = WAL')
  db.pragma('wal_autocheckpoint = 0')
  db.function('random_bytes', (length) => Buffer.alloc(Number(length), 7))
  migrate(db, MIRROR_SCHEMA)
  db.exec(`INSERT INTO local_key (name, prefix, hash, created_at) VALUES ('old', 'pmk_', x'01', 1)`)
  addStep()
  return dir
}

test('a migration first copies the database, whole and private, and reports where', () => {
  const dir = olderFolder()
  const told: string[] = []
  readyFolder(dir, (text) => told.push(text))
  const copy = join(dir, 'backups', `mirror-schema-${before}.db`)
  expect(told).toEqual([expect.stringContaining(`a copy from before is ${copy}. To go back: stop`)])
  expect(readdirSync(join(dir, 'backups'))).toEqual([`mirror-schema-${before}.db`])
  expect(statSync(copy).mode & 0o777).toBe(0o600)
  const db = new Database(copy, { readonly: true })
  expect(db.pragma('user_version', { simple: true })).toBe(before)
  expect(db.prepare('SELECT name FROM local_key').pluck().all()).toEqual(['old'])
  db.close()
  readyFolder(dir, (text) => told.push(text))
  expect(told).toHaveLength(1) // nothing to migrate, nothing to copy
})

test('a new database is not copied', () => {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-new-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  openWriter(dir).close()
  expect(existsSync(join(dir, 'backups'))).toBe(false)
})

test('when the copy fails, the database is not migrated and no part of a copy remains', () => {
  const dir = olderFolder()
  const db = new Database(databasePath(dir))
  const fail = (version: number): void =>
    copyBeforeMigration(
      databasePath(dir),
      version,
      () => {
        throw new Error('no room')
      },
      () => undefined,
    )
  expect(() => migrate(db, MIRROR_SCHEMA, fail)).toThrow('no room')
  expect(db.pragma('user_version', { simple: true })).toBe(before)
  expect(readdirSync(join(dir, 'backups'))).toEqual([])
  db.close()
})

test('the two newest copies stay', () => {
  const dir = olderFolder()
  for (const version of [8, 9, 10, 11])
    copyBeforeMigration(
      databasePath(dir),
      version,
      () => undefined,
      () => undefined,
    )
  expect(readdirSync(join(dir, 'backups')).sort()).toEqual(['mirror-schema-10.db', 'mirror-schema-11.db'])
})
