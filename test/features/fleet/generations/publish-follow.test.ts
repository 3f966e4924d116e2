import { describe, expect, onTestFinished } from 'vitest'
import { type Bench, createBench } from '../../../support/mirror.ts'
import { type FaultScript, createMemoryBucket } from '../../../support/fleet/memory-store.ts'
import { releaseRollback } from '../../../../src/features/fleet/generations/rollback-state.ts'
import { openWriter } from '../../../../src/store/database/open.ts'
import { hasItsContent } from '../../../../src/features/fleet/generations/position.ts'
import { rollBackTo } from '../../../../src/features/fleet/generations/rollback.ts'
import { openShortReads } from '../../../../src/store/reads.ts'
import { openWrites } from '../../../../src/store/writes.ts'
import { isRollback } from '../../../../src/store/runs/rollback.ts'
import { type ObjectStore, FleetError } from '../../../../src/features/fleet/objects/object-store.ts'
import { createFollower } from '../../../../src/features/fleet/generations/follow/follow.ts'
import { collectGarbage } from '../../../../src/features/fleet/generations/collect.ts'
import { folder, signer } from '../../bundles/air-gap.ts'
import { keyPair, trust } from '../../bundles/fixtures.ts'
import { bothTest, longTest, test } from '../../../support/tables.ts'
import type { PublishDeps, PublishResult } from '../../../../src/features/fleet/generations/publish/publish.ts'
import type { Takeover } from '../../../../src/features/fleet/look/message.ts'
import { change, createNode, fleetTrust, leader, nodeConfig, publish, stateOf } from './nodes.ts'

