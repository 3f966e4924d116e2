import fc from 'fast-check'
import { describe, expect } from 'vitest'
import { type LeaseKeeper, createLeaseKeeper, createSoleKeeper } from '../../../../src/features/fleet/lease/keeper.ts'
import { LEASE_KEY, readLease } from '../../../../src/features/fleet/lease/lease.ts'
import { type MemoryBucket, type StoreFault, createMemoryBucket } from '../../../support/fleet/memory-store.ts'
import { bothTest, LONG, test } from '../../../support/tables.ts'

const SECONDS = 30

/** A mirror with a keeper, a clock that may be off, and the fault of its next calls. */
interface Node {
  readonly keeper: LeaseKeeper
  fault: StoreFault | undefined
}

function createWorld() {
  const time = { at: 0 }
  const bucket: MemoryBucket = createMemoryBucket({ now: () => time.at })
  let tokens = 0
  const start = (owner: string, offsetMs = 0, patienceMs = 0, answerMs = 0): Node => {
    const node: { fault: StoreFault | undefined } = { fault: undefined }
    const keeper = createLeaseKeeper({
      store: bucket.client(() => {
        time.at += answerMs // as long as an answer takes
        return node.fault
      }),
      owner,
      name: owner,
      url: `http://${owner}`,
      patienceMs,
      floor: () => 0,
      seconds: () => SECONDS,
      token: () => `token-${++tokens}`,
      clock: () => time.at + offsetMs,
      now: () => time.at + offsetMs,
    })
    return Object.assign(node, { keeper })
  }
  const stored = () => readLease(bucket.read(LEASE_KEY) ?? Buffer.alloc(0))
  return { time, bucket, start, stored }
}

/** Steps of a node until so many milliseconds went by. */
async function live(world: ReturnType<typeof createWorld>, nodes: Node[], ms: number) {
  for (const end = world.time.at + ms; world.time.at < end; world.time.at += 3000)
    for (const { keeper } of nodes) await keeper.step(true)
}

