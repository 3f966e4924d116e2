import { describe, expect } from 'vitest'
import { MAX_TRACKED } from '../../../src/store/changes/tracker.ts'
import type { Writes } from '../../../src/store/writes.ts'
import { NOW, record, snapshot, writes } from '../fixtures.ts'
import { longTest, test } from '../../support/tables.ts'
import { countSuperseded } from '../../support/stored-counts.ts'

const DAY = 86_400_000

/** Publishes an OSV snapshot in one transaction, as a sync does. */
async function publish(
  store: Writes,
  id: string,
  work: () => void,
  more: Parameters<typeof snapshot>[0] = {},
): Promise<void> {
  await store.transaction(() => {
    work()
    store.snapshots.replaceSnapshot(snapshot({ id, ...more }))
    return Promise.resolve({ commit: true })
  })
}

/** A log with a first snapshot of records a, b and c. */
async function begun(): Promise<Writes & { dir: string }> {
  const store = writes()
  await publish(store, 's1', () => {
    for (const id of ['a', 'b', 'c']) store.osv.insertRecord(record(id), 1)
  })
  return store
}

const names = (store: Writes, id: number) =>
  store.changes.listNames(id, 100).map(({ name, change }) => `${name} ${change}`)

describe('the change log', () => {
  test('has no names for a first snapshot', async () => {
    const store = await begun()
    expect(store.changes.listLogged(0, 10)).toMatchObject([
      { id: 1, source: 'osv', snapshot: 's1', previous: null, sequence: 1, complete: false },
    ])
    expect(names(store, 1)).toEqual([])
  })

  test('has the change of each record for each later snapshot', async () => {
    const store = await begun()
    await publish(store, 's2', () => {
      store.osv.updateRecord(record('a', 'other'), 2)
      store.osv.updateRecord(record('d'), 2)
      store.osv.removeRecord('c', 1, NOW)
      store.osv.updateRecord(record('b'), 2) // as it is
    })
    expect(store.changes.readLatestLogged('osv')).toMatchObject({
      snapshot: 's2',
      previous: 's1',
      sequence: 2,
      complete: true,
      added: 1,
      changed: 1,
      removed: 1,
    })
    expect(names(store, 2)).toEqual(['a changed', 'c removed', 'd added'])
  })

  test('has a record of which only the stamp is new, and not one that returned unchanged', async () => {
    const store = await begun()
    await publish(store, 's2', () => {
      store.osv.updateRecord({ ...record('a'), modified: '2030-01-01T00:00:00Z' }, 2)
      store.osv.removeRecord('b', 1, NOW)
      store.osv.updateRecord(record('b'), 2)
      store.osv.updateRecord(record('d'), 2)
      store.osv.removeRecord('d', 1, NOW)
      store.osv.removeRecord('never there', 1, NOW)
    })
    expect(names(store, 2)).toEqual(['a changed'])
  })

  test('has no row when nothing served changed, and none of a rolled back transaction', async () => {
    const store = await begun()
    await publish(store, 's1', () => store.osv.updateRecord(record('a'), 2), { whole: false })
    expect(store.changes.lastLogged()).toBe(1)
    const undone = store.transaction(() => {
      store.osv.updateRecord(record('lost'), 2)
      return Promise.resolve({ commit: false })
    })
    await undone
    await publish(store, 's2', () => store.osv.updateRecord(record('kept'), 2))
    expect(names(store, 2)).toEqual(['kept added'])
  })

  test('names feeds by their paths, and an absent feed as missing', async () => {
    const store = writes()
    const feed = (path: string, text: string | null) => {
      const { sha256, body, size } = record(path, text ?? '')
      const rest = { sha256, size, changed: 1, entries: 0 }
      store.feeds.replaceDocument({
        path,
        source: 'feeds',
        body: text === null ? null : body,
        ...rest,
      })
    }
    const of = { source: 'feeds' } as const
    await publish(store, 'f1', () => feed('/external/patch_feed', '{}'), of)
    const second = () => {
      feed('/external/patch_feed', '{ }')
      feed('/external/cve_feed', null)
      feed('/external/extra', '[]')
    }
    await publish(store, 'f2', second, of)
    await publish(store, 'f3', () => store.feeds.removeDocument('/external/extra'), of)
    expect(names(store, 2)).toEqual(['/external/extra added', '/external/patch_feed changed'])
    expect(names(store, 3)).toEqual(['/external/extra removed'])
  })

  longTest('omits names beyond its limit, and reports that it is incomplete', async () => {
    const store = await begun()
    await publish(store, 's2', () => {
      for (let i = 0; i <= MAX_TRACKED; i++) store.osv.updateRecord(record(`many-${i}`), 2)
    })
    expect(store.changes.readLatestLogged('osv')).toMatchObject({ complete: false, added: null })
    expect(store.changes.countNames({ source: 'osv', after: 1, until: 2 })).toBeNull()
  })

  test('folds the changes between two snapshots', async () => {
    const store = await begun()
    await publish(store, 's2', () => {
      store.osv.updateRecord(record('d'), 2)
      store.osv.updateRecord(record('e'), 2)
      store.osv.removeRecord('a', 1, NOW)
      store.osv.removeRecord('b', 1, NOW)
    })
    await publish(store, 's3', () => {
      store.osv.removeRecord('d', 1, NOW)
      store.osv.updateRecord(record('e', 'again'), 3)
      store.osv.updateRecord(record('a', 'back'), 3)
    })
    const span = { source: 'osv', after: 1, until: 3 } as const
    expect(store.changes.listChanged(span, '', 10)).toEqual([
      { name: 'a', change: 'changed', log: 2, snapshot: 's3', publishedAt: NOW },
      { name: 'b', change: 'removed', log: 2, snapshot: 's2', publishedAt: NOW },
      { name: 'e', change: 'added', log: 2, snapshot: 's3', publishedAt: NOW },
    ])
    const [, second] = store.changes.listChanged(span, '', 2)
    expect(store.changes.listChanged(span, 'a', 1)).toEqual([second])
    expect(store.changes.findInLog('s1')).toEqual([{ source: 'osv', after: 1 }])
    expect(store.changes.findInLog('none')).toEqual([])
  })

  test('removes old rows but never the newest, and continues from the snapshot before it', async () => {
    const store = await begun()
    for (const n of [2, 3, 4]) {
      const work = () => store.osv.updateRecord(record('a', String(n)), n)
      await publish(store, `s${n}`, work, { publishedAt: NOW + n * DAY })
    }
    store.changes.forgetChanges('osv', NOW + 3 * DAY)
    expect(store.changes.listLogged(0, 10).map(({ snapshot }) => snapshot)).toEqual(['s3', 's4'])
    expect(names(store, 2)).toEqual([])
    expect(store.changes.findInLog('s1')).toEqual([])
    expect(store.changes.findInLog('s2')).toEqual([{ source: 'osv', after: 2 }])
    store.changes.forgetChanges('osv', NOW + 100 * DAY)
    expect(store.changes.listLogged(0, 10).map(({ snapshot }) => snapshot)).toEqual(['s4'])
    expect(store.changes.countLogged(0)).toBe(1)
    expect(store.changes.lastLogged()).toBe(4)
  })

  test('loses no row to a later one that a clock which was behind dated', async () => {
    const store = await begun()
    for (const n of [2, 3, 4]) {
      const work = () => store.osv.updateRecord(record('a', String(n)), n)
      await publish(store, `s${n}`, work, { publishedAt: n === 3 ? 1 : NOW + n * DAY })
    }
    const keep = { data: { historyDays: 5 } }
    store.changes.forgetOldChanges('osv', NOW + 5 * DAY, keep)
    expect(store.changes.countLogged(0)).toBe(4)
    expect(countSuperseded(store.dir).versions).toBe(3)
    store.changes.forgetOldChanges('osv', NOW + 8 * DAY, keep)
    expect(store.changes.countLogged(0)).toBe(1)
  })
})
