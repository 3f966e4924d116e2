import { expect, test } from 'vitest'
import { type Follower, createFollower } from '../../../../src/features/fleet/generations/follow/follow.ts'
import type { Importer } from '../../../../src/features/fleet/generations/follow/importer.ts'
import type { KnownGeneration } from '../../../../src/features/fleet/generations/format/generation.ts'
import { generationKey } from '../../../../src/features/fleet/generations/format/object-names.ts'
import { rollBackTo } from '../../../../src/features/fleet/generations/rollback.ts'
import { isRollingBack } from '../../../../src/features/fleet/generations/rollback-state.ts'
import type { FaultScript } from '../../../support/fleet/memory-store.ts'
import { folder, signer } from '../../bundles/air-gap.ts'
import { fleetTrust, nodeConfig } from './nodes.ts'
import { type Pair, createPair, forge, namedBy } from './pair.ts'
import { emptyDisk, standInImporter } from './stand-ins.ts'

/** Returns a follower that may lead, over data of its own. */
function standbyOf(pair: Pair, importer: Importer): Follower {
  return createFollower({
    store: pair.bucket.client(),
    config: nodeConfig('/nowhere'),
    trust: fleetTrust(() => pair.now),
    now: () => pair.now,
    waitUntil: () => Promise.resolve(),
    mayPublish: true,
    importer,
  })
}

async function newestOf(follower: Follower): Promise<KnownGeneration> {
  return (await follower.look()).newest ?? expect.fail('no generation')
}

test('a follower refuses a store with a hole, one with fewer generations, and one with another past', async () => {
  const pair = createPair()
  const { bucket } = pair
  for (let i = 0; i < 2; i++) await pair.publish()
  expect(await pair.follow()).toBeNull()
  const early = bucket.snapshot()
  for (let i = 0; i < 2; i++) await pair.publish()
  const whole = bucket.snapshot()
  bucket.tamper(generationKey(3), null)
  const looked = async (): Promise<string | null> => {
    let reason: string | null = null
    for (let i = 0; i < 60 && reason === null; i++) reason = await pair.follow()
    for (let i = 0; i < 3; i++) expect(await pair.follow()).toBe(reason)
    return reason
  }
  expect(await looked()).toBe('hole')
  bucket.restore(whole)
  expect(await pair.follow()).toBeNull()
  expect(pair.reader.version).toBe(4)
  bucket.restore(early)
  expect(await looked()).toBe('backwards')
  bucket.restore(new Map())
  expect(await looked()).toBe('backwards')
  bucket.restore(whole)
  forge(pair, 4, { epoch: 7 })
  expect(await looked()).toBe('fork')
  expect(pair.reader.version).toBe(4)
  bucket.restore(whole)
  expect(await pair.follow()).toBeNull()
  await pair.publish()
  expect(await pair.follow()).toBeNull()
  expect(pair.reader.version).toBe(5)
})

test.each<[string, number[], boolean]>([
  ['one generation is missing at the start', [3], true],
  ['two are', [3, 4], true],
  ['a later one is, and no hint says so', [4], false],
])('a follower refuses a hole for as long as there is one, then goes on by itself: %s', async (_, missing, hint) => {
  const pair = createPair()
  const { bucket } = pair
  for (let i = 0; i < 2; i++) await pair.publish()
  expect(await pair.follow()).toBeNull()
  for (let i = 0; i < 3; i++) await pair.publish()
  const whole = bucket.snapshot()
  for (const number of missing) bucket.tamper(generationKey(number), null)
  if (!hint) bucket.tamper('head.json', null)
  const restarted = pair.restart()
  for (let i = 0; i < 62; i++) {
    const { refusal } = await restarted.look()
    expect(refusal?.message).toMatch(`generation ${missing[0]} is missing on memory://, and 5 exists`)
  }
  const [first = 0] = missing
  bucket.tamper(generationKey(first), whole.get(generationKey(first))?.bytes ?? null)
  expect((await restarted.look()).refusal?.reason).toBe(missing.length > 1 ? 'hole' : undefined)
  expect((await restarted.look()).refusal?.reason).toBe(missing.length > 1 ? 'hole' : undefined)
  bucket.restore(whole)
  expect(await restarted.look()).toMatchObject({ refusal: null, behind: 3 })
})

test('a follower checks again what a look could not check because the store did not answer', async () => {
  const pair = createPair()
  for (let i = 0; i < 2; i++) await pair.publish()
  expect(await pair.follow()).toBeNull()
  let isDown = false
  const follower = pair.restart(pair.bucket.client(() => (isDown ? 'down' : undefined)))
  expect((await follower.look()).refusal).toBeNull()
  pair.bucket.restore(new Map())
  for (let i = 0; i < 29; i++) expect((await follower.look()).refusal).toBeNull()
  isDown = true
  await expect(follower.look()).rejects.toThrow('ECONNREFUSED')
  isDown = false
  expect((await follower.look()).refusal?.reason).toBe('backwards')
})

