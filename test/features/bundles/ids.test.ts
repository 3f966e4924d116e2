import fc from 'fast-check'
import { expect, onTestFinished } from 'vitest'
import { faultOfRecordId } from '../../../src/base/domain/record-id.ts'
import { hasImported, hasUnreadDatabase } from '../../../src/store/database/unread.ts'
import { createBench } from '../../support/mirror.ts'
import { tamper } from '../../sync/fixtures.ts'
import { addStep } from '../../store/fixtures.ts'
import { ANY_CHARACTER } from '../../support/texts.ts'
import { below, carry, folder, serveFolder } from './air-gap.ts'
import { longTest, test } from '../../support/tables.ts'

/** Ids as a feed may have them: usual ones, and such as are special somewhere on the way. */
const PIECES = [
  ...['ROOT-APP-NPM-', 'CVE-2026-1', 'all', 'ALL', 'all.json', 'all.zip', 'index', 'A:2025-1'],
  ...['.', '..', './', '../', '/', '//', '\\', 'C:', 'C:/', '%', '%2F', '%2e%2e', '%00', '?', '#'],
  ...[' ', '\t', '\u0007', '\n', '\r', '\0', '\u2028', 'é', '漢', '\u{1f600}', '\ufffd', '\ud800'],
  ...['"', "'", '<', '&', '+', '~', 'con', 'NUL', '__proto__', '.json', 'x'.repeat(300)],
]
const id = fc
  .array(fc.oneof(fc.constantFrom(...PIECES), fc.string({ unit: ANY_CHARACTER, maxLength: 4 })), {
    minLength: 1,
    maxLength: 3,
  })
  .map((pieces) => pieces.join(''))

const recordOf = (one: string): string => JSON.stringify({ id: one, modified: '2026-01-01T00:00:00Z' })

longTest('records with any ids that a sync stores are exported, imported and served on both sides', async () => {
  const bench = await createBench({
    sandbox: { records: 1, large: 0 },
    env: { PATCHMIRROR_GUARD_LIMIT: 'removed=100% and 20', PATCHMIRROR_GUARD_MODE: 'off' },
  })
  const { feed } = bench.sandbox
  const media = folder()
  const there = below()
  const cross = async (): Promise<void> => {
    const { files, manifest } = await carry(bench.dir, media)
    await there.take(files)
    expect(there.digest()).toBe(manifest.digest)
  }
  feed.put('ROOT-1', recordOf('ROOT-1'))
  await bench.run('osv')
  await cross()
  const sides = [await serveFolder(bench.dir, bench.config), await serveFolder(there.dir, there.config)]
  const seen = { stored: 0, skipped: 0 }
  try {
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(id, { minLength: 1, maxLength: 12 }), fc.boolean(), async (ids, full) => {
        for (const old of feed.ids()) if (old !== 'ROOT-1') feed.delete(old)
        const listed = ['ROOT-1', ...ids.filter((one) => one !== '' && one.isWellFormed())]
        for (const one of listed) feed.put(one, recordOf(one))
        const usable = new Set(listed.filter((one) => faultOfRecordId(one) === null))
        const isWhole = usable.size === listed.length
        const report = await bench.run('osv', { full })
        expect(report).toMatchObject({ state: isWhole ? 'complete' : 'partial' })
        expect(new Set([...bench.store.osv.eachPair()].map(([one]) => one))).toEqual(usable)
        await cross()
        for (const ask of sides) {
          ask.look()
          for (const one of usable) {
            const answer = await ask(`/external/osv/${encodeURIComponent(one)}.json`)
            expect([one, answer.status, answer.body.toString()]).toEqual([one, 200, recordOf(one)])
          }
        }
        seen.stored += usable.size
        seen.skipped += listed.length - usable.size
      }),
      { numRuns: 15 },
    )
  } finally {
    await bench.close()
  }
  expect(seen.stored).toBeGreaterThan(20)
  expect(seen.skipped).toBeGreaterThan(0)
})

