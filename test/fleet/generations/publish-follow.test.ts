import { openReader } from '../../../src/store/database/open.ts'
import { createReads } from '../../../src/store/reads.ts'
import { createCarriedReader } from '../../../src/store/replication/reader.ts'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type Bench, createBench } from '../../support/mirror.ts'
import { createMemoryBucket } from '../../support/fleet/memory-store.ts'
import { createNode, publish } from './nodes.ts'

async function leader(): Promise<Bench> {
  const bench = await createBench({ sandbox: { records: 5, service: false } })
  onTestFinished(() => bench.close())
  await bench.run('osv')
  return bench
}

async function change(bench: Bench, records = 1): Promise<void> {
  bench.sandbox.feed.change(records)
  await bench.run('osv')
}

/** The state digest of a data folder, and all rows of its change log. */
function stateOf(dir: string): { digest: string; log: unknown[] } {
  const db = openReader(dir)
  if (db === null) throw new Error('no database')
  try {
    const reads = createReads(db)
    const log = reads.changes.listLogged(0, 1000)
    return {
      digest: createCarriedReader(db).digestSources().digest,
      log: log.map((row) => [row, reads.changes.listNames(row.id, -1)]),
    }
  } finally {
    db.close()
  }
}

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
})