test('a mirror with an empty data folder follows a store with a hole, as the refusal says', async () => {
  const pair = createPair()
  for (let i = 0; i < 4; i++) await pair.publish()
  pair.bucket.tamper(generationKey(3), null)
  expect(await pair.follow()).toBeNull()
  expect(pair.reader.version).toBe(4)
  await pair.publish()
  expect(await pair.follow()).toBeNull()
  expect(pair.reader.version).toBe(5)
})

test('an idle leader looks each ten minutes whether the bundles of its generation are there', async () => {
  const pair = createPair()
  for (let i = 0; i < 2; i++) await pair.publish()
  pair.now += 600_000
  const before = pair.bucket.calls.head
  for (let i = 0; i < 30; i++, pair.now += 60_000) await pair.confirm()
  expect(pair.bucket.calls.head - before).toBe(30 + 3 * 2)
})

test('a mirror that has more than a new leader published is told to wait for it before its data is given up', async () => {
  const pair = createPair()
  await pair.publish()
  const follower = standbyOf(pair, { ...standInImporter(emptyDisk('first')), readSnapshots: () => ({ catalog: 'c' }) })
  const newest = await newestOf(follower)
  await expect(follower.prepare(newest)).rejects.toThrow(
    'has catalog, which generation 1 does not have: it follows the next one that has. Where the leader does not mirror that, start',
  )
})

test('a leader publishes nothing on a store that lost what it published, and goes on when it is back', async () => {
  const pair = createPair()
  const { bucket } = pair
  for (let i = 0; i < 2; i++) await pair.publish()
  const early = bucket.snapshot()
  for (let i = 0; i < 2; i++) await pair.publish()
  const whole = bucket.snapshot()
  for (const [left, words] of [
    [early, 'memory:// does not have the generation 4 that was applied or published here'],
    [new Map(), 'does not have the generation 4'],
  ] as const) {
    bucket.restore(left)
    for (let i = 0; i < 3; i++) await expect(pair.publish()).rejects.toThrow(words)
    expect(bucket.snapshot()).toEqual(left)
  }
  bucket.restore(whole)
  forge(pair, 4, { counts: null })
  await expect(pair.publish()).rejects.toThrow('has another one than the generation 4')
  bucket.restore(whole)
  await pair.publish()
  expect([await pair.follow(), pair.follower.position()?.generation]).toEqual([null, 5])
})

test('a follower tells a store that was set back from one on which a fleet was begun again', async () => {
  const pair = createPair()
  await pair.publish()
  const early = pair.bucket.snapshot()
  for (let i = 0; i < 3; i++, pair.now += 60_000) await pair.publish()
  expect(await pair.follow()).toBeNull()
  const looked = async (): Promise<string | null> => {
    let reason: string | null = null
    for (let i = 0; i < 31 && reason === null; i++) reason = await pair.follow()
    return reason
  }
  pair.bucket.restore(early)
  expect(await looked()).toBe('backwards')
  pair.bucket.restore(new Map())
  expect((await pair.restart().look()).refusal?.reason).toBe('backwards')
  await pair.beginAgain()
  await pair.publish(2)
  expect(await looked()).toBe('fork')
})

test('a leader with an empty data folder goes on where the store was set back, as the refusal says', async () => {
  const pair = createPair()
  for (let i = 0; i < 2; i++) await pair.publish()
  const early = pair.bucket.snapshot()
  await pair.publish()
  pair.bucket.restore(early)
  await expect(pair.publish()).rejects.toThrow('start this node with an empty data folder')
  expect(await pair.beginAgain()).toBeNull()
  await pair.publish(2)
  expect([await pair.follow(), pair.follower.position()?.generation]).toEqual([null, 3])
})

test('a publication looks once at the generation and at the full bundle that it builds on', async () => {
  const pair = createPair()
  for (let i = 0; i < 2; i++) await pair.publish()
  const calls: string[] = []
  const note: FaultScript = ({ verb, key }) => void calls.push(`${verb} ${key.replace(/0{9,}|[\da-f]{64}/g, '-')}`)
  await pair.publish(1, pair.bucket.client(note))
  expect(calls).toEqual([
    'head gen/-3.json',
    'get gen/-2.json', // the store may have lost it,
    'head bundles/-.zip', // or the last full bundle
    'putIfAbsent bundles/-.zip',
    'putIfAbsent changes/-3.-.jsonl.gz',
    'putIfAbsent gen/-3.json',
    'get gen/-3.json',
    'put head.json',
  ])
})

