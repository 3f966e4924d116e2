import Database from 'better-sqlite3'
import { expect, onTestFinished } from 'vitest'
import { databasePath, openWriter } from '../../src/store/database/open.ts'
import { hashKey } from '../../src/store/keys.ts'
import { type Salvage, beginRepair, finishReplacing, salvageInto } from '../../src/store/salvage.ts'
import { openWrites } from '../../src/store/writes.ts'
import { DAMAGES, overwriteTable, settle } from '../support/damage.ts'
import { NOW, record, scratch, snapshot, writes } from './fixtures.ts'
import { longTest, test } from '../support/tables.ts'

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
  const kept = salvageInto(db, databasePath(dir), NOW)
  db.close()
  return { to, kept }
}

function open(dir: string) {
  const store = openWrites(dir)
  onTestFinished(() => store.close())
  return store
}

const ALL: Salvage = {
  keys: 'whole',
  keyCount: 2,
  secret: true,
  identity: true,
  bundles: 'whole',
  dates: 'whole',
  changes: 'whole',
}

test('keys, secret, identity, dates and change log are kept of a database whose records are damaged', () => {
  const { dir, key } = filled()
  const before = openWrites(dir)
  const identity = before.ledger.readIdentity()
  const keys = before.keys.listKeys()
  before.close()
  overwriteTable(databasePath(dir), 'osv_body')
  const { to, kept } = salvage(dir)
  expect(kept).toEqual(ALL)
  const after = open(to)
  expect(after.keys.listKeys()).toEqual(keys)
  expect(after.keys.listKeyHashes()).toMatchObject([{ hash: hashKey(key, after.secrets.readSecret('keys')) }])
  expect(after.keys.createKey('', NOW).id).toBe(3)
  expect(after.ledger.readIdentity()).toBe(identity)
  expect(after.changes.readLatestLogged('osv')?.snapshot).toBe(snapshot().id)
  expect(after.feeds.readDateFloor()).toBe(NOW / 1000 + 1)
})

test('nothing is kept of a database whose header is damaged, and no key without its secret', () => {
  const one = filled()
  DAMAGES.header(databasePath(one.dir))
  expect(salvage(one.dir).kept).toMatchObject({ secret: false, keys: 'none', dates: 'none' })
  const two = filled()
  overwriteTable(databasePath(two.dir), 'secret')
  const lost = { ...ALL, keys: 'none', keyCount: 0, secret: false }
  expect(salvage(two.dir).kept).toEqual(lost)
})

longTest('keys, secret and identity are kept of a database that is cut off behind them', () => {
  const { dir, key } = filled(1_000)
  const before = openWrites(dir)
  const identity = before.ledger.readIdentity()
  before.close()
  settle(databasePath(dir))
  DAMAGES.cut(databasePath(dir))
  const { to, kept } = salvage(dir)
  expect(kept).toMatchObject({ keys: 'whole', keyCount: 2, secret: true, identity: true })
  const after = open(to)
  expect(after.ledger.readIdentity()).toBe(identity)
  const hash = hashKey(key, after.secrets.readSecret('keys'))
  expect(after.keys.listKeyHashes()).toMatchObject([{ hash }])
})

test('keys before and behind a damaged page are kept, with numbers that were not given before', () => {
  const { dir } = filled()
  const store = openWrites(dir)
  for (let i = 0; i < 300; i++) store.keys.createKey(`key ${i} ${'x'.repeat(60)}`, NOW)
  store.close()
  overwriteLeavesOf(databasePath(dir), 'local_key')
  const { to, kept } = salvage(dir)
  expect(kept.keys).toBe('part')
  const { keys } = open(to)
  const ids = keys.listKeys().map(({ id }) => id)
  expect([ids[0], ids.at(-1), ids.length]).toEqual([1, 302, kept.keyCount])
  expect(ids.length).toBeGreaterThan(200)
  expect(keys.createKey('', NOW).id).toBe(303)
})

