import Database from 'better-sqlite3'
import { gzipSync } from 'node:zlib'
import { expect, onTestFinished } from 'vitest'
import { longTest, test } from '../../support/tables.ts'
import { sha256Hex } from '../../../src/base/digest.ts'
import { DATES_HEADER } from '../../../src/features/bundles/format/dates.ts'
import { eachCarriedDates } from '../../../src/features/bundles/import/carried/dates.ts'
import { parseManifest } from '../../../src/features/bundles/format/manifest.ts'
import { databasePath } from '../../../src/store/database/open.ts'
import { type Bench, createBench } from '../../support/mirror.ts'
import { below, carry, folder } from './air-gap.ts'
import { head } from './fixtures.ts'

const DAY = 86_400_000
const START = Date.UTC(2026, 4, 1)

/** A source mirror with a clock that tests set. */
async function source(): Promise<Bench & { clock: { at: number } }> {
  const clock = { at: START }
  const bench = await createBench({ sandbox: { records: 6 }, now: () => clock.at })
  onTestFinished(() => bench.close())
  await bench.run('osv')
  return { ...bench, clock }
}

const withFix = (id: string, fixed: string): string =>
  JSON.stringify({ id, affected: [{ ranges: [{ events: [{ introduced: '0' }, { fixed }] }] }] })

longTest('a target mirror has the dates of its source, from a full bundle and from deltas', async () => {
  const bench = await source()
  const { feed } = bench.sandbox
  const next = async (days: number): Promise<void> => {
    bench.clock.at = START + days * DAY
    await bench.run('osv')
  }
  feed.put('A-1', '{"id":"A-1"}', '2026-05-01')
  feed.put('B-1', withFix('B-1', '1'), '2026-05-01')
  await next(1)
  const to = folder()
  const there = below()
  const take = async (more: Parameters<typeof carry>[2] = {}): Promise<void> => {
    const { files } = await carry(bench.dir, to, more)
    const { outcome } = await there.take(files, { now: () => START + 100 * DAY })
    expect(outcome).toBe('applied')
    expect([...there.store.dates.eachDates()]).toEqual([...bench.store.dates.eachDates()])
  }
  await take()
  expect(there.store.dates.readDates('B-1')).toMatchObject({ firstSeen: START + DAY, fixSeen: START + DAY, flags: 0 })
  feed.put('A-1', withFix('A-1', '2'), '2026-05-02')
  feed.put('C-1', withFix('C-1', '2'), '2026-05-02')
  await next(2)
  feed.delete('B-1')
  await next(3)
  await take({ since: '1' })
  expect(there.store.dates.readDates('A-1')).toMatchObject({
    firstSeen: START + DAY,
    changedAt: START + 2 * DAY,
    fixSeen: START + 2 * DAY,
  })
  expect(there.store.dates.readDates('B-1')).toMatchObject({ removedAt: START + 3 * DAY, returnedAt: null })
  feed.put('B-1', withFix('B-1', '1'), '2026-05-04')
  await next(4)
  await take({ since: '1' })
  expect(there.store.dates.readDates('B-1')).toMatchObject({ removedAt: START + 3 * DAY, returnedAt: START + 4 * DAY })
  const third = below()
  const { files } = await carry(there.dir, to)
  await third.take(files, { now: () => START + 200 * DAY })
  expect([...third.store.dates.eachDates()]).toEqual([...bench.store.dates.eachDates()])
})

longTest('a bundle of an earlier program has no dates, and the import is the first time', async () => {
  const bench = await source()
  const db = new Database(databasePath(bench.dir))
  db.exec('DELETE FROM osv_dates')
  db.close()
  const { files, manifest } = await carry(bench.dir, folder())
  expect(manifest.counts).not.toHaveProperty('osv-dates')
  const there = below()
  await there.take(files)
  const { publishedAt = 0 } = there.store.snapshots.readSnapshot('osv') ?? {}
  const dates = [...there.store.dates.eachDates()]
  expect(dates).toHaveLength(6)
  for (const one of dates) expect(one).toMatchObject({ firstSeen: publishedAt, changedAt: publishedAt, flags: 0 })
})

longTest('the dates are the last member, a blob that no row names, and one more count', async () => {
  const bench = await source()
  const { manifest } = await carry(bench.dir, folder())
  const { name, method } = manifest.members.at(-1) ?? {}
  expect([method, manifest.counts['osv-dates']]).toEqual(['store', { put: 6, removed: 0 }])
  // What a program without dates accepts, as its rules have always been: test/features/bundles/format.
  expect(name).toMatch(/^blobs\/[\da-f]{64}\.gz$/)
  expect(parseManifest(Buffer.from(JSON.stringify(manifest)))).toEqual(manifest)
})

test.each([
  ['another header', ['{}'], 'is not the header of dates'],
  ['no JSON', [DATES_HEADER, '{'], 'is not JSON'],
  ['a short list', [DATES_HEADER, '["A-1",1]'], 'is not a list of 7 values'],
  ['an id that no record has', [DATES_HEADER, '["a\\u0000b",1,1,null,null,null,0]'], 'does not begin with the id'],
  ['a date that is none', [DATES_HEADER, '["A-1",-1,1,null,null,null,0]'], 'is not a whole number'],
  ['flags that are none', [DATES_HEADER, '["A-1",1,1,null,null,null,8]'], 'is not a whole number'],
  ['an order', [DATES_HEADER, ...['B', 'A'].map((id) => `["${id}",1,1,null,null,null,0]`)], 'out of order'],
  ['fewer dates', [DATES_HEADER], 'has 0 dates'],
  ['a line that ends early', [DATES_HEADER, '["A-1"'], 'ends within a line'],
])('dates with %s are refused', async (_, lines, why) => {
  const end = why.includes('within') ? '' : '\n'
  const member = gzipSync(lines.join('\n') + end)
  const name = `blobs/${sha256Hex(member)}.gz`
  const stored = {
    name,
    method: 'store',
    size: 1,
    crc32: '00000000',
    sha256: sha256Hex(''),
  } as const
  const counts = { 'osv-dates': { put: 2, removed: 0 } }
  const manifest = { ...head({ counts }), keys: [], members: [stored] }
  const stream = () =>
    (async function* () {
      yield await Promise.resolve(member)
    })()
  const read = async (): Promise<void> => {
    for await (const __ of eachCarriedDates({ manifest, stream }));
  }
  await expect(read()).rejects.toThrow(why)
})
