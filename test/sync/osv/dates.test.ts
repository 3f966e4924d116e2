import { expect } from 'vitest'
import { longTest, test } from '../../support/tables.ts'
import { newestPast } from '../../../src/base/time.ts'
import { createChangedOf, recordChanged } from '../../../src/sync/osv/record.ts'
import { DAY, INDEX, PATCH_FEED, bench, createClock } from '../fixtures.ts'

const seconds = (stamp: string): number => Date.parse(stamp) / 1000

test('no Last-Modified is older than the newest stamp of the index, except for stamps in the future', async () => {
  const clock = createClock(Date.UTC(2026, 5, 15))
  const upstreams = createClock(Date.UTC(2026, 0, 1)) // its dates are older than what its records say
  const made = await bench({
    sandbox: { records: 5, large: 0, now: upstreams.now },
    now: clock.now,
  })
  const put = (id: string, own: string, listed = own): void => {
    made.sandbox.feed.put(id, JSON.stringify({ schema_version: '1.6.0', id, modified: own }), listed)
  }
  const dates = () => {
    const { store } = made
    return {
      index: store.feeds.readDocument(INDEX)?.changed ?? 0,
      archive: store.osv.readArchive()?.changed ?? 0,
      of: (id: string): number => store.osv.readServed(id)?.changed ?? 0,
    }
  }
  put('ROOT-NEWEST', '2026-06-10T12:00:00.25+02:00')
  put('ROOT-BY-THE-DAY', '2026-06-09T18:00:00Z', '2026-06-09')
  put('ROOT-LATER', '2026-07-01T00:00:00Z')
  expect(await made.run('osv')).toMatchObject({ state: 'complete' })
  const first = dates()
  expect(first.index).toBe(seconds('2026-06-10T10:00:01Z')) // rounded up: not older by a quarter of a second
  expect(first.archive).toBe(first.index)
  expect(first.of('ROOT-NEWEST')).toBe(first.index)
  expect(first.of('ROOT-BY-THE-DAY')).toBe(seconds('2026-06-09T18:00:00Z'))
  expect(first.of('ROOT-LATER')).toBeLessThan(seconds('2026-06-15T00:00:00Z'))

  const before = made.store.snapshots.readSnapshot('osv')
  clock.pass(60 * DAY) // the stamp of ROOT-LATER is past now, and nothing else has changed
  expect(await made.run('osv')).toMatchObject({ state: 'complete' })
  expect(dates()).toMatchObject({ index: seconds('2026-07-01'), archive: seconds('2026-07-01') })
  expect(made.store.snapshots.readSnapshot('osv')?.id).toBe(before?.id)

  made.sandbox.feed.remove(1)
  await made.run('osv')
  expect(dates().index).toBeGreaterThan(seconds('2026-07-01'))
  expect(dates().archive).toBeGreaterThanOrEqual(dates().index)
})

longTest('what changes after a way back to older data has a later date than what was served since', async () => {
  const clock = createClock(Date.UTC(2026, 5, 15))
  const made = await bench({ sandbox: { records: 5, now: createClock(Date.UTC(2026, 0, 1)).now }, now: clock.now })
  const { store, sandbox } = made
  await made.run('feeds')
  await made.run('osv')
  await store.exclusive(() => store.feeds.raiseDateFloor(clock.now()))
  const floor = store.feeds.readDateFloor() ?? 0
  const [id = ''] = sandbox.feed.change(1)
  sandbox.feed.touchFeeds()
  for (const source of ['feeds', 'osv'] as const) expect(await made.run(source)).toMatchObject({ state: 'complete' })
  const dates = [
    store.feeds.readDocument(PATCH_FEED)?.changed,
    store.feeds.readDocument(INDEX)?.changed,
    store.osv.readArchive()?.changed,
    store.osv.readServed(id)?.changed,
  ]
  for (const date of dates) expect(date).toBeGreaterThan(floor)
})

test('the newest of many stamps is found whatever their form is', () => {
  const now = Date.UTC(2026, 5, 1)
  const newest = (...stamps: string[]) => newestPast(stamps, now)
  expect(newest('2026-05-02T00:30:00+02:00', '2026-05-01T23:00:00Z')).toBe(seconds('2026-05-01T23:00:00Z'))
  expect(newest('2026-05-01T00:00:00Z', '2026-04-30T23:30:00-02:00')).toBe(seconds('2026-05-01T01:30:00Z'))
  expect(newest('2026-05-01', ' 2026-05-03', '2026-05-02')).toBe(seconds('2026-05-03'))
  expect(newest('2026-06-01T00:00:00Z', '2026-06-01T00:00:00.1Z')).toBe(seconds('2026-06-01'))
  expect(newest('soon', '', '9999-01-01')).toBeNull()
})

test('the Last-Modified of many records of one date is that of each by itself', () => {
  const now = Date.UTC(2026, 5, 1)
  const date = Date.UTC(2026, 4, 10, 12)
  const changedOf = createChangedOf(date, now)
  const zones = ['Z', '.5Z', '-23:00', '+23:00', '']
  for (let hour = -100; hour <= 100; hour++) {
    const at = new Date(date + hour * 3_600_000).toISOString()
    for (const zone of zones) {
      const stamp = zone === '' ? at.slice(0, 10) : at.slice(0, 19) + zone
      const stamps = [stamp, null, stamp]
      expect([stamp, changedOf(stamps)]).toEqual([stamp, recordChanged(date, now, stamps)])
    }
  }
  for (const stamp of ['', 'soon', ' 2026-05-30', '9999-01-01', '0', '2026-13-01', null])
    expect(changedOf([stamp])).toBe(recordChanged(date, now, [stamp]))
})
