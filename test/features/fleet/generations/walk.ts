import { expect, onTestFinished } from 'vitest'
import { DAY_MS, HOUR_MS } from '../../../../src/base/time.ts'
import { collectGarbage } from '../../../../src/features/fleet/generations/collect.ts'
import { bundleKey } from '../../../../src/features/fleet/generations/format/object-names.ts'
import { releaseRollback } from '../../../../src/features/fleet/generations/rollback-state.ts'
import { rollBackTo } from '../../../../src/features/fleet/generations/rollback.ts'
import type { ObjectStore } from '../../../../src/features/fleet/objects/object-store.ts'
import { signer } from '../../bundles/air-gap.ts'
import { createBench } from '../../../support/mirror.ts'
import { change, createNode, fleetTrust, leader, nodeConfig, publish, stateOf } from './nodes.ts'

const UNNAMED = bundleKey('0a'.repeat(32))

/**
 * Walks through all that a fleet does with its store, by two clients of one place: publish, follow, take over, fence, roll back
 * and collect. Expects the same data on all sides after each step.
 */
export async function walkProtocol(store: ObjectStore, other: ObjectStore): Promise<void> {
  await store.put(UNNAMED, Buffer.from('of a publication that was killed'))
  const bench = await leader()
  expect((await publish(store, bench.dir)).outcome).toBe('published')
  const reader = createNode(other)
  expect(await reader.catchUp()).toBe(1)
  const first = stateOf(bench.dir)
  expect(stateOf(reader.dir)).toEqual(first)
  expect((await publish(store, bench.dir)).outcome).toBe('unchanged')

  const standby = createNode(other, { mayPublish: true })
  await change(bench)
  await publish(store, bench.dir)
  expect([await reader.catchUp(), await standby.catchUp()]).toEqual([2, 2])
  expect(stateOf(reader.dir)).toEqual(stateOf(bench.dir))

  const next = await createBench({ sandbox: { records: 5, service: false }, dir: standby.dir })
  onTestFinished(() => next.close())
  await change(next, 2)
  expect((await publish(other, standby.dir, { epoch: 2 })).outcome).toBe('published')
  await change(bench, 3)
  expect((await publish(store, bench.dir, { epoch: 1 })).outcome).toBe('fenced')
  expect(await reader.catchUp()).toBe(3)
  expect(stateOf(reader.dir)).toEqual(stateOf(standby.dir))

  const config = nodeConfig(standby.dir)
  const given = { store, config, trust: fleetTrust(), now: Date.now }
  await untilOlder(store, UNNAMED)
  const back = { ...given, keys: [signer()], program: 'patchmirror/test' }
  expect((await rollBackTo(back, 1)).outcome).toBe('published')
  await releaseRollback(store, 4)
  expect(await reader.catchUp()).toBe(4)
  expect(stateOf(reader.dir).digest).toBe(first.digest)

  let later = Date.now() + 16 * DAY_MS
  const collect = () => collectGarbage({ ...given, trust: fleetTrust(() => later), now: () => later, dryRun: false })
  expect((await collect()).planned.length).toBeGreaterThan(0)
  later += 2 * HOUR_MS
  expect((await collect()).deleted.map(({ key }) => key)).toContain(UNNAMED)
  const late = createNode(other)
  expect(await late.catchUp()).toBe(4)
  expect(stateOf(late.dir).digest).toBe(first.digest)
}

/** Resolves once what is written is younger than an object, by the store's clock, which may count seconds. */
async function untilOlder(store: ObjectStore, key: string): Promise<void> {
  const modifiedAt = async (of: string): Promise<number> => (await store.head(of))?.modifiedAt ?? 0
  const before = await modifiedAt(key)
  const writes = async (): Promise<number> => {
    await store.put('clock.json', Buffer.from('{}'))
    return Math.floor(await modifiedAt('clock.json'))
  }
  await expect.poll(writes).toBeGreaterThan(Math.floor(before))
}
