import {
  chmodSync,
  closeSync,
  copyFileSync,
  existsSync,
  openSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect } from 'vitest'
import { MirrorError } from '../../../src/base/errors.ts'
import { nameStorageError } from '../../../src/store/database/faults.ts'
import {
  databasePath,
  derivedDir,
  hasLostLog,
  inboxPath,
  openInbox,
  openInboxReader,
  openReader,
  openWriter,
} from '../../../src/store/database/open.ts'
import { inspectDatabases } from '../../../src/store/database/inspect.ts'
import { acquireLock, announceAddress, announceInstance, lockHolder } from '../../../src/store/database/lock.ts'
import { hasUnreadDatabase, whyUnread } from '../../../src/store/database/unread.ts'
import { openPinnedReads } from '../../../src/store/reads.ts'
import { MIRROR_SCHEMA } from '../../../src/store/database/schema/mirror.ts'
import { newestOf } from '../../../src/store/database/schema/schema.ts'
import { startChild } from '../processes.ts'
import { NOW, START, reads, record, refusal, scratch, snapshot, writes } from '../fixtures.ts'
import { longTest, test } from '../../support/tables.ts'

/** A database with some hundred records, closed. */
function filled(): string {
  const store = writes()
  for (let i = 0; i < 300; i++) store.osv.insertRecord(record(`R-${i}`, `${i}`.repeat(500)), NOW / 1000)
  store.snapshots.replaceSnapshot(snapshot())
  store.close()
  return store.dir
}

