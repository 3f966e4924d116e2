import { statSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect } from 'vitest'
import { openReader, openViewsWriter } from '../../../../../src/store/database/open.ts'
import { createReads } from '../../../../../src/store/reads.ts'
import { writeDatabaseSum } from '../../../../../src/features/scanners/views/osv/database-sum.ts'
import { makeOsvViews } from '../../../../../src/features/scanners/views/osv/views.ts'
import { createRandom } from '../../../../sandbox/feed/random.ts'
import { viewsPath } from '../../../../../src/features/scanners/store/generations.ts'
import { GAP, numberBetween } from '../../../../../src/features/scanners/store/numbers.ts'
import { FILLED_AT } from '../../../../support/filled-store.ts'
import { type ViewsBench, assetsOf, closeBenches, openBench, record } from '../fixtures.ts'
import { longTest, test } from '../../../../support/tables.ts'

afterEach(closeBenches)

const DAY = 86_400_000
const random = createRandom(3, 1)

/** A record that fills half of a part of an archive: its text can hardly be compressed. */
function largeRecord(id: string, ecosystem: string): string {
  const text = Array.from({ length: 4000 }, () => random.int(2 ** 32).toString(36)).join('')
  const plain = record(id, '2026-05-01T00:00:00Z', [ecosystem, 'p'])
  return plain.replace('"id"', `"details":"${text}","id"`)
}

/** Everything that is read of each record, with the records around it. */
function recordsOf(bench: ViewsBench, ids: readonly string[]): unknown[] {
  const views = bench.open()
  return ids.map((id) => [
    views.readUpstreamRecord(id)?.deflated.toString('base64'),
    views.listViewsOf(id).map((name) => views.readViewRecord(name, id)?.crc32),
    views.listCandidates('npm', 'p', id, 3),
  ])
}

async function expectSameAsFull(bench: ViewsBench, records: Record<string, string>, at: number) {
  const full = openBench()
  full.store.publishOsv(records, at)
  await full.make()
  expect(assetsOf(bench.open())).toEqual(assetsOf(full.open()))
  expect(bench.open().listEcosystems()).toEqual(full.open().listEcosystems())
  const ids = Object.keys(records)
  expect(recordsOf(bench, ids)).toEqual(recordsOf(full, ids))
}

longTest('an update of archives of several parts gives the same files and answers as a full build', async () => {
  const bench = openBench()
  const held = new Map<string, string>()
  const set = (id: string, ecosystem: string) => held.set(id, largeRecord(id, ecosystem))
  for (let i = 10; i < 26; i++) set(`R-${i}`, ['Root:npm', 'npm', 'Root:Debian:12'][i % 3] ?? '')
  const steps: (() => void)[] = [
    () => undefined,
    () => set('R-18', 'npm'), // changed within a part
    () => held.delete('R-10'), // the first of the first part
    () => set('A-1', 'npm'), // before all
    () => [set('R-175', 'npm'), set('R-176', 'Root:npm'), set('Z', 'Root:npm')],
    () => [set('R-24', 'PyPI'), held.delete('Z')], // a new folder, and the last record is gone
    () => set('R-24', 'npm'), // the folder is gone again
  ]
  for (const [at, step] of steps.slice(0, 7).entries()) {
    step()
    const records = Object.fromEntries([...held].sort())
    const time = FILLED_AT + at * DAY
    bench.store.publishOsv(records, time)
    expect(await bench.make()).toMatchObject({ incremental: at > 0, records: held.size })
    if (at === 3 || at === 6) await expectSameAsFull(bench, records, time)
  }
})

