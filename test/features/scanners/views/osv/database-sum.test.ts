import { readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect } from 'vitest'
import { openViewsReader } from '../../../../../src/store/database/open.ts'
import { checkViews } from '../../../../../src/features/scanners/views/check.ts'
import { FILLED_AT } from '../../../../support/filled-store.ts'
import { commandHost } from '../../../../support/hosted.ts'
import { bothTest, longTest, telling, test } from '../../../../support/tables.ts'
import { assetsOf, closeBenches, openBench, record } from '../fixtures.ts'

afterEach(closeBenches)

const run = commandHost()
const DAY = 86_400_000
const RECORDS = Object.fromEntries(['a', 'b', 'c'].map((id) => [id, record(id, '2026-05-01', ['Root:npm', id])]))

const database = (folder: string): string => join(folder, 'views.db')
const sum = (folder: string): string => join(folder, 'views.db.crc32')

/** Changes a stamp: it is in no index, so SQLite's own check does not see that it is another. */
function flipStamp(folder: string): void {
  const db = openViewsReader(database(folder))
  const stamp = db.prepare('SELECT stamp FROM record').pluck().get()
  db.close()
  const bytes = readFileSync(database(folder))
  const at = bytes.indexOf(String(stamp))
  expect(at).toBeGreaterThan(0)
  bytes[at + 3] = (bytes[at + 3] ?? 0) ^ 1
  writeFileSync(database(folder), bytes)
}

function isSound(folder: string): boolean {
  const db = openViewsReader(database(folder))
  try {
    return db.pragma('quick_check(1)', { simple: true }) === 'ok'
  } finally {
    db.close()
  }
}

const DOUBTS: [string, (folder: string) => void][] = [
  ['a flipped byte in its database', flipStamp],
  ['bytes behind its database', (folder) => writeFileSync(database(folder), 'x', { flag: 'a' })],
  ['an empty sum', (folder) => truncateSync(sum(folder), 0)],
  ['a sum cut short', (folder) => truncateSync(sum(folder), 8)],
  ['the sum of another database', (folder) => writeFileSync(sum(folder), '00000000\n')],
  ['a log of another program', (folder) => writeFileSync(`${database(folder)}-wal`, '')],
  ['a journal of another program', (folder) => writeFileSync(`${database(folder)}-journal`, '')],
]

bothTest.each(telling(DOUBTS, 'a flipped byte in its database', 'a sum cut short'))(
  'a generation with %s is noticed by a check and not updated',
  async (_, change) => {
    const bench = openBench()
    bench.store.publishOsv(RECORDS)
    await bench.make()
    expect([isSound(bench.folder()), checkViews(bench.dir)]).toEqual([true, []])
    change(bench.folder())
    expect(isSound(bench.folder())).toBe(true)
    expect(checkViews(bench.dir)).toEqual([{ kind: 'osv', fault: 'their database is damaged' }])
    const more = { ...RECORDS, d: record('d', '2026-05-01', ['Root:npm', 'd']) }
    bench.store.publishOsv(more, FILLED_AT + DAY)
    expect(await bench.make()).toMatchObject({ incremental: false })
    expect(checkViews(bench.dir)).toEqual([])
    const other = openBench()
    other.store.publishOsv(more, FILLED_AT + DAY)
    await other.make()
    expect(assetsOf(bench.open())).toEqual(assetsOf(other.open()))
  },
)

test('a generation whose sum is lost is damaged, and is made again from the beginning', async () => {
  const bench = openBench()
  bench.store.publishOsv(RECORDS)
  await bench.make()
  rmSync(sum(bench.folder()))
  expect(checkViews(bench.dir)).toEqual([{ kind: 'osv', fault: 'their database is damaged' }])
  bench.store.publishOsv({ ...RECORDS, d: record('d', '2026-05-01', ['npm', 'd']) }, FILLED_AT + DAY)
  expect(await bench.make()).toMatchObject({ incremental: false })
  expect(checkViews(bench.dir)).toEqual([])
})

longTest('patchmirror doctor --data names views whose database has another byte', async () => {
  const bench = openBench()
  bench.store.publishOsv(RECORDS)
  await bench.make()
  const verify = () => run(['doctor', '--data'], { PATCHMIRROR_DATA_DIR: bench.dir }, bench.dir)
  expect((await verify()).out).not.toContain('views for scanners')
  flipStamp(bench.folder())
  const { code, out } = await verify()
  expect(out).toContain('views for scanners (osv): their database is damaged')
  expect(code).toBe(1)
})
