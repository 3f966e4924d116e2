import { gunzipSync, gzipSync } from 'node:zlib'
import { describe, expect, onTestFinished } from 'vitest'
import { sha256Of } from '../../../src/base/digest.ts'
import { type PinnedReads, openPinnedReads } from '../../../src/store/reads.ts'
import { type Bench, differences } from '../../support/mirror.ts'
import { createOrigin } from '../../support/origin.ts'
import { LONG, longTest, test } from '../../support/tables.ts'
import { ARCHIVE, INDEX, bench, contentsOf, disagreements, synced } from '../fixtures.ts'

function pin(dir: string): PinnedReads {
  const reads = openPinnedReads(dir)
  if (reads === null) throw new Error('there is no database')
  onTestFinished(() => reads.close())
  return reads
}

/** Reads the whole mirror on another connection repeatedly during `work`; returns the snapshots and every disagreement. */
async function watch(dir: string, work: () => Promise<void>): Promise<{ seen: Set<string>; wrong: string[] }> {
  const reads = pin(dir)
  const seen = new Set<string>()
  const wrong: string[] = []
  const state = { going: true }
  const done = work().finally(() => (state.going = false))
  while (state.going) {
    reads.refresh()
    seen.add(reads.pinned.snapshots.readSnapshot('osv')?.id ?? 'none')
    wrong.push(...disagreements(reads.pinned, dir))
    await new Promise((resolve) => setImmediate(resolve))
  }
  await done
  return { seen, wrong }
}

/** Changes the feed in several ways, with a run of each kind after each change; the long suite in every way. */
async function live(made: Bench): Promise<void> {
  const { feed, faults } = made.sandbox
  const few = [
    () => [feed.add(5), feed.remove(4), feed.changeSilently(9)],
    () => void faults.set(INDEX, { kind: 'ghostIds' }, { times: 1 }),
  ]
  const all = [
    () => feed.change(9),
    () => feed.changeSilently(9),
    () => feed.add(5),
    () => feed.remove(4),
    () => feed.moveBackwards(5),
    () => feed.withdraw(5),
    () => void faults.set(ARCHIVE, { kind: 'wrongCrc', member: 2 }, { times: 1 }),
    () => void faults.set(INDEX, { kind: 'ghostIds' }, { times: 1 }),
    () => void faults.set(INDEX, { kind: 'shrinkIndex' }, { times: 1 }),
  ]
  for (const step of LONG ? all : few) {
    step()
    feed.change(1)
    await made.run('osv')
    await made.run('osv', { kind: 'reconcile' })
    await made.run('osv', { full: true })
  }
}

describe('a reader', () => {
  longTest('that is pinned sees one snapshot throughout later syncs', async () => {
    const made = await synced({ sandbox: { records: 60, large: 0 } })
    const reads = pin(made.dir)
    const ids = made.sandbox.feed.ids()
    const before = ids.map((id) => reads.pinned.osv.readRecord(id))
    const index = reads.pinned.feeds.readDocument(INDEX)
    const snapshot = reads.pinned.snapshots.readSnapshot('osv')
    made.sandbox.feed.change(20)
    made.sandbox.feed.remove(5)
    await made.run('osv')
    expect(ids.map((id) => reads.pinned.osv.readRecord(id))).toEqual(before)
    expect(reads.pinned.feeds.readDocument(INDEX)).toEqual(index)
    expect(disagreements(reads.pinned, made.dir)).toEqual([])
    expect(reads.live.snapshots.readSnapshot('osv')).not.toEqual(snapshot)
    expect(reads.refresh()).toBe(true)
    expect(reads.pinned.snapshots.readSnapshot('osv')).not.toEqual(snapshot)
    expect(disagreements(reads.pinned, made.dir)).toEqual([])
    expect(reads.refresh()).toBe(false)
  })

  longTest('never sees index, records and archive disagree while the feed changes', async () => {
    const made = await bench({ sandbox: { records: 50, large: 0 } })
    const { seen, wrong } = await watch(made.dir, () => live(made))
    expect(wrong).toEqual([])
    expect(seen.size).toBeGreaterThan(9)
    await made.run('osv')
    await made.run('osv', { kind: 'reconcile' })
    expect(differences(made)).toEqual([])
  })

  test('finds the archive of the previous snapshot as long as it is the previous one', async () => {
    const made = await synced({ sandbox: { records: 60, large: 0 } })
    const reads = pin(made.dir)
    made.sandbox.feed.change(2)
    await made.run('osv')
    expect(disagreements(reads.pinned, made.dir)).toEqual([])
  })
})

describe('two sources', () => {
  longTest('sync at the same time without disturbing each other', async () => {
    const made = await bench({ sandbox: { records: 100 } })
    for (let i = 0; i < 5; i++) {
      made.sandbox.feed.change(3)
      made.sandbox.feed.touchFeeds()
      const runs = await Promise.all([
        made.run('osv', { full: i % 2 === 0 }),
        made.run('feeds'),
        made.run('feeds', { full: true }),
      ])
      expect(runs.map(({ state }) => state)).toEqual(['complete', 'complete', 'complete'])
      made.store.checkpoint()
    }
    expect(differences(made)).toEqual([])
  })

  test('may checkpoint while one of them has a transaction open', async () => {
    const made: Bench = await bench({
      sandbox: { records: 300 },
      onProgress: ({ phase }) => {
        if (phase === 'ingest' || phase === 'publish') made.store.checkpoint()
      },
    })
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    expect(differences(made)).toEqual([])
  })
})

describe('a first sync', () => {
  test.each([
    ['as gzip', true],
    ['without gzip', false],
  ])('that gets the index %s stores its bytes', async (_, gzip) => {
    const made = await bench({ sandbox: { records: 60, gzip } })
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    expect(differences(made)).toEqual([])
    const stored = made.store.feeds.readDocument(INDEX)
    const index = made.sandbox.feed.index()
    expect(stored).toMatchObject({ size: index.length, sha256: sha256Of(index) })
    expect(gunzipSync(stored?.body ?? '').equals(index)).toBe(true)
  })

  test('stores nothing of an index whose gzip is damaged, and says so', async () => {
    const made = await bench({ sandbox: { records: 60 } })
    const before = contentsOf(made.dir)
    const gzip = gzipSync(made.sandbox.feed.index())
    const turned = Buffer.from(gzip)
    turned[gzip.length - 6] = (turned[gzip.length - 6] ?? 0) ^ 1
    for (const body of [turned, gzip.subarray(0, -1)]) {
      const { url } = await createOrigin((_, response) =>
        response.writeHead(200, { 'Content-Encoding': 'gzip' }).end(body),
      )
      const report = await made.runWith({ PATCHMIRROR_UPSTREAM_API_ROOT: url }, 'osv')
      expect(report).toMatchObject({ state: 'failed', code: 'upstream_shape' })
    }
    expect(contentsOf(made.dir)).toEqual(before)
  })
})
