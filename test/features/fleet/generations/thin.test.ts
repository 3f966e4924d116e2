import { describe, expect } from 'vitest'
import { collectGarbage } from '../../../../src/features/fleet/generations/collect.ts'
import { sealGeneration } from '../../../../src/features/fleet/generations/format/envelope.ts'
import { type Generation, bundlesOf } from '../../../../src/features/fleet/generations/format/generation.ts'
import { bundleKey, generationKey } from '../../../../src/features/fleet/generations/format/object-names.ts'
import { whyGenerationRefused } from '../../../../src/features/fleet/generations/format/refusals.ts'
import type { PublishDeps } from '../../../../src/features/fleet/generations/publish/publish.ts'
import { rollBackTo } from '../../../../src/features/fleet/generations/rollback.ts'
import { createUseWatch } from '../../../../src/features/fleet/generations/uploads.ts'
import { sha256Hex } from '../../../../src/base/digest.ts'
import { type MemoryBucket, createMemoryBucket } from '../../../support/fleet/memory-store.ts'
import type { Bench } from '../../../support/mirror.ts'
import { longTest, test } from '../../../support/tables.ts'
import { folder, signer } from '../../bundles/air-gap.ts'
import { keyPair, trust } from '../../bundles/fixtures.ts'
import { change, createNode, fleetTrust, leader, nodeConfig, publish, stateOf } from './nodes.ts'

const THIN: Partial<PublishDeps> = { canTakeThin: () => Promise.resolve(true) }

/** Publishes, and returns the generation. */
async function generationOf(bucket: MemoryBucket, bench: Bench, more = THIN): Promise<Generation> {
  const { outcome, generation } = await publish(bucket.client(), bench.dir, more)
  if (outcome !== 'published' || generation === null) throw new Error(outcome)
  return generation.generation
}

/** A leader with a full bundle, a delta on it, and as many thin bundles on that. */
async function chainOf(thin: number): Promise<{ bench: Bench; bucket: MemoryBucket; last: Generation }> {
  const bench = await leader()
  const bucket = createMemoryBucket()
  await generationOf(bucket, bench, {})
  await change(bench)
  let last = await generationOf(bucket, bench, {})
  for (let i = 0; i < thin; i++) {
    await change(bench)
    last = await generationOf(bucket, bench)
  }
  return { bench, bucket, last }
}

/** A client of the store, and the keys of the bundles that it reads. */
function watched(bucket: MemoryBucket) {
  const read: string[] = []
  const store = bucket.client(({ verb, key }) => {
    if (verb === 'get' && key.startsWith('bundles/')) read.push(key)
    return undefined
  })
  return { store, read }
}

/** Has the last thin bundle of a generation become no whole one, as where another zlib makes other bytes. */
function makeUnusable(bucket: MemoryBucket, generation: Generation): void {
  const { thin = [] } = generation
  const last = thin.at(-1)
  if (last === undefined) throw new Error('no thin bundle')
  const bytes = Buffer.from(bucket.read(last.key) ?? '')
  bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 255
  const sha256 = sha256Hex(bytes)
  const other = { ...last, sha256, key: bundleKey(sha256) }
  bucket.tamper(other.key, bytes)
  const changed = { ...generation, thin: [...thin.slice(0, -1), other] }
  bucket.tamper(generationKey(generation.generation), sealGeneration(changed, [signer()]).bytes)
}