test('the views know which ecosystems and releases their records name, also after an update takes the last record of one', async () => {
  const bench = openBench()
  const named = (id: string, ...ecosystems: string[]) =>
    [id, record(id, '2026-05-01T00:00:00Z', ...ecosystems.map((one): [string, string] => [one, 'p']))] as const
  const first = [named('A', 'Root:Debian:12', 'npm'), named('B', 'Debian:12', 'Debian:11')]
  bench.store.publishOsv(Object.fromEntries(first))
  await bench.make()
  expect(bench.open().listEcosystems()).toEqual(['Debian:11', 'Debian:12', 'Root:Debian:12', 'npm'])
  const next = [first[0] ?? named('A'), named('B', 'Alpine:v3.18')]
  bench.store.publishOsv(Object.fromEntries(next), FILLED_AT + DAY)
  expect(await bench.make()).toMatchObject({ incremental: true })
  expect(bench.open().listEcosystems()).toEqual(['Alpine:v3.18', 'Debian:12', 'Root:Debian:12', 'npm'])
})

longTest('an archive that has all records as they are published is another name for the published one', async () => {
  const bench = openBench()
  const records: Record<string, string> = {}
  const isShared = (): boolean => {
    const views = bench.open()
    const inode = (path: string) => statSync(join(views.folder, views.readAsset(path)?.file ?? '')).ino
    return inode('Root/all.zip') === inode('all.zip')
  }
  for (let at = 0; at < 3; at++) {
    for (const i of [1, 2, 3, 4, 5]) if (at === 0 || i === at) records[`R-${i}`] = largeRecord(`R-${i}`, 'Root:npm')
    bench.store.publishOsv(records, FILLED_AT + at * DAY)
    expect(await bench.make()).toMatchObject({ incremental: at > 0 })
    expect(isShared()).toBe(true)
  }
  await expectSameAsFull(bench, records, FILLED_AT + 2 * DAY)
  records['X'] = record('X', '', ['npm', 'p'])
  bench.store.publishOsv(records, FILLED_AT + 3 * DAY)
  await bench.make()
  expect(isShared()).toBe(false)
  await expectSameAsFull(bench, records, FILLED_AT + 3 * DAY)
})

longTest('an update reads the records that the change log names, and compares all where it does not say', async () => {
  const bench = openBench()
  const records: Record<string, string> = {}
  for (const id of 'abcdef') records[id] = record(id, '2026-05-01', ['Root:npm', id])
  bench.store.publishOsv(records, FILLED_AT)
  await bench.make()
  const make = async (compares: boolean): Promise<void> => {
    const db = openReader(bench.dir)
    const reads = db && createReads(db)
    if (reads === null) throw new Error('there is no store')
    let compared = false
    const eachDigest = () => {
      compared = true
      return reads.osv.eachDigest()
    }
    const pause = (): Promise<void> => Promise.resolve()
    const counted = { ...reads, osv: { ...reads.osv, eachDigest } }
    const made = await makeOsvViews({
      dataDir: bench.dir,
      reads: counted,
      vendors: ['Root'],
      pause,
    })
    expect([made?.incremental, compared]).toEqual([true, compares])
    db?.close()
  }
  records['b'] = record('b', '2026-06-01', ['Root:npm', 'other'], ['Root:PyPI', 'b'])
  delete records['c']
  bench.store.publishOsv(records, FILLED_AT + DAY)
  await make(false)
  await expectSameAsFull(bench, records, FILLED_AT + DAY)
  records['d'] = record('d', '2026-07-01', ['npm', 'd'])
  bench.store.publishOsv(records, FILLED_AT + 2 * DAY)
  bench.store.damage('DELETE FROM change_log')
  await make(true)
  await expectSameAsFull(bench, records, FILLED_AT + 2 * DAY)
  records['e'] = record('e', '2026-08-01', ['npm', 'e'])
  bench.store.publishOsv(records, FILLED_AT + 3 * DAY)
  bench.store.damage("DELETE FROM osv_record WHERE id = 'f'") // the log does not name it
  await make(true)
  expect(bench.open().readUpstreamRecord('f')).toBeNull()
})