describe('a fleet', () => {
  test('publishes what changed, and each reader has the same data and the same change log', async () => {
    const bench = await leader()
    const bucket = createMemoryBucket()
    const store = bucket.client()
    const first = await publish(store, bench.dir)
    expect(first.outcome).toBe('published')
    expect(first.generation?.generation).toMatchObject({
      generation: 1,
      delta: null,
      previous: null,
    })
    expect((await publish(store, bench.dir)).outcome).toBe('unchanged')
    const early = createNode(store)
    expect(await early.catchUp()).toBe(1)
    expect(stateOf(early.dir)).toEqual(stateOf(bench.dir))
    for (const _ of [1, 2]) {
      await change(bench)
      expect((await publish(store, bench.dir)).outcome).toBe('published')
    }
    const before = { ...bucket.calls }
    expect(await early.catchUp()).toBe(3)
    expect(bucket.calls.list).toBe(before.list)
    expect(stateOf(early.dir)).toEqual(stateOf(bench.dir))
    const late = createNode(store)
    expect(await late.catchUp()).toBe(3)
    expect(stateOf(late.dir)).toEqual(stateOf(bench.dir))
  })

  longTest('goes on with a new key where the old one is revoked, with mirrors that followed and new ones', async () => {
    const bench = await leader()
    const store = createMemoryBucket().client()
    const next = keyPair(folder(), 'next')
    const renewed = trust([next], { now: Date.now, revoked: new Set([signer().id]) })
    for (const _ of [1, 2]) {
      await publish(store, bench.dir)
      await change(bench)
    }
    const early = createNode(store)
    expect(await early.catchUp()).toBe(2)
    const given = await publish(store, bench.dir, { keys: [next], trust: renewed })
    expect([given.outcome, given.generation?.generation.full.digest]).toEqual(['published', stateOf(bench.dir).digest])
    for (const dir of [early.dir, folder()]) {
      const node = createNode(store, { dir, trust: renewed })
      expect(await node.catchUp()).toBe(3)
      expect(stateOf(dir)).toEqual(stateOf(bench.dir))
    }
    const garbage = { store, config: nodeConfig(bench.dir), trust: renewed, now: Date.now, dryRun: true }
    expect((await collectGarbage(garbage)).deleted).toEqual([])
  })

  longTest('is continued by another mirror with deltas alone, which the followers of the first one apply', async () => {
    const bench = await leader()
    const bucket = createMemoryBucket()
    const store = bucket.client()
    await publish(store, bench.dir)
    const standby = createNode(store, { mayPublish: true })
    const read: string[] = []
    const note: FaultScript = ({ verb, key }) => {
      if (verb === 'get') read.push(key)
      return undefined
    }
    const reader = createNode(bucket.client(note))
    await standby.catchUp()
    await change(bench)
    await publish(store, bench.dir)
    expect([await standby.catchUp(), await reader.catchUp()]).toEqual([2, 2])
    // The standby takes over: it publishes nothing new at first, and remembers what is stored.
    expect((await publish(store, standby.dir, { epoch: 2 })).outcome).toBe('unchanged')
    const next = await createBench({
      sandbox: { records: 5, service: false },
      dir: standby.dir,
    })
    onTestFinished(() => next.close())
    next.sandbox.feed.change(2)
    await next.run('osv')
    const taken = await publish(store, standby.dir, { epoch: 2 })
    expect(taken).toMatchObject({
      outcome: 'published',
      generation: { generation: { epoch: 2 } },
    })
    expect(taken.generation?.generation.full).toMatchObject({
      digest: expect.any(String) as string,
    })
    read.length = 0
    expect(await reader.catchUp()).toBe(3)
    expect(read.filter((key) => key.startsWith('bundles/'))).toEqual([taken.generation?.generation.delta?.key])
    expect(stateOf(reader.dir)).toEqual(stateOf(standby.dir))
    // The first leader wakes up: it is fenced, and follows.
    await change(bench)
    expect((await publish(store, bench.dir, { epoch: 1 })).outcome).toBe('fenced')
    const demoted = createNode(store, { dir: bench.dir })
    expect(await demoted.catchUp()).toBe(3)
    expect(stateOf(bench.dir)).toEqual(stateOf(standby.dir))
  })

  longTest(
    'flips a reader at the time of the generation, and applies a full bundle and a delta as one step',
    async () => {
      const bench = await leader()
      const store = createMemoryBucket().client()
      // Only the last full bundle and the last state are remembered as bases.
      const config = nodeConfig(bench.dir, { PATCHMIRROR_BUNDLE_KEEP: '1' })
      await publish(store, bench.dir, { config })
      await change(bench)
      await publish(store, bench.dir, { config })
      const dir = folder()
      const reader = createNode(store, { dir })
      expect(await reader.catchUp()).toBe(2)
      const before = stateOf(dir)
      for (const _ of [3, 4]) {
        await change(bench)
        await publish(store, bench.dir, { config })
      }
      const waits: number[] = []
      let isEnding = true
      const follower = createFollower({
        store,
        config: nodeConfig(dir),
        trust: fleetTrust(),
        now: Date.now,
        waitUntil(at) {
          waits.push(at)
          expect(stateOf(dir)).toEqual(before)
          return isEnding && waits.length > 1 ? Promise.reject(new Error('ended')) : Promise.resolve()
        },
      })
      const { newest, behind } = await follower.look()
      expect(behind).toBe(2)
      if (newest === null) throw new Error('no generation')
      const prepared = await follower.prepare(newest)
      expect(prepared.bundles).toHaveLength(2)
      // The program ends while the import waits for its time: nothing is stored.
      await expect(follower.commit(prepared)).rejects.toThrow('ended')
      expect(waits[1]).toBe(Date.parse(newest.generation.activateAt))
      expect([stateOf(dir), follower.position()?.generation]).toEqual([before, 2])
      isEnding = false
      await follower.commit(prepared)
      expect(follower.position()?.generation).toBe(4)
      expect(stateOf(dir)).toEqual(stateOf(bench.dir))
    },
  )

  test('refuses a delta where a record was changed here after it was prepared', async () => {
    const bench = await leader()
    const store = createMemoryBucket().client()
    await publish(store, bench.dir)
    const reader = createNode(store)
    await reader.catchUp()
    await change(bench)
    await publish(store, bench.dir)
    const { newest } = await reader.follower.look()
    if (newest === null) throw new Error('no generation')
    const prepared = await reader.follower.prepare(newest)
    const other = openWrites(reader.dir)
    const isUnchanged = ([id, modified]: [string, string]): boolean =>
      bench.store.osv.readEntry(id)?.modified === modified
    const [unchanged = ''] = [...other.osv.eachPair()].find(isUnchanged) ?? []
    await other.exclusive(() => other.osv.dropRecord(unchanged))
    other.close()
    await expect(reader.follower.commit(prepared)).rejects.toThrow('osv is in another state')
    expect(await reader.catchUp()).toBe(2) // by the full bundle
  })

  longTest(
    'goes back to an older generation as the next one, and publishes nothing until that is released',
    async () => {
      const bench = await leader()
      const bucket = createMemoryBucket()
      const store = bucket.client()
      await publish(store, bench.dir)
      const reader = createNode(store)
      const late = createNode(store)
      await reader.catchUp()
      const good = stateOf(bench.dir).digest
      await change(bench, 2)
      await publish(store, bench.dir)
      expect([await reader.catchUp(), await late.catchUp()]).toEqual([2, 2])
      const config = nodeConfig(bench.dir)
      const back = await rollBackTo(
        {
          store,
          config,
          keys: [signer()],
          trust: fleetTrust(),
          now: Date.now,
          program: 'patchmirror/test',
        },
        1,
      )
      expect(back).toMatchObject({
        outcome: 'published',
        generation: { generation: { generation: 3 } },
      })
      expect(await reader.catchUp()).toBe(3)
      expect(stateOf(reader.dir)).toEqual(stateOf(bench.dir))
      expect(stateOf(reader.dir).digest).toBe(good)
      for (const { dir } of [reader, bench]) {
        const node = openShortReads(dir) ?? expect.fail('no database')
        const { id = '' } = node.reads.snapshots.readSnapshot('osv') ?? {}
        expect([isRollback(node.reads, 'osv', id), isRollback(node.reads, 'feeds', id)]).toEqual([true, false])
        node.close()
      }
      await bench.run('osv')
      expect(await publish(store, bench.dir)).toMatchObject({
        outcome: 'unchanged',
        isPaused: true,
      })
      await releaseRollback(store, 3)
      expect((await publish(store, bench.dir)).outcome).toBe('published')
      expect([await reader.catchUp(), await late.catchUp()]).toEqual([4, 4])
      expect(stateOf(reader.dir)).toEqual(stateOf(bench.dir))
      // One that passed over the way back may have served newer dates too.
      for (const { dir } of [reader, late, bench]) {
        const node = openShortReads(dir) ?? expect.fail('no database')
        expect(node.reads.feeds.readDateFloor()).toEqual(expect.any(Number))
        node.close()
      }
    },
  )

  longTest('keeps real data folders equal through lost answers, crashes and takeovers', async () => {
    for (const seed of [1, 2, 3, 4, 5, 6]) await runRealHistory(seed)
  })
})