describe('a data folder', () => {
  test('has a database, and files beside it, that only its owner can read', () => {
    const store = writes()
    for (const end of ['', '-wal', '-shm'])
      expect([end, statSync(databasePath(store.dir) + end).mode & 0o777]).toEqual([end, 0o600])
    store.close()
  })

  test('that is missing is created, with an empty database of the newest schema', () => {
    const dir = join(scratch(), 'deep', 'down')
    const db = openWriter(dir)
    expect(db.pragma('user_version', { simple: true })).toBe(newestOf(MIRROR_SCHEMA))
    expect(db.pragma('journal_mode', { simple: true })).toBe('wal')
    expect(existsSync(derivedDir(dir))).toBe(true)
    db.close()
  })

  test('is migrated once without loss of data', () => {
    const { dir, close } = writes()
    close()
    const db = openWriter(dir)
    db.exec("INSERT INTO osv_tombstone VALUES ('R', 1, 1)")
    db.close()
    expect(writes(dir).osv.readTombstone('R')).toEqual({ id: 'R', removedAt: 1 })
  })

  longTest('that several processes open at once for the first time is migrated by one of them', async () => {
    const dir = scratch()
    const children = await Promise.all(Array.from({ length: 4 }, () => startChild('open', dir)))
    expect(await Promise.all(children.map(({ ended }) => ended))).toEqual([0, 0, 0, 0])
  })

  test('of a newer program is refused for reading and for writing, with what to do', () => {
    const dir = filled()
    const db = new Database(databasePath(dir))
    db.pragma(`user_version = ${newestOf(MIRROR_SCHEMA) + 1}`)
    db.close()
    for (const open of [openWriter, openReader, openPinnedReads]) {
      const { code, message } = refusal(() => open(dir))
      expect(code).toBe('schema')
      expect(message).toContain('written by a newer Patchmirror')
    }
  })

  test('without a database cannot be read, and reading does not create one', () => {
    const dir = scratch()
    expect(openReader(dir)).toBeNull()
    expect(openPinnedReads(dir)).toBeNull()
    expect(existsSync(databasePath(dir))).toBe(false)
  })

  test('with an older schema cannot be read before a writer has migrated it', () => {
    const dir = scratch()
    writeFileSync(databasePath(dir), '')
    expect(openReader(dir)).toBeNull()
    expect(openPinnedReads(dir)).toBeNull()
  })

  test('that is an empty file is called so, and not one that is not migrated', () => {
    const dir = scratch()
    writeFileSync(databasePath(dir), '')
    expect(openReader(dir)).toBe(null)
    const { message } = whyUnread(dir, 'nothing is mirrored yet')
    expect(message).toContain('mirror.db is empty (0 bytes)')
    expect(message).toContain('patchmirror restore FILE')
    expect(message).not.toContain('not migrated')
    expect(hasUnreadDatabase(dir)).toBe(true)
  })

  test.each([
    ['is not there any more', (path: string) => rmSync(path)],
    ['is empty', (path: string) => truncateSync(path)],
  ])('whose database %s keeps its log for the one that is put back, whatever reads it', (_, lose) => {
    const store = writes()
    store.osv.insertRecord(record('R', '1'), NOW / 1000)
    const dir = scratch()
    const path = databasePath(dir)
    for (const end of ['', '-wal']) copyFileSync(databasePath(store.dir) + end, path + end)
    store.close()
    copyFileSync(path, join(dir, 'moved'))
    const log = readFileSync(`${path}-wal`)
    lose(path)
    expect([openReader(dir), openPinnedReads(dir)]).toEqual([null, null])
    inspectDatabases(dir, { quick: true })
    const said: string[] = []
    openWriter(dir, (text) => void said.push(text)).close()
    const kept = readdirSync(dir).find((name) => name.startsWith('mirror.db.lost-')) ?? ''
    expect(readFileSync(join(dir, kept)).equals(log)).toBe(true)
    expect(said).toEqual([expect.stringContaining(`is kept as ${join(dir, kept)}`)])
    rmSync(`${path}-shm`)
    renameSync(join(dir, 'moved'), path)
    renameSync(join(dir, kept), `${path}-wal`)
    const count = 'SELECT count(*) FROM osv_record'
    expect(openReader(dir)?.prepare(count).pluck().get()).toBe(1)
  })

  test('whose database was replaced beside the log of a killed daemon keeps that log, and writes nothing of it over the other', () => {
    const store = writes()
    store.osv.insertRecord(record('R', '1'), NOW / 1000)
    const dir = scratch()
    const path = databasePath(dir)
    for (const end of ['', '-wal']) copyFileSync(databasePath(store.dir) + end, path + end)
    store.close()
    const lock = acquireLock(dir, 'serve')
    announceAddress(dir, announceInstance(dir), { port: 1 })
    lock.release()
    const log = readFileSync(`${path}-wal`)
    expect(hasLostLog(path)).toBe(false)
    renameSync(path, join(dir, 'moved'))
    copyFileSync(databasePath(filled()), join(dir, 'copy'))
    const copy = new Database(join(dir, 'copy')) // as VACUUM INTO makes one: what gives it a log is a writer
    copy.pragma('journal_mode = DELETE')
    copy.close()
    renameSync(join(dir, 'copy'), path)
    const put = readFileSync(path)
    expect([openReader(dir), hasLostLog(path)]).toEqual([null, true])
    expect(whyUnread(dir, '').message).toContain('was put in the place of another')
    expect([readFileSync(path).equals(put), readFileSync(`${path}-wal`).equals(log)]).toEqual([true, true])
    openWriter(dir, null).close()
    expect(openReader(dir)?.prepare('SELECT count(*) FROM osv_record').pluck().get()).toBe(300)
    const kept = readdirSync(dir).find((name) => name.startsWith('mirror.db.lost-')) ?? ''
    expect(readFileSync(join(dir, kept)).equals(log)).toBe(true)
  })

  test('whose database was replaced beside an empty log uses that log as its own', () => {
    const dir = filled()
    const path = databasePath(dir)
    writeFileSync(`${path}-wal`, '')
    const lock = acquireLock(dir, 'serve')
    announceAddress(dir, announceInstance(dir), { port: 1 })
    lock.release()
    copyFileSync(path, join(dir, 'copy'))
    renameSync(join(dir, 'copy'), path)
    const db = openWriter(dir, null)
    db.exec('DELETE FROM osv_record')
    expect(statSync(`${path}-wal`).size).toBeGreaterThan(0)
    expect(hasLostLog(path)).toBe(false)
    expect(openReader(dir)?.prepare('SELECT count(*) FROM osv_record').pluck().get()).toBe(0)
    db.close()
  })

  test.each(['local.key', 'webhooks.db'])('that is not there any more is missed where %s is left of it', (left) => {
    const dir = scratch()
    expect(whyUnread(dir, 'nothing is mirrored yet').message).toBe('nothing is mirrored yet')
    writeFileSync(join(dir, left), '')
    expect(whyUnread(dir, 'nothing is mirrored yet').message).toMatch(
      new RegExp(`^nothing is mirrored yet\\. mirror\\.db is missing, and ${left} is left: .*patchmirror restore FILE`),
    )
  })

  test('that cannot be looked up is a storage error for readers, and is not taken for an empty one', () => {
    const dir = join(scratch(), 'loop')
    symlinkSync('loop', dir)
    const works = [
      () => openReader(dir),
      () => openInboxReader(dir),
      () => hasUnreadDatabase(dir),
      () => lockHolder(dir, 'serve'),
      () => inspectDatabases(dir, { quick: true }),
    ]
    for (const work of works) expect(refusal(work)).toMatchObject({ code: 'storage' })
  })

  test('that cannot be created is a storage error', () => {
    const file = join(scratch(), 'file')
    writeFileSync(file, '')
    expect(refusal(() => openWriter(file)).code).toBe('storage')
    expect(refusal(() => openWriter(join(file, 'below'))).code).toBe('storage')
  })

  test.skipIf(process.getuid?.() === 0)('without write permission is a storage error (not as root)', () => {
    const dir = scratch()
    chmodSync(dir, 0o500)
    expect(refusal(() => openWriter(dir)).code).toBe('storage')
  })

  test('may not be written through a reader', () => {
    const db = openReader(filled())
    expect(() => db?.exec('DELETE FROM osv_record')).toThrow(/readonly/)
    db?.close()
  })
})

