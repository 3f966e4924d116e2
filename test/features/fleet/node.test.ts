import { expect, onTestFinished } from 'vitest'
import { readLease, writeLease } from '../../../src/features/fleet/lease/lease.ts'
import { createLeaseKeeper } from '../../../src/features/fleet/lease/keeper.ts'
import { startNode } from '../../../src/features/fleet/node.ts'
import type { GenerationFacts, Generations, NodeReport } from '../../../src/features/fleet/turn.ts'
import { FleetError } from '../../../src/features/fleet/objects/object-store.ts'
import { createMemoryBucket } from '../../support/fleet/memory-store.ts'
import { longTest, test } from '../../support/tables.ts'

/** Facts of a generation that is active. */
function facts(generation: number, epoch: number): GenerationFacts {
  return { generation, epoch, stamp: `s${generation}`, publishedAt: 0, activateAt: 0 }
}

/** What the store of a test has, and what a node did with it. */
interface Scene {
  newest: GenerationFacts | null
  refused: string | null
  /** The next publication finds a generation of a newer leader. */
  isFenced: boolean
  readonly published: number[]
  followed: number
  /** When it looked at the store, milliseconds. */
  readonly looks: number[]
  /** How many of the next publications find a rollback that is not released. */
  unreleased: number
  /** How many of the next publications fail because the store is busy. */
  busy: number
  /** Milliseconds by which the clock of its lease is ahead. */
  later: number
  /** Whether a look waits until the end, which it does not survive. */
  isWaiting: boolean
}

/** A node over a store in memory, with generations that a test sets. */
function open(
  scene: Scene,
  role: 'auto' | 'reader' = 'auto',
  pollMs = 20,
  bucket = createMemoryBucket(),
  leaseMs?: number,
  settleMs = 0,
) {
  const reports: NodeReport[] = []
  const ended = Promise.withResolvers<never>()
  ended.promise.catch(() => undefined)
  const store = bucket.client()
  const generations: Generations = {
    stored: () => 0,
    follow(onProgress) {
      onProgress({ newest: scene.newest })
      scene.followed += 1
      scene.looks.push(performance.now())
      if (scene.isWaiting) return ended.promise
      const { newest, refused } = scene
      const known = { newest, applied: newest, prepared: newest?.generation ?? 0 }
      const refusal = refused === null ? null : { refused, message: `it is ${refused}` }
      return Promise.resolve({ ...known, refusal })
    },
    publish(epoch) {
      if (scene.busy-- > 0) return Promise.reject(new FleetError('refused', '503 SlowDown', { isPassing: true }))
      if (scene.unreleased-- > 0) return Promise.resolve({ newest: scene.newest, fenced: false, paused: true })
      if (scene.refused === 'fork') return Promise.reject(new Error('the store has another history'))
      const fenced = scene.isFenced
      scene.isFenced = false
      if (!fenced) scene.published.push(epoch)
      scene.newest = facts((scene.newest?.generation ?? 0) + 1, fenced ? epoch + 5 : epoch)
      return Promise.resolve({ newest: scene.newest, fenced, paused: false })
    },
    collect: () => Promise.resolve(),
    whyRefused: (error) => (error instanceof FleetError ? null : scene.refused),
  }
  const keeper = createLeaseKeeper({
    store,
    owner: 'a',
    name: 'a',
    url: null,
    patienceMs: 0,
    seconds: () => 2,
    floor: () => scene.newest?.epoch ?? 0,
    clock: () => performance.now() + scene.later,
    now: Date.now,
  })
  const node = startNode({
    role,
    keeper,
    generations,
    pollMs: () => pollMs,
    settleMs,
    ...(leaseMs !== undefined && { leaseMs }),
    onReport: (report) => void reports.push(report),
  })
  onTestFinished(() => node.stop())
  const until = async (fits: (report: NodeReport) => boolean): Promise<NodeReport> => {
    let found: NodeReport | undefined
    await expect.poll(() => (found = reports.findLast(fits)), { interval: 10 }).toBeDefined()
    if (found === undefined) throw new Error('unreachable')
    return found
  }
  const stopWaiting = (): void => ended.reject(new Error('The operation was aborted'))
  return { node, until, reports, bucket, stopWaiting }
}