test('a generation that is not on the store was not published, whatever was answered', async () => {
  const pair = createPair()
  await pair.publish()
  const store = pair.bucket.client()
  const putIfAbsent: typeof store.putIfAbsent = (key, bytes) =>
    key.startsWith('gen/')
      ? Promise.resolve({ key, size: 1, etag: '"x"', modifiedAt: 0 })
      : store.putIfAbsent(key, bytes)
  await expect(pair.publish(1, { ...store, putIfAbsent })).rejects.toThrow('cannot be read')
  await pair.publish()
  expect([await pair.follow(), pair.reader.version, pair.follower.position()?.generation]).toEqual([null, 3, 2])
})

test('a full bundle that the store lost is replaced by the next publication, and a new mirror begins with it', async () => {
  const pair = createPair()
  for (let i = 0; i < 2; i++) await pair.publish()
  const [name] = namedBy(pair, 2)
  pair.bucket.tamper(name ?? '', null)
  for (let i = 0; i < 2; i++) await expect(pair.follow()).rejects.toThrow('is not what was named')
  await pair.publish()
  expect(await pair.follow()).toBeNull()
  expect(pair.reader.version).toBe(3)
  expect(namedBy(pair, 3)[0]).not.toBe(name)
})

test('a running follower finds an emptied store within minutes', async () => {
  const pair = createPair()
  await pair.publish()
  expect(await pair.follow()).toBeNull()
  pair.bucket.restore(new Map())
  let looks = 1
  while ((await pair.follow()) !== 'backwards') looks++
  expect(looks * 10).toBeLessThanOrEqual(300) // seconds, by a look each ten
})

test.each([0, 1])('a bundle that the store lost is replaced although nothing changes: %i', async (which) => {
  const pair = createPair()
  for (let i = 0; i < 2; i++) await pair.publish()
  pair.bucket.tamper(namedBy(pair, 2)[which] ?? '', null)
  await expect(pair.follow()).rejects.toThrow('is not what was named')
  pair.now += 9 * 60_000
  expect(await pair.confirm()).toBe('unchanged') // a store that loses all is not filled without end
  pair.now += 60_000
  expect(await pair.confirm()).toBe('published')
  expect(await pair.follow()).toBeNull()
  expect([pair.reader.version, pair.follower.position()?.generation]).toEqual([2, 3])
  pair.now += 600_000
  expect(await pair.confirm()).toBe('unchanged')
})

test.each([[null], ['{"generation":9}']])(
  'a fleet whose first generation and hint are lost is not begun again: %s',
  async (hint) => {
    const pair = createPair()
    for (let i = 0; i < 3; i++) await pair.publish()
    pair.bucket.tamper(generationKey(1), null)
    pair.bucket.tamper('head.json', hint === null ? null : Buffer.from(hint))
    expect(await pair.beginAgain()).toBeNull()
    await pair.publish(2)
    expect(pair.bucket.read(generationKey(1))).toBeNull()
    expect([await pair.follow(), pair.follower.position()?.generation]).toEqual([null, 4])
  },
)

test('a standby serves a generation before it remembers it, also where it cannot', async () => {
  const pair = createPair()
  await pair.publish()
  const disk = emptyDisk('standby')
  const follower = standbyOf(pair, {
    ...standInImporter(disk),
    remember: () => Promise.reject(new Error('it is locked')),
  })
  const newest = await newestOf(follower)
  const stored: number[] = []
  const committed = follower.commit(await follower.prepare(newest), { onStored: () => stored.push(disk.version) })
  await expect(committed).rejects.toThrow('it is locked')
  expect(stored).toEqual([1])
})

test('a rollback to a generation whose bundle is not on the store says that, and begins nothing', async () => {
  const pair = createPair()
  for (let i = 0; i < 2; i++) await pair.publish()
  const [name = ''] = namedBy(pair, 1)
  const now = (): number => pair.now
  const config = nodeConfig(folder())
  const given = { config, keys: [signer()], trust: fleetTrust(now), program: 'patchmirror/test', now }
  const back = (): Promise<unknown> => rollBackTo({ store: pair.bucket.client(), ...given }, 1)
  const bytes = pair.bucket.read(name)
  for (const left of [null, Buffer.from('half')]) {
    pair.bucket.tamper(name, left)
    await expect(back()).rejects.toThrow(
      `${name} of generation 1 is not on memory:// with its ${bytes?.length} bytes: it was`,
    )
    expect(isRollingBack(config.data.dir)).toBe(false)
  }
})
