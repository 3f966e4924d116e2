import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { sha256Hex } from '../../../../src/base/digest.ts'
import { toIso } from '../../../../src/base/time.ts'
import { findNewest } from '../../../../src/features/fleet/generations/chain.ts'
import { collectGarbage } from '../../../../src/features/fleet/generations/collect.ts'
import { downloadBundle } from '../../../../src/features/fleet/generations/follow/bundles.ts'
import { openGeneration } from '../../../../src/features/fleet/generations/format/envelope.ts'
import { bundleKey, generationKey } from '../../../../src/features/fleet/generations/format/object-names.ts'
import { storeDecided } from '../../../../src/features/fleet/generations/uploads.ts'
import { createMemoryBucket } from '../../../support/fleet/memory-store.ts'
import { folder, signer } from '../../bundles/air-gap.ts'
import { keyPair, trust } from '../../bundles/fixtures.ts'
import { fleetTrust, nodeConfig } from './nodes.ts'
import { type Pair, HOUR, START, createPair, forge } from './pair.ts'

const ORPHAN = bundleKey('0a'.repeat(32))
const OTHER = bundleKey('0b'.repeat(32))

test('a leader that finds a number taken by something large reads none of it', async () => {
  const pair = createPair()
  await pair.publish()
  pair.bucket.tamper(generationKey(2), Buffer.alloc(1 << 20))
  await expect(pair.publish()).rejects.toThrow('more than')
  const store = pair.bucket.client()
  expect(await storeDecided(store, generationKey(2), Buffer.from('own'))).toBe(false)
})

test('a store that has every object is not searched without end', async () => {
  const pair = createPair()
  await pair.publish()
  const info = { size: 4, etag: 'x', modifiedAt: START }
  const store = {
    ...pair.bucket.client(),
    head: (key: string) => Promise.resolve({ key, ...info }),
  }
  expect(await findNewest(store, 1)).toBeLessThan(2 ** 53)
})