/** Runs a history of two mirrors that may lead and a reader, with real bundles and databases. */
async function runRealHistory(seed: number): Promise<void> {
  let state = seed
  const below = (limit: number): number => (state = (state * 48_271) % 2_147_483_647) % limit
  const bucket = createMemoryBucket()
  const broken = (): ObjectStore => {
    const at = 1 + below(8)
    const fault = (['lost-answer', 'lost-request', 'down', 'half'] as const)[below(4)]
    const isLasting = below(2) === 0
    return bucket.client(({ count }) => (count === at || (isLasting && count > at) ? fault : undefined))
  }
  const mirrors = await Promise.all(
    [0, 1].map(async () => {
      const bench = await createBench({ dir: folder(), sandbox: { records: 5, service: false } })
      onTestFinished(() => bench.close())
      return bench
    }),
  )
  const reader = createNode(bucket.client())
  let epoch = 1
  let leads = 0
  const leading = (): Bench => {
    const bench = mirrors[leads]
    if (bench === undefined) throw new Error('unreachable')
    return bench
  }
  const survive = (work: Promise<unknown>) =>
    work.catch((error: unknown) => {
      if (!(error instanceof FleetError)) throw error
    })
  const contents = createContents()
  // Whether a mirror took over before the first generation: then each saw the records for itself, and keeps its own dates.
  let isSplit = false
  const run = async (): Promise<void> => contents.note(leading(), await leading().run('osv'))
  await run()
  for (let step = 0; step < 14; step++) {
    const action = below(5)
    const { dir } = leading()
    if (action <= 1) {
      leading().sandbox.feed.change(1 + below(2))
      await run()
    }
    if (action <= 2) await survive(publish(broken(), dir, { epoch, canTakeThin: () => Promise.resolve(below(3) > 0) }))
    if (action === 3) await survive(createNode(broken(), { dir: reader.dir }).catchUp())
    if (action === 4) {
      leads = 1 - leads
      epoch++
      const standby = createNode(bucket.client(), { dir: leading().dir, mayPublish: true })
      if ((await standby.catchUp()) === 0) isSplit = true
      await publish(bucket.client(), leading().dir, { epoch })
      contents.note(leading())
      await run()
    }
  }
  await publish(bucket.client(), leading().dir, { epoch })
  await reader.catchUp()
  const there = stateOf(reader.dir)
  const here = stateOf(leading().dir)
  const changed = new Map(here.dates.map(({ id, changedAt }) => [id, changedAt]))
  // A content that was replaced and stored again without being published in between has an older date on the reader.
  const dates = there.dates.map((one) => {
    const theirs = changed.get(one.id) ?? 0
    return contents.isBack(one.id) && one.changedAt < theirs ? { ...one, changedAt: theirs } : one
  })
  if (isSplit) expect({ ...there, dates: [] }).toEqual({ ...here, dates: [] })
  else expect({ ...there, dates }).toEqual(here)
}