describe('a damaged database', () => {
  test('that is no database is reported as corrupt, with the command that repairs it', () => {
    const dir = scratch()
    writeFileSync(databasePath(dir), 'no database '.repeat(1000))
    for (const open of [openWriter, openReader, openPinnedReads]) {
      const { code, message } = refusal(() => open(dir))
      expect(code).toBe('corrupt')
      expect(message).toContain('patchmirror doctor --data --repair')
    }
  })

  test('with overwritten pages is reported as corrupt when it is opened or read', () => {
    const dir = filled()
    const bytes = readFileSync(databasePath(dir))
    bytes.fill(0xa5, 4096, bytes.length)
    writeFileSync(databasePath(dir), bytes)
    const { code } = refusal(() => {
      const opened = openPinnedReads(dir)
      try {
        return [...(opened?.pinned.osv.eachSum() ?? [])]
      } catch (error) {
        throw nameStorageError(error, dir)
      } finally {
        opened?.close()
      }
    })
    expect(code).toBe('corrupt')
  })

  test('that is cut short is reported as corrupt when its records are read', () => {
    const dir = filled()
    const bytes = readFileSync(databasePath(dir))
    writeFileSync(databasePath(dir), bytes.subarray(0, 8192))
    const { code } = refusal(() => {
      try {
        const { pinned } = reads(dir)
        return [...pinned.osv.eachSum()]
      } catch (error) {
        throw nameStorageError(error, dir)
      }
    })
    expect(code).toBe('corrupt')
  })
})

/** A folder as a process leaves it that is killed while it gives a database its write-ahead log, in a rollback journal. */
function withHotJournal(): string {
  const dir = filled()
  const path = databasePath(dir)
  const killed = `${path}.killed`
  const journal = `${path}-journal`
  const db = new Database(path)
  db.pragma('journal_mode = DELETE')
  db.pragma('cache_size = 10')
  db.exec(`BEGIN; PRAGMA user_version = ${newestOf(MIRROR_SCHEMA)}; UPDATE osv_record SET as_of = 7`)
  copyFileSync(path, killed)
  copyFileSync(journal, `${killed}-journal`)
  db.close()
  renameSync(killed, path)
  const file = openSync(path, 'r+')
  writeSync(file, Buffer.of(2, 2), 0, 2, 18)
  closeSync(file)
  renameSync(`${killed}-journal`, journal)
  return dir
}

test('a change that a killed process left in a rollback journal is undone before reading', () => {
  const dir = withHotJournal()
  const db = openReader(dir)
  if (db === null) throw new Error('no database')
  expect(db.prepare('SELECT count(*) FROM osv_record WHERE as_of = 7').pluck().get()).toBe(0)
  expect(existsSync(`${databasePath(dir)}-journal`)).toBe(false)
  db.close()
})

