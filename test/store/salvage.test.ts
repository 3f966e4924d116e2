import Database from 'better-sqlite3'
import { expect, onTestFinished, test } from 'vitest'
import { databasePath, openWriter } from '../../src/store/database/open.ts'
import { hashKey } from '../../src/store/keys.ts'
import { type Salvage, markBegunDates, salvageInto } from '../../src/store/salvage.ts'
import { openWrites } from '../../src/store/writer.ts'
import { DAMAGES, overwriteTable, settle } from '../support/damage.ts'
import { NOW, record, scratch, snapshot, writes } from './fixtures.ts'

/** A store with two keys, dates of some records and two snapshots in its change log, closed. */
function filled(records = 3): { dir: string; key: string } {
  const store = writes()
  const { key } = store.keys.createKey('ci', NOW)
  store.keys.revokeKey(store.keys.createKey('gone', NOW, 'alice').id, NOW + 1, 'bob')
  for (let i = 0; i < records; i++)
    store.osv.insertRecord(record(`R-${String(i).padStart(5, '0')}`, `${i}`), NOW / 1000)
  store.snapshots.replaceSnapshot(snapshot())
  store.dates.noteDates(null, NOW)
  store.close()
  settle(databasePath(store.dir))
  return { dir: store.dir, key }
}

/** Salvages a damaged database into a new one; returns the folder of that, and what was kept. */
function salvage(dir: string): { to: string; kept: Salvage } {
  const to = scratch()
  const db = openWriter(to)
  const kept = salvageInto(db, databasePath(dir))
  db.close()
  return { to, kept }
}

function open(dir: string) {
  const store = openWrites(dir)
  onTestFinished(() => store.close())
  return store
}

test('keys, secret, identity, dates and change log are kept of a database whose records are damaged', () => {
  const { dir, key } = filled()
  const before = openWrites(dir)
  const identity = before.ledger.readIdentity()
  const keys = before.keys.listKeys()
  before.close()
  overwriteTable(databasePath(dir), 'osv_body')
  const { to, kept } = salvage(dir)
  expect(kept).toEqual({ keys: 2, secret: true, identity: true, dates: 'whole', changes: true })
  const after = open(to)
  expect(after.keys.listKeys()).toEqual(keys)
  expect(after.keys.listKeyHashes()).toMatchObject([
    { hash: hashKey(key, after.secrets.readSecret('keys')) },
  ])
  expect(after.keys.createKey('', NOW).id).toBe(3)
  expect(after.ledger.readIdentity()).toBe(identity)
  expect(after.changes.readLatestLogged('osv')?.snapshot).toBe(snapshot().id)
})

test('nothing is kept of a database whose header is damaged, and a group of which a part is lost is lost', () => {
  const one = filled()
  DAMAGES.header(databasePath(one.dir))
  const none = { keys: null, secret: false, identity: false, dates: 'none', changes: false }
  expect(salvage(one.dir).kept).toEqual(none)
  const two = filled()
  overwriteTable(databasePath(two.dir), 'secret')
  expect(salvage(two.dir).kept).toMatchObject({ keys: null, secret: false, identity: true })
})

test('dates before and behind a damaged page are kept, and those that begin again are upper bounds', () => {
  const { dir } = filled(4_000)
  overwriteLeafOf(databasePath(dir), 'osv_dates')
  const { to, kept } = salvage(dir)
  expect(kept.dates).toBe('part')
  const db = openWriter(to)
  onTestFinished(() => void db.close())
  const ids = db.prepare<[], string>('SELECT id FROM osv_dates ORDER BY id').pluck().all()
  expect(ids.length).toBeGreaterThan(2_000)
  expect([ids[0], ids.at(-1)]).toEqual(['R-00000', 'R-03999'])
  db.prepare("INSERT INTO osv_dates (id, first_seen, changed_at, flags) VALUES ('Z', ?, ?, 0)").run(
    NOW + 5,
    NOW + 5,
  )
  markBegunDates(db, NOW + 1)
  const flags = db.prepare<[string], number>('SELECT flags FROM osv_dates WHERE id = ?').pluck()
  expect([flags.get('R-00000'), flags.get('Z')]).toEqual([0, 7])
})

test('the change log leads on where the same data is mirrored again, and names a step where it is other data', () => {
  const { dir } = filled()
  const same = open(salvage(dir).to)
  const last = same.changes.readLatestLogged('osv')
  same.snapshots.replaceSnapshot(snapshot())
  expect(same.changes.readLatestLogged('osv')).toEqual(last)
  expect(same.snapshots.readSnapshot('osv')?.sequence).toBe(last?.sequence)
  const other = open(salvage(dir).to)
  other.snapshots.replaceSnapshot({ ...snapshot(), id: 'f'.repeat(64) })
  expect(other.changes.readLatestLogged('osv')).toMatchObject({
    previous: snapshot().id,
    sequence: (last?.sequence ?? 0) + 1,
    complete: false,
  })
})

/** Overwrites a page in the middle of a table. */
function overwriteLeafOf(path: string, table: string): void {
  const db = new Database(path)
  const pages = db
    .prepare<[string], number>('SELECT pageno FROM dbstat WHERE name = ? ORDER BY path')
    .pluck()
    .all(table)
  db.close()
  DAMAGES.page(path, pages[Math.floor(pages.length / 2)] ?? 0)
}
