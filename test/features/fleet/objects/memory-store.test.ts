import { buffer } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { FleetError, readObject } from '../../../../src/features/fleet/objects/object-store.ts'
import { type StoreFault, createMemoryBucket } from '../../../support/fleet/memory-store.ts'

/** A bucket with the object `k` of two versions, and a client whose every call has this fault. */
async function faulty(fault: StoreFault) {
  const bucket = createMemoryBucket()
  const sound = bucket.client()
  await sound.put('k', Buffer.from('first'))
  const { etag } = await sound.put('k', Buffer.from('second'))
  return { bucket, etag, sound, client: bucket.client(() => fault) }
}

test.each(['lost-request', 'down', 'slow-down', 'conflict'] as const)(
  'a call with the fault %s has no effect',
  async (fault) => {
    const { bucket, client, etag } = await faulty(fault)
    const outcome = fault === 'lost-request' || fault === 'down' ? 'unknown' : 'refused'
    await expect(client.putIfAbsent('n', Buffer.from('x'))).rejects.toMatchObject({ outcome })
    await expect(client.putIfMatch('k', Buffer.from('x'), etag)).rejects.toMatchObject({ outcome })
    expect(bucket.keys()).toEqual(['k'])
    expect(bucket.read('k')?.toString()).toBe('second')
  },
)

test('a lost answer leaves the effect of the call', async () => {
  const { bucket, client, sound } = await faulty('lost-answer')
  await expect(client.putIfAbsent('n', Buffer.from('x'))).rejects.toMatchObject({
    code: 'fleet',
    outcome: 'unknown',
  })
  expect(bucket.read('n')?.toString()).toBe('x')
  expect(await sound.putIfAbsent('n', Buffer.from('y'))).toBeNull()
})

test('a stale read has the content before the last write, and a half one breaks off', async () => {
  const stale = (await faulty('stale')).client
  expect((await readObject(stale, 'k', 100))?.bytes.toString()).toBe('first')
  const half = await (await faulty('half')).client.get('k')
  if (half === null) throw new Error('no object')
  await expect(buffer(half.body)).rejects.toBeInstanceOf(FleetError)
})

test('a store restored from a snapshot has its former content, and a script sees each call', async () => {
  const bucket = createMemoryBucket()
  const seen: string[] = []
  const client = bucket.client(({ verb, key, count }) => void seen.push(`${count} ${verb} ${key}`))
  await client.put('a', Buffer.from('1'))
  const copy = bucket.snapshot()
  await client.put('a', Buffer.from('2'))
  await client.put('b', Buffer.from('2'))
  bucket.restore(copy)
  expect(bucket.keys()).toEqual(['a'])
  expect(bucket.read('a')?.toString()).toBe('1')
  expect(seen).toEqual(['1 put a', '2 put a', '3 put b'])
  expect(bucket.calls.put).toBe(3)
})
