import { describe, expect } from 'vitest'
import { contentOf } from '../../../src/store/database/gzip.ts'
import { MAX_TRACKED } from '../../../src/store/changes/tracker.ts'
import type { Writes } from '../../../src/store/writes.ts'
import { NOW, record, snapshot, writes } from '../fixtures.ts'
import { longTest, test } from '../../support/tables.ts'
import { countSuperseded } from '../../support/stored-counts.ts'

const DAY = 86_400_000
const KEEP = { data: { historyDays: 90 } }
const NOTHING = { versions: 0, bodies: 0 }

type Step = (osv: Writes['osv']) => void

/** Publishes one snapshot after another, as syncs do, each a day later; the first has records a, b and c. */
async function published(...steps: Step[]): Promise<ReturnType<typeof writes>> {
  const store = writes()
  const first: Step = (osv) => ['a', 'b', 'c'].forEach((id) => osv.insertRecord(record(id), 1))
  for (const [i, step] of [first, ...steps].entries())
    await store.transaction(() => {
      step(store.osv)
      store.snapshots.replaceSnapshot(snapshot({ id: `s${i + 1}`, publishedAt: NOW + i * DAY }))
      return Promise.resolve({ commit: true })
    })
  return store
}

/** A version as text: its stamp, and its content unless it is the one of the next version or of today. */
function earlier({ osv }: Writes, id: string, log: number): string | null {
  const found = osv.readEarlier(id, log)
  if (found === null) return null
  const text = found.body === null ? '=' : contentOf(found.body, found.size).toString()
  return `${found.modified.slice(0, 10)} ${text}`
}

const stamped = (id: string, text: string, modified: string) => ({ ...record(id, text), modified })