longTest('dates between several damaged pages are kept', () => {
  const { dir } = filled(1_500)
  overwriteLeavesOf(databasePath(dir), 'osv_dates', [0.3, 0.6])
  const { to, kept } = salvage(dir)
  expect(kept.dates).toBe('part')
  const db = openWriter(to)
  onTestFinished(() => void db.close())
  const ids = db.prepare<[], string>('SELECT id FROM osv_dates ORDER BY id').pluck().all()
  expect([ids[0], ids.at(-1)]).toEqual(['R-00000', 'R-01499'])
  expect(ids.length).toBeGreaterThan(1_100)
})

test('a log that lost a row leads on from behind it, and a row that lost names says that everything may have changed', () => {
  const { dir } = filled()
  const db = openWriter(dir)
  const log = db.prepare(
    `INSERT INTO change_log (source, snapshot, previous, sequence, published_at, as_of, records, added, changed, removed, complete)
     VALUES ('feeds', ?, ?, ?, 0, 0, 1, 1, 0, 0, 1)`,
  )
  const name = db.prepare('INSERT INTO change_name (log, name, kind) VALUES (?, ?, 0)')
  const ids: number[] = []
  for (let i = 0; i < 600; i++) {
    const { lastInsertRowid: id } = log.run(
      `s${i}`.padEnd(64, '0'),
      i === 0 ? null : `s${i - 1}`.padEnd(64, '0'),
      i + 1,
    )
    ids.push(Number(id))
    name.run(id, `/feed/${i}`)
  }
  db.close()
  settle(databasePath(dir))
  overwriteLeavesOf(databasePath(dir), 'change_log', [0.3])
  overwriteLeavesOf(databasePath(dir), 'change_name', [0.7])
  const { to, kept } = salvage(dir)
  expect(kept.changes).toBe('part')
  const { changes } = open(to)
  expect(changes.readLatestLogged('feeds')).toMatchObject({ id: ids.at(-1), complete: true })
  const rows = ids.flatMap((id) => changes.readLogged(id) ?? [])
  const [oldest] = rows
  expect(rows.map(({ id }) => id)).toEqual(ids.slice(ids.indexOf(oldest?.id ?? 0)))
  expect(rows.length).toBeGreaterThan(300)
  expect(rows.some(({ complete, added }) => !complete && added === null)).toBe(true)
})

longTest(
  'dates that begin after a repair lost some are upper bounds until a whole snapshot, however it was interrupted',
  () => {
    const { dir } = filled(500)
    overwriteLeavesOf(databasePath(dir), 'osv_dates')
    const { to, kept } = salvage(dir)
    expect(kept.dates).toBe('part')
    const begun = openWriter(to)
    beginRepair(begun, ['feeds', 'osv'], kept)
    begun.close()
    const flags = (id: string): number => open(to).dates.readDates(id)?.flags ?? -1
    publish(to, 'NEW-1', NOW + 5, false)
    expect([flags('R-00000'), flags('NEW-1')]).toEqual([0, 7])
    publish(to, 'NEW-2', NOW + 6, true)
    publish(to, 'NEW-3', NOW + 7, true)
    expect([flags('NEW-1'), flags('NEW-2'), flags('NEW-3')]).toEqual([7, 7, 0])
  },
)

/** Publishes a snapshot with one record more. */
function publish(dir: string, id: string, at: number, whole: boolean): void {
  const store = openWrites(dir)
  store.osv.insertRecord(record(id), Math.floor(at / 1000))
  store.snapshots.replaceSnapshot(snapshot({ id, publishedAt: at, whole }))
  store.dates.noteDates(null, at)
  store.close()
}

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

/** Overwrites pages of a table, by default one in its middle. */
function overwriteLeavesOf(path: string, table: string, parts: readonly number[] = [0.5]): void {
  settle(path)
  const db = new Database(path)
  const pages = db
    .prepare<[string], number>('SELECT pageno FROM dbstat WHERE name = ? ORDER BY path')
    .pluck()
    .all(table)
  db.close()
  for (const part of parts) DAMAGES.page(path, pages[Math.floor(pages.length * part)] ?? 0)
}

test('a daemon or a repair that begins in a data folder that is a file names the folder', () => {
  const { dir } = filled(1)
  const error = new RegExp(`the data folder ${databasePath(dir)} is not a folder`)
  expect(() => finishReplacing(databasePath(dir))).toThrow(error)
})
