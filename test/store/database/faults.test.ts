import { chmodSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, onTestFinished, test } from 'vitest'
import { MirrorError } from '../../../src/base/errors.ts'
import { isUnreadable, nameStorageError } from '../../../src/store/database/faults.ts'
import { databaseOf } from '../../../src/store/located.ts'
import { databasePath, openInboxReader, openReader } from '../../../src/store/database/open.ts'
import { createReads } from '../../../src/store/reads.ts'
import { noteBackup } from '../../../src/store/notes.ts'
import { errorOf, failureOf } from '../../../src/base/threads/failure.ts'
import { DAMAGES, dropTable } from '../../support/damage.ts'
import { scratch, snapshot, writes } from '../fixtures.ts'

/** The error that a read of a store meets, as it is thrown. */
function metBy(read: () => unknown): unknown {
  try {
    read()
  } catch (error) {
    return error
  }
  throw new Error('expected an error')
}

/** What a user is told about it. */
function told(error: unknown): MirrorError {
  const named = nameStorageError(error, null)
  if (named instanceof MirrorError) return named
  throw named
}

function readSnapshot(dir: string): unknown {
  const db = openReader(dir)
  if (db === null) throw new Error('there is no database')
  onTestFinished(() => void db.close())
  return createReads(db).snapshots.readSnapshot('osv')
}

function filled(): string {
  const store = writes()
  store.snapshots.replaceSnapshot(snapshot())
  store.close()
  return store.dir
}

describe('an error of SQLite', () => {
  test('about a missing table names the file, and what to do', () => {
    const dir = filled()
    dropTable(databasePath(dir), 'snapshot')
    const error = metBy(() => readSnapshot(dir))
    expect(databaseOf(error)).toBe(databasePath(dir))
    const { code, message } = told(error)
    expect(code).toBe('corrupt')
    expect(message).toMatch(/mirror\.db is damaged \(it has no table snapshot\)/)
    expect(message).toContain('patchmirror doctor --data --repair')
  })

  test('crosses threads with its code and its file', () => {
    const dir = filled()
    dropTable(databasePath(dir), 'snapshot')
    const error = metBy(() => readSnapshot(dir))
    expect(told(errorOf(failureOf(error))).message).toBe(told(error).message)
    const named = errorOf(failureOf(told(error)))
    expect([databaseOf(named), isUnreadable(named)]).toEqual([databasePath(dir), true])
  })

  test('of a query of ours, which no damage explains, is not called damage', () => {
    const db = new Database(':memory:')
    const error = metBy(() => db.exec('SELEC 1'))
    expect(nameStorageError(error, null)).toBe(error)
    expect(isUnreadable(error)).toBe(false)
  })

  test('about a disk that fails is no damage of the file, and cannot be read either', () => {
    const dir = filled()
    DAMAGES.unreadable(databasePath(dir))
    const error = metBy(() => openReader(dir))
    expect(told(error)).toMatchObject({
      code: 'storage',
      message: expect.stringMatching(/mirror\.db cannot be read or written \(disk I\/O error\)/) as string,
    })
    expect(isUnreadable(error)).toBe(true)
  })
})

describe('the advice about a damaged database', () => {
  test('offers the last backup first where one is known', () => {
    const dir = filled()
    DAMAGES.header(databasePath(dir))
    const before = told(metBy(() => openReader(dir))).message
    expect(before).toMatch(/If there is a backup, restore it/)
    noteBackup(dir, '/safe/of-monday.pmb', '2026-11-23T04:00:00.000Z')
    const after = told(metBy(() => openReader(dir))).message
    expect(after).toContain('Restore the last backup (/safe/of-monday.pmb of 2026-11-23T04:00:00.000Z)')
    expect(after.indexOf('Restore')).toBeLessThan(after.indexOf('doctor --data --repair'))
  })

  test('is another one for webhooks.db', () => {
    const dir = scratch()
    mkdirSync(dir, { recursive: true })
    const db = new Database(join(dir, 'webhooks.db'))
    db.exec('CREATE TABLE t (a)')
    db.close()
    DAMAGES.header(join(dir, 'webhooks.db'))
    const { message } = told(metBy(() => openInboxReader(dir)))
    expect(message).toMatch(/webhooks\.db is damaged .*moves the file aside/)
    expect(message).not.toContain('backup')
  })
})

test.skipIf(process.geteuid?.() === 0)(
  'a file of the folder that this user may not use is named (needs another user than root)',
  () => {
    const dir = filled()
    chmodSync(databasePath(dir), 0)
    expect(() => openReader(dir)).toThrow(
      /^\S+mirror\.db is closed to this user by its mode: run the command as the user of/,
    )
  },
)