function leaseOf(name: string): Buffer {
  const written = { epoch: 1, owner: name, token: name, name, url: null, seconds: 30, renewal: 0, released: false }
  return writeLease(written, Date.now())
}

const scene = (more: Partial<Scene> = {}): Scene => ({
  newest: null,
  refused: null,
  isFenced: false,
  published: [],
  followed: 0,
  looks: [],
  unreleased: 0,
  busy: 0,
  later: 0,
  isWaiting: false,
  ...more,
})

test('a node follows, leads, and publishes each commit; its epoch is above that of every generation', async () => {
  const given = scene({ newest: facts(7, 4) })
  const { node, until } = open(given)
  const led = await until(({ leads }) => leads !== null)
  expect(led.leads).toBe(5)
  expect(given.followed).toBeGreaterThan(1) // once more after it has the lease
  await until(({ newest }) => newest?.generation === 8)
  node.committed(false)
  await until(({ newest }) => newest?.generation === 9)
  expect(given.published).toEqual([5, 5])
})

test('a node publishes a commit at once where no other run is under way, and waits for others else', async () => {
  const given = scene({ newest: facts(1, 1) })
  const { node, until } = open(given, 'auto', 20, createMemoryBucket(), undefined, 3_600_000)
  await until(({ newest }) => newest?.generation === 2)
  node.committed(false)
  node.committed(true)
  await until(({ newest }) => newest?.generation === 3)
  expect(given.published).toHaveLength(2)
})

longTest(
  'a node that meets a newer leader gives the lease back, follows, and leads again with a higher epoch',
  async () => {
    const given = scene({ newest: facts(1, 1), isFenced: true })
    const { until } = open(given)
    const fenced = await until(({ fenced: times }) => times === 1)
    expect(fenced.leads).toBeNull()
    const again = await until(({ leads, fenced: times }) => leads !== null && times === 1)
    expect(again.leads).toBeGreaterThan(7)
  },
)

longTest('a leader whose history is not the store’s gives the lease back, and leads again once it is', async () => {
  const given = scene({ newest: facts(1, 1) })
  const { node, until, reports, bucket } = open(given)
  await until(({ newest }) => newest?.generation === 2)
  given.refused = 'fork'
  node.committed(true)
  await until(({ failing, leads }) => failing?.refused === 'fork' && leads === null)
  expect(readLease(bucket.read('lease.json') ?? Buffer.alloc(0))).toMatchObject({ released: true })
  given.refused = null
  const known = reports.length
  await expect.poll(() => reports.slice(known).some(({ leads }) => leads !== null)).toBe(true)
})

longTest.each(['expired', 'ahead'])(
  'a node does not lead on a history that it refuses, but ends one that is only %s',
  async (why) => {
    const given = scene({ newest: facts(1, 1), refused: 'fork' })
    const { until, reports } = open(given)
    await until(({ failing }) => failing?.refused === 'fork')
    const { followed } = given
    await expect.poll(() => given.followed).toBeGreaterThan(followed + 2)
    expect(reports.every(({ leads }) => leads === null)).toBe(true)
    given.refused = why
    await until(({ leads }) => leads !== null)
    expect(given.published.length).toBeGreaterThan(0)
  },
)

test('a node that is stopped while it waits for the time of a generation reports no failure', async () => {
  const given = scene({ newest: facts(1, 1), isWaiting: true })
  const { node, reports, stopWaiting } = open(given, 'reader')
  await expect.poll(() => given.followed).toBe(1)
  const stopped = node.stop()
  stopWaiting()
  await stopped
  expect(reports.filter(({ failing }) => failing !== null)).toEqual([])
})

