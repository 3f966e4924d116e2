import { expect, test } from 'vitest'
import { generationKey } from '../../../../src/features/fleet/generations/format/object-names.ts'
import { createPair, forge } from './pair.ts'

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
    for (let i = 0; i < 130; i++) expect(await pair.follow()).toBe(reason)
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
  for (let i = 0; i < 130; i++) {
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
  for (let i = 0; i < 59; i++) expect((await follower.look()).refusal).toBeNull()
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
