import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createLeaseKeeper } from '../../../../src/features/fleet/lease/keeper.ts'
import { createLeaseProof } from '../../../../src/features/fleet/lease/proof.ts'
import type { ObjectStore } from '../../../../src/features/fleet/objects/object-store.ts'
import { type StoreVerb, createMemoryBucket, createMemoryStore } from '../../../support/fleet/memory-store.ts'

/** The same store, whose conditional writes check first and write in a later turn. */
function checkingFirst(store: ObjectStore): ObjectStore {
  return {
    ...store,
    async putIfAbsent(key, body) {
      const found = await store.head(key)
      await turn()
      return found === null ? store.put(key, body) : null
    },
    async putIfMatch(key, body, etag) {
      const found = await store.head(key)
      await turn()
      return found?.etag === etag ? store.put(key, body) : null
    },
  }
}

/** A keeper with a proof, on a clock that the test sets. */
function keeperOn(store: ObjectStore) {
  const time = { now: 0 }
  const clock = () => time.now
  const options = { store, owner: 'a', name: 'a', url: null, patienceMs: 0 }
  const keeper = createLeaseKeeper({
    ...options,
    seconds: () => 30,
    floor: () => 0,
    clock,
    now: Date.now,
    proof: createLeaseProof(store, clock),
  })
  return { keeper, time }
}

test('a store that checks a condition before it writes keeps no lease, and the failure says what to do', async () => {
  const { keeper } = keeperOn(checkingFirst(createMemoryStore()))
  await expect.poll(async () => (await keeper.step(true)).failure).toMatch(/32 of 32 won/)
  const { epoch, failure } = await keeper.step(true)
  expect(epoch).toBeNull()
  expect(failure).toMatch(/cannot decide which mirror leads .+fleet\.role: sole-writer/)
})

test('a store that obeys conditions is tried once, and the lease is taken then', async () => {
  const bucket = createMemoryBucket()
  const { keeper } = keeperOn(bucket.client())
  expect((await keeper.step(true)).epoch).toBeNull()
  await expect.poll(async () => (await keeper.step(true)).epoch).toBe(1)
  const { putIfAbsent } = bucket.calls
  await keeper.release()
  expect((await keeper.step(true)).epoch).toBe(2)
  expect(bucket.calls.putIfAbsent - putIfAbsent).toBeLessThanOrEqual(1)
})

test('a mirror that may not lead writes nothing, and a store that was down is tried again', async () => {
  const bucket = createMemoryBucket()
  let isDown = true
  const { keeper } = keeperOn(bucket.client(({ verb }) => (isDown && verb === 'put' ? 'down' : undefined)))
  await keeper.step(false)
  expect(bucket.calls.put).toBe(0)
  await expect.poll(async () => (await keeper.step(true)).failure).toMatch(/ECONNREFUSED/)
  isDown = false
  await expect.poll(async () => (await keeper.step(true)).epoch).toBe(1)
})

test('a store that failed is tried again after a while', async () => {
  let isWrong = true
  const sound = createMemoryStore()
  const wrong = checkingFirst(sound)
  const store: ObjectStore = {
    ...sound,
    putIfAbsent: (key, body) => (isWrong ? wrong : sound).putIfAbsent(key, body),
  }
  const { keeper, time } = keeperOn(store)
  await expect.poll(async () => (await keeper.step(true)).failure).toMatch(/cannot decide/)
  isWrong = false
  expect((await keeper.step(true)).failure).toMatch(/cannot decide/)
  time.now += 300_000
  await expect.poll(async () => (await keeper.step(true)).epoch).toBe(1)
})

test.each<[StoreVerb, number]>([
  ['put', 3],
  ['putIfAbsent', 1],
  ['putIfAbsent', 33],
  ['putIfMatch', 32],
  ['putIfMatch', 33],
  ['putIfMatch', 34],
  ['get', 1],
  ['head', 2],
  ['list', 1],
  ['delete', 1],
])('one lost answer, of %s number %i, is no finding about the store', async (verb, number) => {
  const bucket = createMemoryBucket()
  let calls = 0
  const { keeper } = keeperOn(
    bucket.client((call) => {
      if (call.verb === verb) calls++
      return call.verb === verb && calls === number ? 'lost-answer' : undefined
    }),
  )
  const failures: (string | null)[] = []
  await expect
    .poll(async () => {
      const { epoch, failure } = await keeper.step(true)
      failures.push(failure)
      return epoch
    })
    .toBe(1)
  expect(failures.filter((failure) => failure?.includes('cannot decide'))).toEqual([])
})

test('a store that does not answer while it is tried is named as that, and tried again at once', async () => {
  const bucket = createMemoryBucket()
  let isSilent = true
  const { keeper } = keeperOn(
    bucket.client(({ verb }) => (isSilent && verb === 'putIfMatch' ? 'lost-answer' : undefined)),
  )
  await expect
    .poll(async () => (await keeper.step(true)).failure)
    .toMatch(/did not answer while it was tried \(put if match: .+stale match refused: .+ for now/)
  isSilent = false
  await expect.poll(async () => (await keeper.step(true)).epoch).toBe(1)
})
