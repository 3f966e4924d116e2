import { describe, expect } from 'vitest'
import { differences } from '../../support/mirror.ts'
import { ARCHIVE, DAY, INDEX, RECORDS, bench, contentsOf, createClock, synced } from '../fixtures.ts'
import { bothTest, LONG, longTest, test } from '../../support/tables.ts'

describe('a sync of the OSV feed', () => {
  test('costs one index and one archive in the first run', async () => {
    const made = await bench()
    expect(await made.run('osv')).toMatchObject({ state: 'complete', facts: { requests: 2 } })
    expect(made.sandbox.requests.count()).toBe(2)
  })

  test('costs one request and writes no row for an unchanged feed', async () => {
    const made = await synced()
    const before = contentsOf(made.dir)
    expect(await made.run('osv')).toMatchObject({
      state: 'complete',
      facts: { requests: 1, bytes: 0 },
    })
    expect(made.sandbox.requests.count()).toBe(1)
    expect(made.sandbox.requests.entries[0]).toMatchObject({ path: INDEX, status: 304 })
    expect(contentsOf(made.dir)).toEqual(before)
  })

  longTest('costs one request and writes nothing for an unchanged feed without validators', async () => {
    const made = await synced({ sandbox: { validators: false } })
    const before = contentsOf(made.dir)
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    expect(made.sandbox.requests.count()).toBe(1)
    expect(contentsOf(made.dir)).toEqual(before)
  })

  bothTest.each(LONG ? [1, 7, 250] : [7])(
    'costs one request for the index and one for each of %i changed records',
    async (k) => {
      const made = await synced({ sandbox: { records: 300 } })
      made.sandbox.feed.change(k)
      expect(await made.run('osv')).toMatchObject({
        state: 'complete',
        facts: { changed: k, requests: k + 1 },
      })
      expect(made.sandbox.requests.count()).toBe(k + 1)
      expect(made.sandbox.requests.count(RECORDS)).toBe(k)
      expect(differences(made)).toEqual([])
    },
  )

  test('costs one request for each addition, change, withdrawal and step back', async () => {
    const made = await synced()
    const { feed, requests } = made.sandbox
    feed.add(3)
    feed.put('ROOT-X-1', '{"id":"ROOT-X-1","modified":"2026-05-01T00:00:00Z"}')
    const touched = new Set([...feed.change(2), ...feed.withdraw(2), ...feed.moveBackwards(2)])
    const added = feed.ids().filter((id) => made.store.osv.readEntry(id) === null)
    const k = new Set([...touched, ...added]).size
    feed.remove(1)
    const gone = [...touched, ...added].filter((id) => !feed.ids().includes(id)).length
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    expect(requests.count()).toBe(k - gone + 1)
    expect(differences(made)).toEqual([])
  })

  test('costs only the index for removals', async () => {
    const made = await synced()
    made.sandbox.feed.remove(5)
    expect(await made.run('osv')).toMatchObject({
      state: 'complete',
      facts: { removed: 5, requests: 1 },
    })
    expect(differences(made)).toEqual([])
  })

  longTest('fetches the archive for more changes than the threshold', async () => {
    const made = await synced({ sandbox: { records: 300 } })
    made.sandbox.feed.change(251)
    expect(await made.run('osv')).toMatchObject({
      state: 'complete',
      facts: { changed: 251, requests: 2 },
    })
    expect(made.sandbox.requests.count(ARCHIVE)).toBe(1)
    expect(differences(made)).toEqual([])
  })

  longTest('fetches records singly that the archive contradicts', async () => {
    const made = await synced({ sandbox: { records: 300 } })
    const { feed, requests } = made.sandbox
    feed.change(251)
    feed.archive() // built now, and published as it is while the feed goes on
    feed.freezeArchive()
    feed.change(4)
    feed.add(2)
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    expect(requests.count(ARCHIVE)).toBe(1)
    expect(requests.count(RECORDS)).toBeGreaterThanOrEqual(3)
    expect(requests.count(RECORDS)).toBeLessThanOrEqual(6)
    expect(differences(made)).toEqual([])
  })

  test('serves an index in another order or spacing as upstream has it', async () => {
    const made = await synced()
    const entries = JSON.parse(made.sandbox.feed.index().toString()) as object[]
    const body = `[\n${entries
      .reverse()
      .map((entry) => JSON.stringify(entry, null, 1))
      .join(' ,\n')}\n]\n`
    made.sandbox.faults.set(INDEX, { kind: 'body', body, type: 'application/json' })
    expect(await made.run('osv')).toMatchObject({ state: 'complete', facts: { requests: 1 } })
    expect(made.index()?.toString()).toBe(body)
  })

  longTest('compares everything with --full', async () => {
    const made = await synced()
    expect(await made.run('osv', { full: true })).toMatchObject({
      state: 'complete',
      facts: { requests: 2, silentChanges: 0 },
    })
    expect(differences(made)).toEqual([])
  })

  test('writes nothing in a dry run, not even a row of the run log', async () => {
    const made = await synced()
    const runs = made.store.runs.listRuns(100).length
    const before = contentsOf(made.dir)
    made.sandbox.feed.change(3)
    const report = await made.run('osv', { dryRun: true })
    expect(report).toMatchObject({ id: 0, state: 'complete', facts: { plannedChanged: 3 } })
    expect(contentsOf(made.dir)).toEqual(before)
    expect(made.store.runs.listRuns(100)).toHaveLength(runs)
  })
})

describe('a record that is removed and returns', () => {
  test('leaves a tombstone for ninety days', async () => {
    const clock = createClock()
    const made = await synced({ now: clock.now, sandbox: { now: clock.now } })
    const [gone = ''] = made.sandbox.feed.remove(1)
    await made.run('osv')
    expect(made.content(gone)).toBeNull()
    expect(made.store.osv.readTombstone(gone)).toEqual({ id: gone, removedAt: clock.now() })
    clock.pass(90 * DAY)
    made.sandbox.feed.change(1)
    await made.run('osv')
    expect(made.store.osv.readTombstone(gone)).not.toBeNull()
    clock.pass(1000)
    made.sandbox.feed.change(1)
    await made.run('osv')
    expect(made.store.osv.readTombstone(gone)).toBeNull()
  })

  test('is served again with a later date', async () => {
    const made = await synced()
    const [id = ''] = made.sandbox.feed.ids()
    const bytes = made.sandbox.feed.record(id)
    made.sandbox.feed.delete(id)
    await made.run('osv')
    expect(made.store.osv.readTombstone(id)).not.toBeNull()
    made.sandbox.feed.put(id, bytes)
    expect(await made.run('osv')).toMatchObject({ state: 'complete', facts: { added: 1 } })
    expect(made.store.osv.readTombstone(id)).toBeNull()
    expect(differences(made)).toEqual([])
  })

  test('is not removed by a 404 of its own path', async () => {
    const made = await synced()
    const [id = ''] = made.sandbox.feed.change(1)
    const old = made.content(id)
    made.sandbox.faults.set(`/external/osv/${id}.json`, { kind: 'status', status: 404 })
    expect(await made.run('osv')).toMatchObject({ state: 'partial', facts: { lacking: 1 } })
    expect(made.content(id)).toEqual(old)
    expect(made.index()?.includes(`"${id}"`)).toBe(true)
    made.sandbox.faults.clear()
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    expect(differences(made)).toEqual([])
  })
})