describe('a follower', () => {
  test.each<[string, string, (pair: Pair) => unknown]>([
    [
      'of an unknown key',
      'untrusted',
      (pair) => {
        forge(pair, 2, {}, keyPair(folder(), 'other'))
      },
    ],
    [
      'with a changed payload',
      'untrusted',
      ({ bucket }) => {
        const text = String(bucket.read(generationKey(2))).replace('\\"epoch\\":1', '\\"epoch\\":9')
        bucket.tamper(generationKey(2), Buffer.from(text))
      },
    ],
    [
      'that is no JSON',
      'malformed',
      ({ bucket }) => {
        bucket.tamper(generationKey(2), Buffer.from('no'))
      },
    ],
    [
      'of more bytes than any has',
      'malformed',
      ({ bucket }) => {
        bucket.tamper(generationKey(2), Buffer.alloc(300_000, ' '))
      },
    ],
    [
      'that was written otherwise after signing',
      'malformed',
      ({ bucket }) => {
        const bytes = bucket.read(generationKey(2)) ?? Buffer.alloc(0)
        bucket.tamper(generationKey(2), Buffer.concat([bytes, Buffer.from(' ')]))
      },
    ],
    [
      'whose signature has other unused bits',
      'malformed',
      ({ bucket }) => {
        const text = String(bucket.read(generationKey(2)))
        const other = text.replace(/[AQgw](?===")/, (last) => ({ A: 'B', Q: 'R', g: 'h', w: 'x' })[last] ?? '')
        bucket.tamper(generationKey(2), Buffer.from(other))
      },
    ],
    [
      'of another past',
      'fork',
      (pair) => {
        forge(pair, 2, { previous: 'ab'.repeat(32) })
      },
    ],
    [
      'of a lower epoch',
      'epoch',
      (pair) => {
        forge(pair, 2, { epoch: 0 })
      },
    ],
    [
      'of another fleet',
      'fleet',
      (pair) => {
        forge(pair, 2, { fleet: 'ab'.repeat(16) })
      },
    ],
    [
      'to be served in ten years',
      'malformed',
      (pair) => {
        forge(pair, 2, { activateAt: toIso(START + 10 * 365 * 24 * HOUR) })
      },
    ],
    [
      'that expired',
      'expired',
      (pair) => {
        pair.now += 91 * 24 * HOUR
      },
    ],
    [
      'of the future',
      'future',
      (pair) => {
        pair.now -= 48 * HOUR
      },
    ],
  ])('serves what it has when it meets a generation %s', async (_, reason, spoil) => {
    const pair = createPair()
    await pair.publish()
    expect(await pair.follow()).toBeNull()
    await pair.publish()
    spoil(pair)
    await pair.follow().catch(() => null)
    expect((await pair.follower.look()).refusal?.reason).toBe(reason)
    expect(pair.reader.version).toBe(1)
  })

  test.each([1, 2])('does not begin with generation %i of another fleet', async (number) => {
    const pair = createPair()
    for (let made = 0; made < number; made++) await pair.publish()
    forge(pair, number, { fleet: 'ab'.repeat(16) })
    expect((await pair.follower.look()).refusal?.reason).toBe('fleet')
    expect(pair.reader.version).toBe(0)
  })

  test('does not go on after a restart with a generation of another fleet', async () => {
    const pair = createPair()
    await pair.publish()
    expect(await pair.follow()).toBeNull()
    await pair.publish()
    forge(pair, 2, { fleet: 'ab'.repeat(16) })
    const restarted = pair.restart()
    expect((await restarted.look()).refusal?.reason).toBe('fleet')
  })

  test.each([['{"generation":99}'], ['{"generation":1}'], ['no'], [null]])(
    'finds the newest generation whatever the hint says: %s',
    async (hint) => {
      const pair = createPair()
      for (let i = 0; i < 5; i++) await pair.publish()
      pair.bucket.tamper('head.json', hint === null ? null : Buffer.from(hint))
      expect(await pair.follow()).toBeNull()
      expect(pair.reader.version).toBe(5)
    },
  )

  test('asks the store once in each look while nothing is new', async () => {
    const pair = createPair()
    await pair.publish()
    await pair.follow()
    const before = Object.values(pair.bucket.calls).reduce((sum, calls) => sum + calls)
    for (let i = 0; i < 5; i++) await pair.follow()
    expect(Object.values(pair.bucket.calls).reduce((sum, calls) => sum + calls) - before).toBe(5)
  })
})

test('a publisher whose clock is ahead delays its readers by no more than it waits itself', async () => {
  const pair = createPair()
  await pair.publish()
  expect(await pair.follow()).toBeNull()
  pair.now += 20 * HOUR
  await pair.publish()
  pair.now -= 20 * HOUR
  const { newest } = await pair.follower.look()
  if (newest === null) throw new Error('no generation')
  const { activateAt, publishedAt } = newest.generation
  const { at } = await pair.follower.prepare(newest)
  expect(at).toBe(pair.now + Date.parse(activateAt) - Date.parse(publishedAt))
})

test('a revoked key signs no generation, and a signature cannot be removed', async () => {
  const pair = createPair()
  await pair.publish()
  const name = generationKey(1)
  const bytes = pair.bucket.read(name) ?? Buffer.alloc(0)
  const revoked = trust([signer()], { revoked: new Set([signer().id]) })
  expect(() => openGeneration(bytes, revoked, name)).toThrow('revoked')
  const { payload } = JSON.parse(String(bytes)) as { payload: string }
  const bare = Buffer.from(`${JSON.stringify({ payload, signatures: {} })}\n`)
  expect(() => openGeneration(bare, fleetTrust(), name)).toThrow('not signed')
})

test('a download that broke off is continued, and a damaged one fetched again', async () => {
  const dir = folder()
  const content = Buffer.from('bundle '.repeat(1000))
  const sha256 = sha256Hex(content)
  const named = { key: bundleKey(sha256), sha256, size: content.length }
  const bucket = createMemoryBucket()
  bucket.tamper(named.key, content)
  const half = bucket.client(({ count }) => (count === 1 ? 'half' : undefined))
  await expect(downloadBundle(half, dir, named)).rejects.toThrow('broke off')
  const path = await downloadBundle(half, dir, named)
  expect(readFileSync(path)).toEqual(content)
  writeFileSync(path, 'changed since')
  expect(readFileSync(await downloadBundle(half, dir, named))).toEqual(content)
  bucket.tamper(named.key, Buffer.alloc(content.length))
  writeFileSync(path, 'changed since')
  await expect(downloadBundle(half, dir, named)).rejects.toThrow('SHA-256')
  expect(existsSync(join(dir, 'fleet', `${sha256}.zip.part`))).toBe(false)
  bucket.tamper(named.key, null)
  await expect(downloadBundle(half, dir, named)).rejects.toThrow(
    /is missing on .+ the leader then publishes another one$/,
  )
})

test('garbage is planned in one run and deleted in a later one, after its grace and a generation; named objects stay', async () => {
  const pair = createPair()
  for (let i = 0; i < 2; i++) await pair.publish()
  pair.bucket.tamper(ORPHAN, Buffer.from('of a crashed publication'))
  const config = nodeConfig('/nowhere')
  const collect = (dryRun = false) =>
    collectGarbage({
      store: pair.bucket.client(),
      config,
      trust: fleetTrust(() => pair.now),
      now: () => pair.now,
      dryRun,
    })
  const names = async (): Promise<string[][]> => {
    const { deleted, planned } = await collect()
    return [deleted.map(({ key }) => key), planned.map(({ key }) => key)]
  }
  pair.bucket.tamper('bundles/not of the fleet', Buffer.from('left there by an operator'))
  expect(await names()).toEqual([[], []])
  pair.now += 25 * HOUR
  expect(await names()).toEqual([[], []]) // a publication that is suspended could still name it
  await pair.publish()
  expect((await collect(true)).planned).toHaveLength(1)
  expect(pair.bucket.keys().filter((key) => key.startsWith('gc/'))).toEqual([])
  expect(await names()).toEqual([[], [ORPHAN]])
  expect(await names()).toEqual([[], [ORPHAN]])
  pair.now += 2 * HOUR
  pair.bucket.tamper(OTHER, Buffer.from('young'))
  expect(await names()).toEqual([[ORPHAN], []])
  const ended = 'readers/' + 'a'.repeat(32) + '.json'
  const running = 'readers/' + 'b'.repeat(32) + '.json'
  pair.bucket.tamper(ended, Buffer.from('{}'))
  pair.now += 20 * 24 * HOUR
  await pair.publish()
  pair.now += 25 * HOUR
  pair.bucket.tamper(running, Buffer.from('{}'))
  const before = pair.bucket.snapshot()
  const [, planned = []] = await names()
  expect(planned).toEqual(expect.arrayContaining([OTHER, ended]))
  expect(planned).not.toContain(running)
  pair.now += 2 * HOUR
  const { deleted } = await collect()
  expect(deleted.map(({ key }) => key).toSorted()).toEqual(planned.toSorted())
  expect(await pair.follow()).toBeNull()
  pair.bucket.restore(before)
  pair.bucket.tamper(generationKey(3), null)
  await expect(collect()).rejects.toThrow('nothing is deleted')
})

test('a clock that is years ahead collects nothing that a generation of the last days names', async () => {
  const pair = createPair()
  for (let i = 0; i < 3; i++) {
    await pair.publish()
    pair.now += HOUR
  }
  const keys = pair.bucket.keys()
  for (const hours of [0, 2]) {
    const now = (): number => pair.now + (1000 * 24 + hours) * HOUR
    const { deleted, planned } = await collectGarbage({
      store: pair.bucket.client(),
      config: nodeConfig('/nowhere'),
      trust: fleetTrust(() => pair.now),
      now,
      dryRun: false,
    })
    expect([deleted, planned]).toEqual([[], []])
  }
  expect(pair.bucket.keys()).toEqual(keys)
})

test('a generation that is dated in the future is ended by its publisher once the clocks agree, and others follow', async () => {
  const pair = createPair()
  await pair.publish()
  pair.now += 365 * 24 * HOUR
  await pair.publish()
  pair.now -= 365 * 24 * HOUR
  await expect(pair.follow()).rejects.toThrow('which is in the future by the clock here')
  expect(await pair.look()).toBe('ahead')
  expect(await pair.confirm()).toBe('published')
  expect([await pair.follow(), await pair.look()]).toEqual([null, null])
  expect(pair.reader.version).toBe(2)
  expect(pair.bucket.keys().filter((key) => key.startsWith('probe'))).toEqual([])
})

test.each([
  ['dated in the future', 365, -365, 'ahead'],
  ['expired', 0, 91, 'expired'],
])(
  'a generation that is %s is taken and ended by another mirror that may lead, its publisher gone',
  async (_, first, then, why) => {
    const pair = createPair()
    await pair.publish()
    pair.now += first * 24 * HOUR
    await pair.publish()
    pair.now += then * 24 * HOUR
    await expect(pair.follow()).rejects.toThrow('by the clock here')
    expect(await pair.beginAgain()).toBe(why)
    await pair.publish(2)
    expect([await pair.follow(), await pair.look()]).toEqual([null, null])
    expect(pair.reader.version).toBe(3)
  },
)
