import fc from 'fast-check'
import { expect } from 'vitest'
import { sha256Hex } from '../../../../src/base/digest.ts'
import { collectGarbage } from '../../../../src/features/fleet/generations/collect.ts'
import { createFollower, type Follower } from '../../../../src/features/fleet/generations/follow/follow.ts'
import { openGeneration } from '../../../../src/features/fleet/generations/format/envelope.ts'
import { type Generation, bundlesOf } from '../../../../src/features/fleet/generations/format/generation.ts'
import { publishGeneration } from '../../../../src/features/fleet/generations/publish/publish.ts'
import type { ObjectStore } from '../../../../src/features/fleet/objects/object-store.ts'
import {
  type FaultScript,
  type MemoryBucket,
  type StoreFault,
  createMemoryBucket,
} from '../../../support/fleet/memory-store.ts'
import { signer } from '../../bundles/air-gap.ts'
import { fleetTrust, nodeConfig } from './nodes.ts'
import { type Disk, combinedOf, emptyDisk, standInExporter, standInImporter, syncTo } from './stand-ins.ts'

const NODES = 3
const HOUR = 3_600_000

type FaultName = Exclude<StoreFault, object> | 'crash'

/** One step of a history. `at`: the call of the store at which the fault happens. */
export type Step =
  | { do: 'upstream' }
  | { do: 'sync' | 'takeOver' | 'restart'; node: number }
  | { do: 'publish' | 'follow' | 'gc'; node: number; at: number; fault: FaultName | null }
  | { do: 'sleep'; node: number; at: number }
  | { do: 'wake'; node: number }
  | { do: 'hint'; generation: number }
  | { do: 'wait'; hours: number }

const node = fc.nat({ max: NODES - 1 })
const at = fc.integer({ min: 1, max: 12 })
const fault = fc.option(
  fc.constantFrom<FaultName>('crash', 'lost-request', 'lost-answer', 'slow-down', 'conflict', 'half'),
  { freq: 3, nil: null },
)
const faulty = <Verb extends 'publish' | 'follow' | 'gc'>(verb: Verb) =>
  fc.record({ do: fc.constant(verb), node, at, fault })

/** Histories of a fleet: what its nodes do, in any order, and what goes wrong. */
export const histories: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    { arbitrary: fc.record({ do: fc.constant('upstream' as const) }), weight: 3 },
    { arbitrary: fc.record({ do: fc.constant('sync' as const), node }), weight: 3 },
    { arbitrary: fc.record({ do: fc.constant('takeOver' as const), node }), weight: 2 },
    { arbitrary: fc.record({ do: fc.constant('restart' as const), node }), weight: 1 },
    { arbitrary: faulty('publish'), weight: 6 },
    { arbitrary: faulty('follow'), weight: 5 },
    { arbitrary: faulty('gc'), weight: 1 },
    { arbitrary: fc.record({ do: fc.constant('sleep' as const), node, at }), weight: 1 },
    { arbitrary: fc.record({ do: fc.constant('wake' as const), node }), weight: 1 },
    {
      arbitrary: fc.record({
        do: fc.constant('hint' as const),
        generation: fc.integer({ min: 0, max: 40 }),
      }),
      weight: 1,
    },
    {
      arbitrary: fc.record({
        do: fc.constant('wait' as const),
        hours: fc.integer({ min: 1, max: 200 }),
      }),
      weight: 1,
    },
  ),
  { minLength: 10, maxLength: 40, size: 'max' },
)

/** A node: what it keeps over restarts, and whether it believes to lead. */
interface Member {
  readonly disk: Disk
  follower: Follower
  epoch: number | null
  /** It synced since it followed last: it serves what it published, not what it stores. */
  isAhead: boolean
  /** A publication that stands still. */
  asleep: { resume: () => void; done: Promise<unknown> } | null
}

/** A fleet in memory. */
interface World {
  readonly bucket: MemoryBucket
  readonly members: readonly Member[]
  /** Verified generations by number. */
  readonly seen: Map<number, { bytes: Buffer; generation: Generation; sha256: string }>
  epoch: number
  version: number
  now: number
}

class Crash extends Error {}

const config = nodeConfig('/nowhere', {
  PATCHMIRROR_BUNDLE_EXPIRE_DAYS: '0',
  PATCHMIRROR_BUNDLE_FULL_DAYS: '2',
  PATCHMIRROR_FLEET_KEEP_DAYS: '3',
})