describe('a superseded record', () => {
  test('stays as it was, under the row of the log that replaced or removed it', async () => {
    const store = await published(
      (osv) => {
        osv.updateRecord(record('a', 'two'), 2)
        osv.removeRecord('c', 1, NOW)
        osv.updateRecord(record('d', 'new'), 2)
        osv.updateRecord(record('b'), 2) // as it is
      },
      (osv) => {
        osv.updateRecord(record('a', 'three'), 3)
        osv.putRecord(record('d', 'put'), 3)
        osv.dropRecord('b')
      },
    )
    expect(earlier(store, 'a', 2)).toBe('2026-05-01 {"id":"a"}')
    expect(earlier(store, 'a', 3)).toBe('2026-05-01 two')
    expect(earlier(store, 'c', 2)).toBe('2026-05-01 {"id":"c"}')
    expect(earlier(store, 'd', 3)).toBe('2026-05-01 new')
    expect(earlier(store, 'b', 3)).toBe('2026-05-01 {"id":"b"}')
    for (const [id, log] of [
      ['b', 2],
      ['d', 2],
      ['c', 3],
    ] as const)
      expect(earlier(store, id, log)).toBeNull()
    expect(countSuperseded(store.dir)).toMatchObject({ versions: 5, bodies: 5 })
    expect(store.osv.countBodies()).toBe(2)
  })

  test('of which only the stamp changed shares the bytes of the next version', async () => {
    const store = await published(
      (osv) => osv.updateRecord(stamped('a', '{"id":"a"}', '2030-01-01T00:00:00Z'), 2),
      (osv) => osv.updateRecord(stamped('a', '{"id":"a"}', '2031-01-01T00:00:00Z'), 2),
      (osv) => osv.updateRecord(stamped('a', 'other', '2032-01-01T00:00:00Z'), 3),
      (osv) => osv.updateRecord(stamped('b', '{"id":"b"}', '2030-01-01T00:00:00Z'), 2),
    )
    expect(earlier(store, 'a', 2)).toBe('2026-05-01 {"id":"a"}')
    expect(earlier(store, 'a', 3)).toBe('2030-01-01 {"id":"a"}')
    expect(earlier(store, 'a', 4)).toBe('2031-01-01 {"id":"a"}')
    expect(earlier(store, 'b', 5)).toBe('2026-05-01 =')
    expect(countSuperseded(store.dir)).toMatchObject({ versions: 4, bodies: 1 })
  })

  test('that comes back again and again is stored once', async () => {
    const flip =
      (text: string): Step =>
      (osv) =>
        osv.updateRecord(record('a', text), 2)
    const store = await published(flip('x'), flip('y'), flip('x'), flip('y'), flip('x'))
    expect([2, 3, 4, 5, 6].map((log) => earlier(store, 'a', log)?.slice(11))).toEqual([
      '{"id":"a"}',
      ...['x', 'y', 'x', 'y'],
    ])
    expect(countSuperseded(store.dir)).toMatchObject({ versions: 5, bodies: 3 })
    store.changes.forgetOldChanges('osv', NOW + 93 * DAY, KEEP) // of s1 to s4
    expect(earlier(store, 'a', 4)).toBeNull()
    expect(earlier(store, 'a', 6)?.slice(11)).toBe('y')
    expect(countSuperseded(store.dir)).toMatchObject({ versions: 2, bodies: 2 })
  })

  test('of several writes of one transaction is the one that was published', async () => {
    const store = await published(
      (osv) => {
        osv.updateRecord(record('a', 'never published'), 2)
        osv.updateRecord(record('a', 'two'), 2)
        osv.updateRecord(record('d', 'never published'), 2)
        osv.removeRecord('d', 1, NOW)
      },
      (osv) => osv.removeRecord('a', 1, NOW),
    )
    expect(earlier(store, 'a', 2)).toBe('2026-05-01 {"id":"a"}')
    expect(earlier(store, 'a', 3)).toBe('2026-05-01 two')
    expect(earlier(store, 'd', 2)).toBeNull()
    expect(countSuperseded(store.dir)).toMatchObject({ versions: 2, bodies: 2 })
  })

  longTest('is not stored where more changed than the log lists', async () => {
    const many = Array.from({ length: MAX_TRACKED + 1 }, (_, i) => `many-${i}`)
    const store = await published(
      (osv) => osv.updateRecord(record('a', 'two'), 2),
      (osv) => {
        osv.updateRecord(record('a', 'three'), 2)
        for (const id of many) osv.putRecord({ ...record('m'), id }, 2)
        osv.updateRecord(record('b', 'two'), 2)
      },
    )
    expect(earlier(store, 'a', 2)).toBe('2026-05-01 {"id":"a"}')
    expect([earlier(store, 'a', 3), earlier(store, 'b', 3)]).toEqual([null, null])
    expect(countSuperseded(store.dir)).toMatchObject({ versions: 1, bodies: 1 })
  })

  test('is deleted after data.historyDays, with the change that replaced it', async () => {
    const store = await published(
      (osv) => osv.updateRecord(record('a', 'two'), 2),
      (osv) => osv.removeRecord('a', 1, NOW),
    )
    store.changes.forgetOldChanges('osv', NOW + 2 * DAY, KEEP)
    expect(countSuperseded(store.dir)).toMatchObject({ versions: 2, bodies: 2 })
    expect(store.changes.countLogged(0)).toBe(3)
    store.changes.forgetOldChanges('osv', NOW + 93 * DAY, KEEP)
    expect(countSuperseded(store.dir)).toEqual(NOTHING)
    expect(store.changes.countLogged(0)).toBe(1)
  })

  test('moves to the place that an adopted log gives its change, or is dropped', async () => {
    const store = await published((osv) => {
      osv.updateRecord(record('a', 'two'), 2)
      osv.updateRecord(record('b', 'two'), 2)
    })
    const row = store.changes.readLogged(2)
    if (row === null) throw new Error('s2 is not in the log')
    const doubts = { run: 1, doubted: { affectedLost: ['a'] } }
    await store.exclusive(() => store.changes.noteDoubts('osv', 1, doubts))
    expect(store.changes.readDoubtsOf('osv', row.snapshot)).toEqual(doubts)
    const adopted = { ...row, id: 7, names: [['a', 'changed'] as [string, 'changed']] }
    await store.exclusive(() => store.changes.adoptLog(1, [adopted]))
    expect(earlier(store, 'a', 7)).toBe('2026-05-01 {"id":"a"}')
    expect(countSuperseded(store.dir)).toMatchObject({ versions: 1, bodies: 1 })
    expect(store.changes.readDoubtsOf('osv', row.snapshot)).toBe(null) // it is not this mirror's guard that judged it
  })
})