longTest('a reader reads the lease when another mirror leads, and not with each look', async () => {
  const given = scene({ newest: facts(1, 1) })
  const { bucket } = open(given, 'reader')
  await expect.poll(() => given.followed).toBeGreaterThan(10)
  expect(bucket.calls).toMatchObject({ get: 1 })
  given.newest = facts(2, 2)
  const { followed } = given
  await expect.poll(() => given.followed).toBeGreaterThan(followed + 10)
  expect(Object.values(bucket.calls).reduce((sum, calls) => sum + calls)).toBe(2)
})

test('a reader finds that no mirror leads any more, although nothing says so', async () => {
  const given = scene({ newest: facts(1, 1) })
  const bucket = createMemoryBucket()
  bucket.tamper('lease.json', leaseOf('a'))
  const { until } = open(given, 'reader', 20, bucket, 50)
  await until(({ lease }) => lease?.name === 'a')
  given.later = 31_000 // the lease was not renewed
  await until(({ lease, newest }) => lease === null && newest !== null)
})

test('a publication that fails because the store is busy is made again at the next poll', async () => {
  const given = scene({ newest: facts(1, 1), busy: 2 })
  const { until } = open(given)
  await until(({ failing }) => failing?.message === '503 SlowDown')
  await expect.poll(() => given.published).toEqual([2]) // a leader confirms its date each minute
})

test('a leader looks at each poll whether a rollback is released', async () => {
  const given = scene({ newest: facts(1, 1), unreleased: 6 }) // for minutes, if it looked when it confirms its date
  const { until } = open(given)
  await until(({ paused }) => paused)
  await until(({ paused, leads }) => leads !== null && !paused)
  expect(given.published).toEqual([2])
})

test('a reader knows who leads before its first look ends, and while generations are refused', async () => {
  const given = scene({ newest: facts(1, 1), refused: 'missing' })
  const bucket = createMemoryBucket()
  const lead = (name: string): void => bucket.tamper('lease.json', leaseOf(name))
  lead('a')
  const { until, reports } = open(given, 'reader', 20, bucket)
  await until(({ failing }) => failing?.refused === 'missing')
  expect(reports.map(({ lease }) => lease?.name)).not.toContain(undefined)
  lead('b') // its generations are not seen
  await until(({ lease }) => lease?.name === 'b')
  given.refused = null
  const known = reports.length
  await expect.poll(() => reports.slice(known).at(-1)?.failing).toBeNull()
  const { get } = bucket.calls
  const { followed } = given
  await expect.poll(() => given.followed).toBeGreaterThan(followed + 5)
  expect(bucket.calls.get).toBe(get)
})

longTest('a reader never looks at the store more often than the settings say', async () => {
  const given = scene({ newest: facts(1, 1) })
  open(given, 'reader')
  const { looks } = given
  await expect.poll(() => looks.length, { interval: 10 }).toBeGreaterThan(16)
  const pauses = looks.slice(1).map((at, i) => at - (looks[i] ?? 0))
  expect(Math.min(...pauses)).toBeGreaterThanOrEqual(19) // of 20 ms; a timer may be some tenths of one early
})

longTest(
  'a node that expects a generation looks for it until it is seen, however often it was told; older ones are no reason',
  async () => {
    const given = scene({ newest: facts(7, 1) })
    const { node, until } = open(given, 'reader', 3_600_000)
    await until(({ newest }) => newest?.generation === 7)
    expect(given.followed).toBe(1)
    for (const known of [6, 7]) node.expect(known)
    for (let told = 0; told < 50; told++) node.expect(8)
    await expect.poll(() => given.followed, { interval: 10 }).toBe(2) // the poll comes in an hour
    await expect.poll(() => given.followed, { interval: 10 }).toBe(3)
    given.newest = facts(8, 1)
    await until(({ newest }) => newest?.generation === 8)
    const { followed, looks } = given
    node.expect(8)
    await new Promise((resolve) => setTimeout(resolve, 600)) // six times the pause between two looks
    expect(given.followed).toBe(followed)
    const pauses = looks.slice(2).map((at, i) => at - (looks[i + 1] ?? 0))
    expect(Math.min(...pauses)).toBeGreaterThanOrEqual(99)
  },
)