function createWorld(): World {
  const world: World = {
    bucket: createMemoryBucket({ now: () => world.now }),
    members: [],
    seen: new Map(),
    epoch: 0,
    version: 1,
    now: Date.parse('2026-05-01T00:00:00.000Z'),
  }
  const members = Array.from({ length: NODES }, (_, i): Member => {
    const disk = emptyDisk(`node ${i}`)
    return { disk, follower: followerOf(world, disk), epoch: null, isAhead: false, asleep: null }
  })
  return Object.assign(world, { members })
}

function followerOf(world: World, disk: Disk, store = world.bucket.client()): Follower {
  const now = (): number => world.now
  return createFollower({
    store,
    config,
    now,
    trust: fleetTrust(now),
    mayPublish: true,
    importer: standInImporter(disk),
    waitUntil: () => Promise.resolve(),
  })
}

function scriptOf(at: number, fault: FaultName | null): FaultScript {
  return ({ count }) => {
    if (fault === null || count < at) return undefined
    if (fault === 'crash') throw new Crash()
    return count === at ? fault : undefined
  }
}

function publishAs(world: World, { disk, epoch }: Member, store: ObjectStore): Promise<unknown> {
  const now = (): number => world.now
  return publishGeneration({
    store,
    dataDir: '/nowhere',
    config,
    keys: [signer()],
    trust: fleetTrust(now),
    now,
    epoch: epoch ?? 0,
    program: 'patchmirror/test',
    exporter: standInExporter(disk, now),
    canTakeThin: () => Promise.resolve(world.version % 3 > 0),
  })
}

async function catchUp(member: Member, follower = member.follower): Promise<void> {
  const before = follower.position()?.generation ?? 0
  const { newest, isCurrent } = await follower.look()
  if (newest !== null && !isCurrent) await follower.commit(await follower.prepare(newest))
  expect(follower.position()?.generation ?? 0).toBeGreaterThanOrEqual(before)
  member.isAhead = false
}

/** Ends quietly where the fault is one that a node survives: the next attempt goes on. */
async function survive(work: Promise<unknown>): Promise<boolean> {
  try {
    await work
    return true
  } catch (error) {
    if (error instanceof Crash) return false
    if (error instanceof Error && (error.name === 'FleetError' || error.name === 'MirrorError')) return false
    throw error
  }
}

async function perform(world: World, step: Step): Promise<void> {
  if (step.do === 'upstream') world.version++
  else if (step.do === 'wait') world.now += step.hours * HOUR
  else if (step.do === 'hint')
    world.bucket.tamper('head.json', Buffer.from(JSON.stringify({ generation: step.generation })))
  else {
    const member = world.members[step.node]
    if (member !== undefined) await performOn(world, member, step)
  }
}

type NodeStep = Extract<Step, { node: number }>

async function performOn(world: World, member: Member, step: NodeStep): Promise<void> {
  if (step.do === 'wake') return wake(member)
  if (member.asleep !== null) return
  if (step.do === 'restart') member.follower = followerOf(world, member.disk)
  if (step.do === 'sync' && member.epoch !== null) {
    syncTo(member.disk, world.version, world.now)
    member.isAhead = true
  }
  if (step.do === 'takeOver') await takeOver(world, member)
  if (step.do === 'sleep' && member.epoch !== null) await sleep(world, member, step.at)
  if ('fault' in step) await performFaulty(world, member, step)
}

async function performFaulty(
  world: World,
  member: Member,
  { do: verb, at, fault }: Extract<NodeStep, { fault: unknown }>,
): Promise<void> {
  const store = world.bucket.client(scriptOf(at, fault))
  const now = (): number => world.now
  if (verb === 'gc') await survive(collectGarbage({ store, config, trust: fleetTrust(now), now, dryRun: false }))
  if (verb === 'publish' && member.epoch !== null) await publishOrStepDown(world, member, store)
  if (verb === 'follow' && member.epoch === null) {
    const done = await survive(catchUp(member, followerOf(world, member.disk, store)))
    if (done) member.follower = followerOf(world, member.disk)
  }
}

async function publishOrStepDown(world: World, member: Member, store: ObjectStore): Promise<void> {
  await survive(
    publishAs(world, member, store).then((result) => {
      if ((result as { outcome: string }).outcome === 'fenced') member.epoch = null
    }),
  )
}

