import { describe, expect, test } from 'vitest'
import { namesFix } from '../../../src/base/domain/named-fix.ts'
import type { RecordDates } from '../../../src/store/dates/reads.ts'
import type { Writes } from '../../../src/store/writes.ts'
import { record, snapshot, writes } from '../fixtures.ts'

const FIX = '{"id":"A-1","affected":[{"ranges":[{"events":[{"fixed" : "1.2"}]}]}]}'
const PLAIN = '{"id":"A-1","affected":[]}'

describe('a record names a fix', () => {
  test.each([
    [FIX, true],
    ['{"last_affected":"3"}', true],
    ['{"fixed":\n\t"1"}', true],
    [PLAIN, false],
    ['{"fixed":""}', false],
    ['{"fixed":true}', false],
    ['{"state":"fixed"}', false],
    [JSON.stringify({ details: 'see "fixed": "1.2"' }), false],
    ['{"state":"fixed","fixed":"1"}', true],
    ['{"unfixed":"1","fixed', false],
  ])('%s: %s', (text, expected) => {
    expect(namesFix(Buffer.from(text))).toBe(expected)
  })
})

/** Publishes what `work` writes as a snapshot at a time, as a sync does. `all`: without knowing what changed. */
function publish(store: Writes, at: number, work: () => void, all = false): Promise<unknown> {
  return store.transaction(() => {
    work()
    const change = store.snapshots.replaceSnapshot(snapshot({ id: `a${at}`, publishedAt: at }))
    store.dates.noteDates(all ? null : change, at)
    return Promise.resolve({ commit: true })
  })
}

const put = (store: Writes, id: string, text: string, stamp?: string): void =>
  store.osv.updateRecord({ ...record(id, text), ...(stamp !== undefined && { modified: stamp }) }, 1)

const dates = (more: Partial<RecordDates>): RecordDates => {
  const first = more.firstSeen ?? 0
  const none = { fixSeen: null, removedAt: null, returnedAt: null }
  return { id: 'A-1', firstSeen: first, changedAt: first, ...none, flags: 0, ...more }
}

describe.each([false, true])('dates of records (compared as a whole: %s)', (all) => {
  test('say when a record was first seen, with a fix, changed, removed and seen again', async () => {
    const store = writes()
    const read = (): RecordDates | null => store.dates.readDates('A-1')
    await publish(store, 100, () => put(store, 'A-1', PLAIN), all)
    expect(read()).toEqual(dates({ firstSeen: 100 }))
    await publish(store, 200, () => put(store, 'B-1', FIX), all)
    expect(read()).toEqual(dates({ firstSeen: 100 }))
    expect(store.dates.readDates('B-1')).toEqual(dates({ id: 'B-1', firstSeen: 200, fixSeen: 200 }))
    await publish(store, 300, () => put(store, 'A-1', PLAIN, 'another stamp'), all)
    expect(read()).toEqual(dates({ firstSeen: 100 }))
    await publish(store, 400, () => put(store, 'A-1', FIX), all)
    const fixed = { firstSeen: 100, changedAt: 400, fixSeen: 400 }
    expect(read()).toEqual(dates(fixed))
    await publish(store, 500, () => store.osv.removeRecord('A-1', 1, 500), all)
    expect(read()).toEqual(dates({ ...fixed, removedAt: 500 }))
    await publish(store, 600, () => store.osv.forgetTombstones(599), all)
    await publish(store, 700, () => put(store, 'A-1', FIX), all)
    expect(read()).toEqual(dates({ ...fixed, removedAt: 500, returnedAt: 700 }))
    await publish(store, 800, () => store.osv.dropRecord('A-1'), all)
    expect(read()).toEqual(dates({ ...fixed, removedAt: 800 }))
    await publish(store, 900, () => put(store, 'A-1', PLAIN), all)
    expect(read()).toEqual(dates({ ...fixed, changedAt: 900, removedAt: 800, returnedAt: 900 }))
    await publish(store, 950, () => put(store, 'A-1', FIX), all)
    expect(read()).toMatchObject({ changedAt: 950, fixSeen: 400 })
    expect([...store.dates.eachDates()].map(({ id }) => id)).toEqual(['A-1', 'B-1'])
  })
})

describe('dates of another mirror', () => {
  test('the earlier of two dates is kept, a later removal, and upper bounds of either side', async () => {
    const store = writes()
    await publish(store, 100, () => {
      for (const id of ['A-1', 'B-1', 'C-1']) put(store, id, FIX)
    })
    await publish(store, 200, () => store.osv.removeRecord('C-1', 1, 200))
    const adopt = (one: RecordDates): void => store.dates.adoptDates(one, 200, 1_000)
    adopt(dates({ firstSeen: 40, changedAt: 60, fixSeen: 50, flags: 4 }))
    expect(store.dates.readDates('A-1')).toEqual(dates({ firstSeen: 40, changedAt: 60, fixSeen: 50, flags: 4 }))
    adopt(dates({ firstSeen: 70, changedAt: 150, fixSeen: 70, removedAt: 80, returnedAt: 90 }))
    const merged = { firstSeen: 40, changedAt: 60, fixSeen: 50, flags: 4, removedAt: 80, returnedAt: 90 }
    expect(store.dates.readDates('A-1')).toEqual(dates(merged))
    adopt(dates({ firstSeen: 70, removedAt: 95 })) // it says that it is removed: not so here
    expect(store.dates.readDates('A-1')).toEqual(dates(merged))
    adopt(dates({ id: 'C-1', firstSeen: 10, changedAt: 10, fixSeen: 10, removedAt: 190 }))
    expect(store.dates.readDates('C-1')).toEqual(dates({ id: 'C-1', firstSeen: 10, fixSeen: 10, removedAt: 190 }))
    adopt(dates({ id: 'D-1', firstSeen: 10, removedAt: 5_000 })) // never here; its clock is ahead
    expect(store.dates.readDates('D-1')).toEqual(dates({ id: 'D-1', firstSeen: 10, removedAt: 1_000 }))
    adopt(dates({ id: 'E-1', firstSeen: 10 })) // not stored here
    expect(store.dates.readDates('E-1')).toBeNull()
  })
})