longTest('a record that could not be fetched is answered with the reason', async () => {
  const bench = await createBench({ sandbox: { records: 5, large: 0 } })
  onTestFinished(() => bench.close())
  const { feed, faults } = bench.sandbox
  await bench.run('osv')
  for (const one of ['ROOT-LOST', 'ROOT-BAD', 'all']) feed.put(one, recordOf(one))
  faults.set('/external/osv/ROOT-LOST.json', { kind: 'status', status: 404 })
  faults.set('/external/osv/ROOT-BAD.json', { kind: 'body', body: 'no JSON' })
  expect(await bench.run('osv')).toMatchObject({ state: 'partial' })
  const there = below()
  await there.take((await carry(bench.dir, folder())).files)
  const up = await serveFolder(bench.dir, bench.config)
  const down = await serveFolder(there.dir, there.config)
  const told = async (ask: typeof up, one: string): Promise<string> => {
    const { status, body } = await ask(`/external/osv/${encodeURIComponent(one)}.json`)
    return `${status} ${(JSON.parse(body.toString()) as { message: string }).message}`
  }
  // Which records are missing is looked up, without reading upstream's index again.
  const path = '/external/osv/all.json'
  const state = bench.store.feeds.readUpstreamState(path)
  if (state === null) throw new Error('there is no state of the index')
  bench.store.feeds.replaceUpstreamState(path, { ...state, body: Buffer.from('no gzip') })
  up.look()
  expect(await told(up, 'ROOT-LOST')).toMatch(/^404 upstream lists this record.*answers 404/)
  expect(await told(up, 'ROOT-BAD')).toMatch(/^503 upstream lists this record.*not JSON/)
  expect(await told(up, 'ROOT-NONE')).toMatch(/^404 upstream's index of this snapshot .*does not list this id/)
  bench.store.feeds.replaceUpstreamState(path, state)
  expect(await told(up, 'a\nb')).toMatch(/^404 no record of this id can be mirrored: .*line break/)
  const feeds = await down('/external/patch_feed')
  expect(feeds.status).toBe(503)
  expect(feeds.body.toString()).toMatch(/no bundle that was imported has feeds.*--sources feeds/)
  expect(await told(down, 'ROOT-BAD')).toMatch(/^404 this mirror does not have.*upstream may have it/)
  // Where it is not stored which records are missing, one more sync of the same index stores it.
  tamper(bench.dir, 'DELETE FROM osv_missing')
  tamper(bench.dir, 'DELETE FROM upstream_state WHERE path = ?', path)
  up.look()
  expect(await told(up, 'ROOT-BAD')).toMatch(/^404 this mirror does not have.*upstream may have it/)
  expect(await bench.run('osv')).toMatchObject({ state: 'partial' })
  up.look()
  expect(await told(up, 'ROOT-BAD')).toMatch(/^503 upstream lists this record.*not JSON/)
  faults.clear()
  feed.delete('all')
  expect(await bench.run('osv')).toMatchObject({ state: 'complete' })
  up.look()
  expect((await up('/external/osv/ROOT-BAD.json')).status).toBe(200)
})

test('a record that could not be fetched again is as old as its stored bytes', async () => {
  const bench = await createBench({ sandbox: { records: 5, large: 0 } })
  onTestFinished(() => bench.close())
  const { feed, faults } = bench.sandbox
  await bench.run('osv')
  tamper(bench.dir, 'UPDATE osv_record SET as_of = 1767225600000')
  const ask = await serveFolder(bench.dir, bench.config)
  const dateOf = async (id: string): Promise<unknown> =>
    (await ask(`/external/osv/${encodeURIComponent(id)}.json`)).headers['x-mirror-as-of']
  const [listed = '', silent = '', other = ''] = feed.ids()
  const published = await dateOf(listed)
  expect(published).not.toBe('2026-01-01T00:00:00.000Z')

  feed.put(listed, recordOf(listed), '2026-08-01T00:00:00Z')
  faults.set('/external/osv/R*.json', { kind: 'status', status: 404 })
  expect(await bench.run('osv')).toMatchObject({ state: 'partial' })
  tamper(bench.dir, 'INSERT INTO osv_doubted VALUES (?)', silent)
  ask.look()
  for (const id of [listed, silent]) expect(await dateOf(id)).toBe('2026-01-01T00:00:00.000Z')
  expect(await dateOf(other)).not.toBe('2026-01-01T00:00:00.000Z')

  faults.clear()
  expect(await bench.run('osv')).toMatchObject({ state: 'complete' })
  ask.look()
  expect(await dateOf(listed)).not.toBe('2026-01-01T00:00:00.000Z')
})

test('a mirror that was filled by imports is recognized in a database that is not migrated', async () => {
  const bench = await createBench({ sandbox: { records: 1, large: 0 } })
  onTestFinished(() => bench.close())
  await bench.run('osv')
  const there = below()
  expect([hasImported(there.dir), hasImported(bench.dir)]).toEqual([false, false])
  await there.take((await carry(bench.dir, folder())).files)
  expect([hasImported(there.dir), hasUnreadDatabase(there.dir)]).toEqual([true, false])
  there.store.close()
  addStep()
  expect([hasImported(there.dir), hasUnreadDatabase(there.dir)]).toEqual([true, true])
})