/** Takes the lease, whoever believes to have it. */
async function takeOver(world: World, member: Member): Promise<void> {
  if (!(await survive(catchUp(member, followerOf(world, member.disk))))) return
  member.epoch = ++world.epoch
}

/**
 * Begins to publish, and stands still at a call of the store, as a process that was stopped. Resolves when it stands still,
 * or has published with fewer calls.
 */
async function sleep(world: World, member: Member, at: number): Promise<void> {
  const continued = Promise.withResolvers<null>()
  const reached = Promise.withResolvers<null>()
  const store = world.bucket.client(({ count }) => {
    if (count !== at) return undefined
    reached.resolve(null)
    return { waitFor: continued.promise }
  })
  const done = publishOrStepDown(world, member, store)
  const resume = (): void => continued.resolve(null)
  member.asleep = { resume, done }
  await Promise.race([reached.promise, done])
}

async function wake(member: Member): Promise<void> {
  member.asleep?.resume()
  await member.asleep?.done
  member.asleep = null
}

/** All generations on the store, verified to be an unbroken chain in which nothing was ever replaced. */
function chainOf({ bucket, seen, now }: World): Generation[] {
  const keys = bucket.keys().filter((name) => name.startsWith('gen/'))
  expect(keys.length).toBeGreaterThanOrEqual(seen.size)
  for (const [i, key] of keys.entries()) {
    const bytes = bucket.read(key) ?? Buffer.alloc(0)
    const known = seen.get(i + 1)
    if (known !== undefined) {
      expect(bytes.equals(known.bytes)).toBe(true)
      continue
    }
    const { generation } = openGeneration(
      bytes,
      fleetTrust(() => now),
      key,
    )
    const before = seen.get(i)
    expect(generation.generation).toBe(i + 1)
    expect(generation.previous).toBe(before?.sha256 ?? null)
    expect(generation.epoch).toBeGreaterThanOrEqual(before?.generation.epoch ?? 0)
    seen.set(i + 1, { bytes, generation, sha256: sha256Hex(bytes) })
  }
  return [...seen.values()].map(({ generation }) => generation)
}

function verify(world: World): void {
  const chain = chainOf(world)
  const versions = new Map(Array.from({ length: world.version + 1 }, (_, version) => [combinedOf(version), version]))
  const published = chain.map(({ digest }) => versions.get(digest) ?? -1)
  expect(published).toEqual(published.toSorted((a, b) => a - b))
  for (const { disk, isAhead, follower } of world.members)
    if (!isAhead && follower.position() !== null) {
      const place = follower.position()?.generation ?? 0
      expect(combinedOf(disk.version)).toBe(chain[place - 1]?.digest)
    }
  const since = world.now - config.fleet.keepDays * 24 * HOUR
  for (const one of chain) {
    const { changes, publishedAt } = one
    if (Date.parse(publishedAt) < since && one !== chain.at(-1)) continue
    for (const object of [...bundlesOf(one), ...(changes === null ? [] : [changes])])
      expect(world.bucket.read(object.key)?.length).toBe(object.size)
  }
}

/** Every history begins with a leader, and a standby that follows it. */
const BEGINNING: readonly Step[] = [
  { do: 'takeOver', node: 0 },
  { do: 'sync', node: 0 },
  { do: 'publish', node: 0, at: 1, fault: null },
  { do: 'follow', node: 1, at: 1, fault: null },
]

/** Runs a history and checks the promises after every step; at its end the fleet recovers without a fault. */
export async function runHistory(steps: readonly Step[]): Promise<void> {
  const world = createWorld()
  for (const step of BEGINNING) await perform(world, step)
  for (const step of steps) {
    await perform(world, step)
    verify(world)
  }
  for (const member of world.members) await wake(member)
  verify(world)
  await recover(world)
}

async function recover(world: World): Promise<void> {
  const [leader] = world.members
  if (leader === undefined) return
  for (const member of world.members) {
    member.epoch = null
    member.follower = followerOf(world, member.disk)
  }
  await takeOver(world, leader)
  expect(leader.epoch).not.toBeNull()
  await publishAs(world, leader, world.bucket.client())
  syncTo(leader.disk, ++world.version, world.now)
  await publishAs(world, leader, world.bucket.client())
  verify(world)
  for (const member of world.members) {
    await catchUp(member)
    expect(member.disk.version).toBe(world.version)
    expect(member.disk.log.at(-1)).toEqual(leader.disk.log.at(-1))
  }
}