test('who may not undo such a change is told which user can', () => {
  const code = 'SQLITE_READONLY_ROLLBACK'
  const error = nameStorageError(Object.assign(new Error('attempt to write'), { code }), '/data')
  expect(String(error)).toMatch(/only a writer can undo: run "patchmirror status" as the user that owns it/)
})

test('a reader that stays at a restored database does not keep its own thread from writing', () => {
  const dir = filled()
  openInbox(dir).close()
  for (const path of [databasePath(dir), inboxPath(dir)]) {
    const db = new Database(path)
    db.pragma('journal_mode = DELETE')
    db.close()
  }
  for (const [read, write, table] of [
    [openReader, openWriter, 'snapshot'],
    [openInboxReader, openInbox, 'inbox'],
  ] as const) {
    const reader = read(dir)
    reader?.exec('BEGIN')
    reader?.prepare(`SELECT count(*) FROM ${table}`).get()
    const writer = write(dir)
    writer.exec('BEGIN IMMEDIATE; COMMIT')
    writer.close()
    reader?.close()
  }
})

test('a busy database is never said to be used by a process that nobody has seen', () => {
  const error = Object.assign(new Error('database is locked'), { code: 'SQLITE_BUSY' })
  const named = nameStorageError(error, '/data')
  expect(named).toMatchObject({ code: 'storage' })
  expect(String(named)).toContain('is busy')
  expect(String(named)).not.toMatch(/process/)
})

describe('a storage error', () => {
  const named = (code: string): unknown => nameStorageError(Object.assign(new Error('raw'), { code }), '/data')

  test.each(['SQLITE_FULL', 'ENOSPC', 'SQLITE_IOERR_WRITE', 'SQLITE_READONLY', 'SQLITE_BUSY', 'EROFS'])(
    '%s is reported as such, with its cause',
    (code) => {
      expect(named(code)).toMatchObject({
        code: 'storage',
        message: expect.stringContaining('/data') as string,
        cause: { code },
      })
    },
  )

  test('is not reported for any other error', () => {
    expect(named('SQLITE_CORRUPT_VTAB')).toMatchObject({ code: 'corrupt' })
    expect(named('SQLITE_CONSTRAINT')).toMatchObject({ message: 'raw' })
    expect(nameStorageError('text', '/data')).toBe('text')
    const ours = new MirrorError('proof', 'no')
    expect(nameStorageError(ours, '/data')).toBe(ours)
  })

  test('caused by a full disk in a transaction leaves the last commit unchanged', async () => {
    const store = writes()
    await store.exclusive(() => store.osv.insertRecord(record('R-1'), 1))
    const db = new Database(databasePath(store.dir))
    const pages = Number(db.pragma('page_count', { simple: true }))
    db.close()
    const limited = openWriter(store.dir)
    limited.pragma(`max_page_count = ${pages + 2}`)
    const fill = limited.transaction(() => {
      for (let i = 0; ; i++) {
        limited.prepare('INSERT INTO osv_body (bytes) VALUES (?)').run(Buffer.alloc(4000, i))
      }
    })
    expect(() => fill()).toThrow(/full/)
    limited.close()
    expect(store.osv.countRecords()).toBe(1)
    expect(store.osv.readRecord('R-1')).not.toBeNull()
  })
})

describe('a killed process', () => {
  test('loses only uncommitted data, and its run is closed as an orphan', async () => {
    const dir = scratch()
    const child = await startChild('unfinished', dir)
    await child.kill()
    const store = writes(dir)
    expect(store.feeds.readUpstreamState('/lost')).toBeNull()
    expect(store.runs.readLatestRun('osv')).toMatchObject({
      state: 'failed',
      code: 'aborted',
      endedAt: null,
      pid: child.pid,
    })
    expect(store.runs.closeOrphanRuns(NOW)).toBe(1)
    expect(store.runs.readLatestRun('osv')).toMatchObject({
      state: 'failed',
      code: 'aborted',
      endedAt: NOW,
    })
    expect(store.runs.startRun(START)).toBe(2)
  })
})