longTest(
  'a first build of many records has the rows of an updated one, also where an archive begins as the published one',
  async () => {
    const bench = openBench()
    const ids = Array.from({ length: 130 }, (_, i) => `R-${1000 + i}`)
    const all = ids.map((id, i) => {
      const plain = () => record(id, '2026-05-01', ['Root:npm', 'p'], ['Root:Debian:12', `q${-i}`])
      return [id, i < 8 ? largeRecord(id, 'Root:npm') : plain()] as const
    })
    const records = { ...Object.fromEntries(all), Z: record('Z', '2026-06-01', ['npm', 'p']) }
    bench.store.publishOsv(Object.fromEntries(all.slice(0, 60)), FILLED_AT)
    await bench.make()
    bench.store.publishOsv(records, FILLED_AT + DAY)
    expect(await bench.make()).toMatchObject({ incremental: true, records: 131 })
    await expectSameAsFull(bench, records, FILLED_AT + DAY)
    expect(bench.open().listCandidates('npm', 'p', '', 200)).toHaveLength(131)
  },
)

test('a generation that earlier rules made is not updated: the next one is built from the beginning', async () => {
  const bench = openBench()
  const records = { A: record('A', '2026-05-01', ['Root:npm', 'p']), B: record('B', '2026-05-02') }
  bench.store.publishOsv(records, FILLED_AT)
  await bench.make()
  const db = openViewsWriter(viewsPath(bench.folder()))
  db.exec(`UPDATE generation SET form = '[8,"Root"]'`)
  db.close()
  writeDatabaseSum(bench.folder())
  const changed = { ...records, B: record('B', '2026-05-03', ['Root:Debian:12', 'q']) }
  bench.store.publishOsv(changed, FILLED_AT + DAY)
  expect(await bench.make()).toMatchObject({ incremental: false, records: 2 })
  await expectSameAsFull(bench, changed, FILLED_AT + DAY)
})

test('numbers of records stay in the order of the ids, until none is free', () => {
  expect(numberBetween(null, null)).toBe(GAP)
  expect(numberBetween(GAP, null)).toBe(2 * GAP)
  expect(numberBetween(null, GAP)).toBeLessThan(GAP)
  let low = 0
  let ascending = 0
  for (let next = numberBetween(low, GAP); next !== null; next = numberBetween(low, GAP)) {
    expect(next > low && next < GAP).toBe(true)
    low = next
    ascending++
  }
  expect(ascending).toBeGreaterThan(8000)
  let high = GAP
  let descending = 0
  for (let next = numberBetween(0, high); next !== null; next = numberBetween(0, high)) {
    high = next
    descending++
  }
  expect(descending).toBeGreaterThan(10)
})

longTest('a build without a free number between two records is done from the beginning', async () => {
  const bench = openBench()
  const records: Record<string, string> = { a: record('a', '', ['npm', 'p']), z: '{}' }
  const built: boolean[] = []
  for (let at = 0; at < 20; at++) {
    bench.store.publishOsv(records, FILLED_AT + at * DAY)
    built.push((await bench.make())?.incremental ?? false)
    records[`b${String(50 - at)}`] = record('b', '', ['npm', 'p'])
  }
  expect(built.lastIndexOf(false)).toBeGreaterThan(0)
  const ids = bench.open().listCandidates('npm', 'p', '', 100)
  expect(ids.map(({ id }) => id)).toEqual(ids.map(({ id }) => id).sort())
  expect(ids).toHaveLength(20)
})

longTest('records that another thread prepares give the same files as those of one thread', async () => {
  const bench = openBench()
  const records: Record<string, string> = {}
  const add = (from: number, to: number): void => {
    for (let i = from; i < to; i++)
      records[`R-${String(i)}`] = record(`R-${String(i)}`, '2026-05-01', ['Root:npm', `p${String(i)}`])
  }
  add(1000, 4950) // fewer than a thread is started for
  bench.store.publishOsv(records, FILLED_AT)
  await bench.make()
  add(4950, 5050)
  bench.store.publishOsv(records, FILLED_AT + DAY)
  expect(await bench.make()).toMatchObject({ incremental: true, changed: 100 })
  await expectSameAsFull(bench, records, FILLED_AT + DAY)
})