describe('the lease', () => {
  test('the first takes it, renews it, and the other waits', async () => {
    const world = createWorld()
    const a = world.start('a')
    const b = world.start('b', 86_400_000)
    await live(world, [a, b], 300_000)
    expect(a.keeper.leadership()).toMatchObject({ epoch: 1, failure: null })
    expect(b.keeper.leadership()).toMatchObject({ epoch: null, lease: { name: 'a', epoch: 1 } })
  })

  test('ends for its owner as long after a write was sent as it lasts, however late the answer came', async () => {
    const world = createWorld()
    const { keeper } = world.start('a', 0, 0, 4000)
    await keeper.step(true)
    expect(keeper.leadership()).toMatchObject({ epoch: 1, remainingMs: SECONDS * 1000 - 4000 })
    world.time.at += 15_000
    await keeper.step(true)
    expect(world.stored()).toMatchObject({ renewal: 1 })
    expect(keeper.leadership()).toMatchObject({ epoch: 1, remainingMs: SECONDS * 1000 - 4000 })
  })

  test('a dead leader is replaced within its duration and two steps, with the next epoch', async () => {
    const world = createWorld()
    const a = world.start('a')
    const b = world.start('b')
    await live(world, [a, b], 60_000)
    const died = world.time.at
    while (b.keeper.leadership().epoch === null) await live(world, [b], 3000)
    expect(world.time.at - died).toBeLessThanOrEqual((SECONDS + 6) * 1000)
    expect(b.keeper.leadership().epoch).toBe(2)
    // The dead one comes back, as a stopped process that continues does.
    expect(a.keeper.leadership().epoch).toBeNull()
    await live(world, [a, b], 60_000)
    expect(a.keeper.leadership()).toMatchObject({ epoch: null, lease: { name: 'b' } })
  })

  test('a mirror that may not lead names no leader once the last one is dead, or gave the lease back', async () => {
    const world = createWorld()
    const a = world.start('a')
    const b = world.start('b')
    await live(world, [a], 6000)
    const watched = async (ms: number) => {
      for (const end = world.time.at + ms; world.time.at < end; world.time.at += 3000) await b.keeper.step(false)
      return b.keeper.leadership().lease?.name ?? null
    }
    expect(await watched(6000)).toBe('a')
    expect(await watched((SECONDS + 6) * 1000)).toBeNull()
    await live(world, [a], 6000)
    expect(await watched(3000)).toBe('a')
    await a.keeper.release()
    expect(await watched(3000)).toBeNull()
  })

  test.each([
    ['of the highest number', { epoch: Number.MAX_SAFE_INTEGER }],
    ['of a number that is none', { epoch: 1e308 }],
    ['for years', { seconds: 1e9 }],
    ['that is too large', { name: 'x'.repeat(20_000) }],
  ])('a lease %s that somebody wrote keeps no mirror from leading, under a sound epoch', async (_, fields) => {
    const world = createWorld()
    const a = world.start('a')
    await live(world, [a], 3000)
    const forged = { ...world.stored(), owner: 'x', token: 'x', ...fields }
    world.bucket.tamper(LEASE_KEY, Buffer.from(JSON.stringify(forged)))
    await live(world, [a], 3 * SECONDS * 1000)
    expect(a.keeper.leadership()).toMatchObject({
      failure: null,
      remainingMs: expect.any(Number) as number,
    })
    expect(a.keeper.leadership().epoch).toBeGreaterThan(0)
    expect(a.keeper.leadership().epoch).toBeLessThan(10)
  })

  test('a lease that was given back is taken at once; the owner takes its own after a restart', async () => {
    const world = createWorld()
    const a = world.start('a')
    const b = world.start('b')
    await live(world, [a, b], 3000)
    await a.keeper.release()
    expect(world.stored()).toMatchObject({ owner: 'a', released: true })
    await b.keeper.step(true)
    expect(b.keeper.leadership().epoch).toBe(2)
    const restarted = world.start('b')
    await restarted.keeper.step(true)
    expect(restarted.keeper.leadership().epoch).toBe(3)
  })

  test('a mirror that may not lead gives its lease back, and one with patience lets others go first', async () => {
    const world = createWorld()
    const a = world.start('a')
    const patient = world.start('b', 0, 15_000)
    await patient.keeper.step(true)
    expect(patient.keeper.leadership().epoch).toBeNull()
    await a.keeper.step(true)
    await a.keeper.step(false)
    expect(a.keeper.leadership().epoch).toBeNull()
    await patient.keeper.step(true)
    expect(patient.keeper.leadership().epoch).toBeNull()
    await live(world, [patient], 18_001)
    expect(patient.keeper.leadership().epoch).toBe(2)
  })

  test.each(['lost-answer', 'lost-request'] as const)('a write with a %s', async (fault) => {
    const world = createWorld()
    const a = world.start('a')
    let puts = 0
    const flaky = createLeaseKeeper({
      store: world.bucket.client(({ verb }) => (verb !== 'get' && ++puts % 2 === 1 ? fault : undefined)),
      owner: 'c',
      name: 'c',
      url: null,
      patienceMs: 0,
      floor: () => 7,
      seconds: () => SECONDS,
      clock: () => world.time.at,
      now: () => world.time.at,
    })
    await flaky.step(true)
    if (fault === 'lost-request') await flaky.step(true)
    expect(flaky.leadership().epoch).toBe(8)
    const node: Node = { keeper: flaky, fault: undefined }
    await live(world, [node, a], 120_000)
    expect(flaky.leadership().epoch).toBe(8)
    expect(a.keeper.leadership().epoch).toBeNull()
  })

  test('content that is no lease ends like one', async () => {
    const world = createWorld()
    world.bucket.tamper(LEASE_KEY, Buffer.from('{"epoch":"x"'))
    const a = world.start('a')
    await live(world, [a], 27_000)
    expect(a.keeper.leadership().epoch).toBeNull()
    await live(world, [a], 9000)
    expect(a.keeper.leadership().epoch).toBe(1)
  })

  test('while the store is down a leader leads to the end of its lease and no longer', async () => {
    const world = createWorld()
    const a = world.start('a')
    await live(world, [a], 3000)
    a.fault = 'down'
    await live(world, [a], 24_000)
    expect(a.keeper.leadership().epoch).toBe(1)
    await live(world, [a], 9000)
    expect(a.keeper.leadership()).toMatchObject({
      epoch: null,
      failure: expect.stringContaining('ECONNREFUSED') as string,
    })
    a.fault = undefined
    await a.keeper.step(true)
    expect(a.keeper.leadership().epoch).toBe(1)
  })

  bothTest('never has two leaders at a time, nor one epoch twice, whatever is lost', async () => {
    const faults = ['lost-answer', 'lost-request', 'down', 'slow-down', 'conflict'] as const
    const event = fc.record({
      node: fc.nat(2),
      wait: fc.integer({ min: 0, max: 40_000 }),
      does: fc.oneof(
        { weight: 12, arbitrary: fc.constant('step' as const) },
        fc.constantFrom('release' as const, 'restart' as const),
        { weight: 4, arbitrary: fc.constantFrom(...faults) },
      ),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(event, { maxLength: 40 }), async (events) => {
        const world = createWorld()
        const owners = ['a', 'b', 'c']
        const nodes = owners.map((owner, at) => world.start(owner, at * 3_600_000))
        const leaders = new Map<number, LeaseKeeper>()
        for (const { node, wait, does } of events) {
          world.time.at += wait
          const one = nodes[node] ?? world.start('x')
          if (does === 'restart') nodes[node] = world.start(owners[node] ?? 'x', 5)
          else if (does === 'release') await one.keeper.release()
          else {
            one.fault = does === 'step' ? undefined : does
            await one.keeper.step(true)
          }
          const leading = nodes.filter(({ keeper }) => keeper.leadership().epoch !== null)
          expect(leading.length).toBeLessThan(2)
          for (const { keeper } of leading) {
            const epoch = keeper.leadership().epoch ?? 0
            expect(leaders.get(epoch) ?? keeper).toBe(keeper)
            leaders.set(epoch, keeper)
            expect(Math.max(...leaders.keys())).toBe(epoch)
          }
        }
      }),
      { numRuns: LONG ? 300 : 100 },
    )
  })
})

test('without a lease, the operator says who leads, and each start has the next epoch', async () => {
  const sole = createSoleKeeper({ floor: () => 4 })
  expect((await sole.step(false)).epoch).toBeNull()
  expect((await sole.step(true)).epoch).toBe(5)
  await sole.release()
  expect(sole.leadership().epoch).toBeNull()
})