describe('thin bundles of a fleet', () => {
  test('are all that a mirror with the generation before reads, and what a new one reads behind the others', async () => {
    const { bench, bucket } = await chainOf(0)
    const { store, read } = watched(bucket)
    const early = createNode(store)
    await early.catchUp()
    const thin: string[] = []
    for (const _ of [3, 4]) {
      await change(bench)
      read.length = 0
      const { thin: named = [], full, delta } = await generationOf(bucket, bench)
      const { key = '' } = named.at(-1) ?? {}
      thin.push(key)
      await early.catchUp()
      expect([read, full.digest === delta?.sha256]).toEqual([[key], false])
      expect(stateOf(early.dir)).toEqual(stateOf(bench.dir))
    }
    read.length = 0
    const late = createNode(store)
    expect(await late.catchUp()).toBe(4)
    expect(read.slice(2)).toEqual(thin)
    expect(stateOf(late.dir)).toEqual(stateOf(bench.dir))
  })

  longTest('lead from each earlier state to the newest, in one step', async () => {
    const { bench, bucket } = await chainOf(1)
    const { store, read } = watched(bucket)
    const nodes = [createNode(store)]
    await nodes[0]?.catchUp()
    for (const _ of [4, 5]) {
      await change(bench)
      await generationOf(bucket, bench)
      nodes.push(createNode(store))
      await nodes.at(-1)?.catchUp()
    }
    await change(bench)
    await generationOf(bucket, bench)
    read.length = 0
    for (const node of nodes) await node.catchUp()
    for (const { dir } of nodes) expect(stateOf(dir)).toEqual(stateOf(bench.dir))
    expect(new Set(read).size).toBe(3)
    expect(read.every((key) => (bucket.read(key)?.length ?? 0) < 20_000)).toBe(true)
  })

  longTest('end with a whole delta on the full bundle after sixteen, which each mirror can use', async () => {
    const { bench, bucket, last } = await chainOf(16)
    expect(last.thin).toHaveLength(16)
    const { store, read } = watched(bucket)
    const behind = createNode(store)
    expect(await behind.catchUp()).toBe(18)
    await change(bench)
    const { thin, delta, full } = await generationOf(bucket, bench)
    expect([thin, full.key]).toEqual([undefined, last.full.key])
    read.length = 0
    await behind.catchUp()
    expect(read).toEqual([delta?.key])
    expect(stateOf(behind.dir)).toEqual(stateOf(bench.dir))
  })

  test('are not published where a mirror cannot use them, nor where a new key signs', async () => {
    const { bench, bucket, last } = await chainOf(1)
    expect(last.thin).toHaveLength(1)
    await change(bench)
    const whole = await generationOf(bucket, bench, { canTakeThin: () => Promise.resolve(false) })
    expect([whole.thin, whole.delta === null]).toEqual([undefined, false])
    await change(bench)
    const keys = [signer(), keyPair(folder(), 'next')]
    const renewed = await generationOf(bucket, bench, { ...THIN, keys, trust: trust(keys, { now: Date.now }) })
    expect([renewed.thin, renewed.full.digest]).toEqual([undefined, renewed.digest])
  })

  test('are followed by a whole one for a mirror that cannot use them, although nothing changes', async () => {
    const { bench, bucket, last } = await chainOf(1)
    const store = bucket.client()
    const canTakeThin = () => Promise.resolve(false)
    const isUnusable = createUseWatch(store, () => performance.now(), canTakeThin)
    const confirm = () => publish(store, bench.dir, { canTakeThin, isUnusable, now: () => Date.now() + 600_000 })
    const { outcome, generation } = await confirm()
    expect([last.thin?.length, outcome, generation?.generation.thin]).toEqual([1, 'published', undefined])
    expect(generation?.generation).toMatchObject({ reason: 'date', digest: last.digest })
    expect((await confirm()).outcome).toBe('unchanged')
  })

  test('are not published on a bundle that the store lost', async () => {
    const { bench, bucket, last } = await chainOf(1)
    await bucket.client().delete(last.thin?.[0]?.key ?? '')
    await change(bench)
    const { thin, delta } = await generationOf(bucket, bench)
    expect([thin, delta === null]).toEqual([undefined, false])
    const node = createNode(bucket.client())
    expect(await node.catchUp()).toBe(4)
    expect(stateOf(node.dir)).toEqual(stateOf(bench.dir))
  })

  test('that do not become whole here are refused, and change nothing; the next whole one is taken', async () => {
    const { bench, bucket } = await chainOf(1)
    const reader = createNode(bucket.client())
    await reader.catchUp()
    const before = stateOf(reader.dir)
    await change(bench)
    const next = await generationOf(bucket, bench)
    makeUnusable(bucket, next)
    const refused = await reader.catchUp().catch((error: unknown) => error)
    expect(whyGenerationRefused(refused)).toBe('thin')
    expect(String(refused)).toContain('asks for a whole one')
    expect(stateOf(reader.dir)).toEqual(before)
    const late = createNode(bucket.client())
    expect(whyGenerationRefused(await late.catchUp().catch((error: unknown) => error))).toBe('thin')
    expect(late.follower.position()).toBe(null)
  })

  longTest('are kept as long as a generation names them, and a way back can end at one', async () => {
    const { bench, bucket, last } = await chainOf(3)
    const store = bucket.client()
    const config = nodeConfig(bench.dir)
    const common = { store, config, trust: fleetTrust(), now: Date.now }
    const reader = createNode(store)
    await reader.catchUp()
    const { kept, deleted, planned } = await collectGarbage({ ...common, dryRun: true })
    expect([deleted, planned]).toEqual([[], []])
    expect(kept).toBeGreaterThanOrEqual(bundlesOf(last).length)
    const states = new Map([[5, stateOf(bench.dir).digest]])
    const to = createNode(store)
    const program = 'patchmirror/test'
    const back = await rollBackTo({ ...common, keys: [signer()], program }, 4)
    expect(back.generation?.generation).toMatchObject({ generation: 6, reason: 'rollback' })
    expect(back.generation?.generation.thin).toBe(undefined)
    for (const node of [reader, to]) {
      expect(await node.catchUp()).toBe(6)
      expect(stateOf(node.dir)).toEqual(stateOf(bench.dir))
    }
    expect(stateOf(bench.dir).digest).not.toBe(states.get(5))
    expect(back.generation?.generation.digest).toBe(last.thin?.[1]?.digest)
  })

  longTest('that no mirror left can use are ended by a rollback, from an empty data folder too', async () => {
    const { bench, bucket, last } = await chainOf(2)
    const store = bucket.client()
    makeUnusable(bucket, last)
    const { dir, follower } = createNode(store)
    const deps = { store, config: nodeConfig(dir), trust: fleetTrust(), now: Date.now, keys: [signer()] }
    const { outcome, generation } = await rollBackTo({ ...deps, program: 'patchmirror/test' }, 2)
    expect([outcome, generation?.generation.thin, generation?.generation.log]).toEqual(['published', undefined, 5])
    expect([generation?.generation.generation, follower.position()?.generation]).toEqual([5, 5])
    expect(await createNode(store).catchUp()).toBe(5)
    expect(stateOf(dir).digest).not.toBe(stateOf(bench.dir).digest)
    expect(stateOf(dir).log).toHaveLength(1)
  })
})