/** Notes the contents of each record, one after the other. */
function createContents() {
  const seen = new Map<string, string[]>()
  return {
    note({ store, content }: Bench, _report?: unknown): void {
      for (const [id] of store.osv.eachPair()) {
        const known = seen.get(id) ?? []
        const text = String(content(id))
        if (known.at(-1) !== text) seen.set(id, [...known, text])
      }
    },
    /** Whether the record has a content that it had before, and another one between. */
    isBack(id: string): boolean {
      const known = seen.get(id) ?? []
      return known.indexOf(known.at(-1) ?? '') < known.length - 1
    },
  }
}

longTest(
  'a mirror with a state of its own comes to a generation, also when sources were added one after the other',
  async () => {
    const store = createMemoryBucket().client()
    const bench = await createBench({ sandbox: { records: 5 } })
    onTestFinished(() => bench.close())
    await bench.run('feeds')
    await publish(store, bench.dir)
    await bench.run('osv')
    await publish(store, bench.dir)
    const { digest } = stateOf(bench.dir)
    const node = createNode(store, { dir: bench.dir, mayPublish: true })
    const isAtGeneration = (): boolean => {
      const position = node.follower.position()
      return position !== null && hasItsContent(bench.dir, position)
    }
    expect(isAtGeneration()).toBe(true)
    await change(bench)
    expect(isAtGeneration()).toBe(false)
    expect(await node.catchUp()).toBe(2)
    expect(isAtGeneration()).toBe(true)
    expect(stateOf(bench.dir).digest).toBe(digest)
    const db = openWriter(bench.dir)
    db.exec('DELETE FROM snapshot') // as a repair leaves it that keeps the ledger
    db.close()
    expect([node.follower.position()?.generation, isAtGeneration()]).toEqual([2, false])
  },
)

describe('the activation of a generation', () => {
  const POLLS_MS = 20_000
  const now = (): number => Date.parse('2026-05-01T00:00:00.000Z')

  /** How long after its publication it is, milliseconds. */
  const delayOf = (result: PublishResult): number => {
    const { publishedAt = '', activateAt = '' } = result.generation?.generation ?? {}
    return Date.parse(activateAt) - Date.parse(publishedAt)
  }

  bothTest(
    'follows the slowest mirror that was told, and is two polls later where not all were, or where none is notified',
    async () => {
      const bench = await leader()
      const store = createMemoryBucket().client()
      const told: number[] = []
      const telling = (took: readonly Takeover[] | null): Partial<PublishDeps> => ({
        notify(generation) {
          told.push(generation)
          return Promise.resolve(took)
        },
      })
      const took = [{ ms: 10, bytes: 10 ** 9 }]
      const next = async (more: Partial<PublishDeps>): Promise<number> => {
        const delay = delayOf(await publish(store, bench.dir, { now, ...more }))
        await change(bench)
        return delay
      }
      expect(await next(telling(took))).toBe(0) // the first one
      expect(await next(telling(null))).toBe(POLLS_MS)
      expect(await next(telling(took))).toBe(POLLS_MS) // never before the one before it
      const later = (): number => now() + POLLS_MS
      const soon = await next({ ...telling(took), now: later })
      expect(soon).toBeGreaterThanOrEqual(1000)
      expect(soon).toBeLessThan(POLLS_MS)
      expect(await next({ now: later })).toBe(POLLS_MS)
      expect(told).toEqual([2, 3, 4]) // each before it is published
    },
  )
})
