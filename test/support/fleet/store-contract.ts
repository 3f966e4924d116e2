import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { sha256Hex } from '../../../src/base/digest.ts'
import { type ObjectInfo, type ObjectStore, readObject } from '../../../src/features/fleet/objects/object-store.ts'

/** Opens an empty place of a store; called again with the same place, another client of the same content. */
export type OpenPlace = (place: string) => Promise<ObjectStore | { readonly missing: string }>

type Skip = (why: string) => never

/** Sizes of the large object that the contract writes: more than one piece of every driver. */
interface ContractOptions {
  /** Bytes. */
  readonly largeBytes?: number
}

async function listed(store: ObjectStore, prefix: string): Promise<ObjectInfo[]> {
  const found: ObjectInfo[] = []
  for await (const info of store.list(prefix)) found.push(info)
  return found.sort((a, b) => (a.key < b.key ? -1 : 1))
}

const text = (value: string): Buffer => Buffer.from(value)

async function read(store: ObjectStore, key: string): Promise<string | null> {
  return (await readObject(store, key, 1 << 20))?.bytes.toString() ?? null
}

/** A file as a body. */
function fileOf(bytes: Buffer) {
  const folder = mkdtempSync(join(tmpdir(), 'patchmirror-object-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'body')
  writeFileSync(file, bytes)
  return { file, size: bytes.length, sha256: sha256Hex(bytes) }
}

/** Declares the tests that every driver of an object store passes. */
export function testContract(openPlace: OpenPlace, { largeBytes = 3 << 20 }: ContractOptions = {}) {
  const openOne = async (place: string, skip: Skip): Promise<ObjectStore> => {
    const store = await openPlace(place)
    if ('missing' in store) return skip(store.missing)
    onTestFinished(() => store.close())
    return store
  }
  const open = async ({ skip }: { skip: Skip }): Promise<[ObjectStore, ObjectStore]> => {
    const place = `t${randomBytes(6).toString('hex')}`
    return [await openOne(place, skip), await openOne(place, skip)]
  }

  test('what one client wrote, another reads at once, with size, etag and time', async (context) => {
    const [one, two] = await open(context)
    expect(await two.get('a/b/c.json')).toBeNull()
    expect(await two.head('a/b/c.json')).toBeNull()
    const written = await one.put('a/b/c.json', text('first'))
    const found = await two.head('a/b/c.json')
    expect(found).toMatchObject({ key: 'a/b/c.json', size: 5, etag: written.etag })
    expect(Math.abs((found?.modifiedAt ?? 0) - Date.now())).toBeLessThan(600_000)
    expect(await read(two, 'a/b/c.json')).toBe('first')
    const again = await two.put('a/b/c.json', text('second'))
    expect(again.etag).not.toBe(written.etag)
    expect(await read(one, 'a/b/c.json')).toBe('second')
    expect((await one.get('a/b/c.json'))?.info.etag).toBe(again.etag)
  })

  test('an object of no bytes is an object', async (context) => {
    const [one, two] = await open(context)
    expect((await one.put('empty', Buffer.alloc(0))).size).toBe(0)
    expect(await read(two, 'empty')).toBe('')
    expect(await one.putIfAbsent('empty', text('x'))).toBeNull()
  })

  test('putIfAbsent writes once', async (context) => {
    const [one, two] = await open(context)
    const written = await one.putIfAbsent('gen/1', text('one'))
    expect(written?.size).toBe(3)
    expect(await two.putIfAbsent('gen/1', text('two'))).toBeNull()
    expect(await one.putIfAbsent('gen/1', text('one'))).toBeNull()
    expect(await read(two, 'gen/1')).toBe('one')
  })

  test('of clients that put an absent object at the same time, one succeeds', async (context) => {
    const pair = await open(context)
    const bodies = Array.from({ length: 16 }, (_, n) => text(`content ${n}`))
    const results = await Promise.all(bodies.map((body, n) => (pair[n % 2] as ObjectStore).putIfAbsent('gen/1', body)))
    const winners = bodies.filter((_, n) => results[n] !== null)
    expect(winners.length).toBe(1)
    expect(await read(pair[0], 'gen/1')).toBe(winners[0]?.toString())
  })

  test('putIfMatch replaces the content that the etag names, and no other', async (context) => {
    const [one, two] = await open(context)
    expect(await one.putIfMatch('lease.json', text('x'), '"no such etag"')).toBeNull()
    expect(await one.head('lease.json')).toBeNull()
    const first = await one.put('lease.json', text('1'))
    const second = await two.putIfMatch('lease.json', text('2'), first.etag)
    expect(second).not.toBeNull()
    expect(await one.putIfMatch('lease.json', text('3'), first.etag)).toBeNull()
    expect(await read(one, 'lease.json')).toBe('2')
    expect(await one.putIfMatch('lease.json', text('4'), second?.etag ?? '')).not.toBeNull()
    await one.delete('lease.json')
    expect(await one.putIfMatch('lease.json', text('5'), second?.etag ?? '')).toBeNull()
  })

  test('of clients that replace the same content at the same time, one succeeds', async (context) => {
    const pair = await open(context)
    let { etag } = await pair[0].put('lease.json', text('0'))
    for (let round = 1; round <= 3; round++) {
      const results = await Promise.all(
        Array.from({ length: 16 }, (_, n) =>
          (pair[n % 2] as ObjectStore).putIfMatch('lease.json', text(`${round} by ${n}`), etag),
        ),
      )
      const winner = results.findIndex((result) => result !== null)
      expect(results.filter((result) => result !== null).length).toBe(1)
      expect(await read(pair[0], 'lease.json')).toBe(`${round} by ${winner}`)
      etag = results[winner]?.etag ?? ''
    }
  })

  test('a large object is written from a file, once, and read from any byte on', async (context) => {
    const [one, two] = await open(context)
    const bytes = randomBytes(largeBytes)
    const body = fileOf(bytes)
    const written = await one.putIfAbsent('bundles/x.zip', body)
    expect(written?.size).toBe(largeBytes)
    expect(await two.putIfAbsent('bundles/x.zip', body)).toBeNull()
    const info = await two.head('bundles/x.zip')
    expect(info).toMatchObject({ size: largeBytes, etag: written?.etag })
    const from = largeBytes - 100_001
    for (const start of [0, from]) {
      const found = await two.get('bundles/x.zip', { from: start })
      if (found === null) throw new Error('no object')
      expect(found.info).toMatchObject({ size: largeBytes, etag: written?.etag })
      expect((await buffer(found.body)).equals(bytes.subarray(start))).toBe(true)
    }
    const replaced = await two.putIfMatch('bundles/x.zip', body, written?.etag ?? '')
    expect(replaced?.size).toBe(largeBytes)
  })

  test('reading from the end of an object on gives no bytes', async (context) => {
    const [one, two] = await open(context)
    await one.put('k', text('12345'))
    for (const from of [3, 5, 9]) {
      const found = await two.get('k', { from })
      expect(found?.info.size).toBe(5)
      expect(found && (await buffer(found.body)).toString()).toBe('12345'.slice(from))
    }
    expect(await two.get('missing', { from: 5 })).toBeNull()
  })

  test('an object with more bytes than expected is refused', async (context) => {
    const [one] = await open(context)
    await one.put('k', text('12345'))
    await expect(one.get('k', { maxBytes: 4 })).rejects.toMatchObject({ outcome: 'refused' })
    await expect(one.get('k', { from: 1, maxBytes: 4 })).resolves.not.toBeNull()
  })

  test('a body that is left alone is no problem for later calls', async (context) => {
    const [one] = await open(context)
    await one.put('bundles/x', randomBytes(2 << 20))
    for (let n = 0; n < 4; n++) (await one.get('bundles/x'))?.body.destroy()
    expect((await one.head('bundles/x'))?.size).toBe(2 << 20)
  })

  test('a file that is not the one described is refused, and nothing is written', async (context) => {
    const [one] = await open(context)
    const body = { ...fileOf(text('content')), sha256: sha256Hex('another') }
    await expect(one.putIfAbsent('bundles/y', body)).rejects.toMatchObject({ code: 'fleet' })
    expect(await one.head('bundles/y')).toBeNull()
  })

  test('a list has the objects below a prefix, as head describes them', async (context) => {
    const [one, two] = await open(context)
    expect(await listed(two, '')).toEqual([])
    const keys = ['gen/001.json', 'gen/002.json', 'gen/010.json', 'generic', 'head.json']
    for (const key of keys) await one.put(key, text(key))
    expect((await listed(two, '')).map(({ key }) => key)).toEqual(keys)
    expect((await listed(two, 'gen/')).map(({ key }) => key)).toEqual(keys.slice(0, 3))
    expect((await listed(two, 'gen/00')).map(({ key }) => key)).toEqual(keys.slice(0, 2))
    expect(await listed(two, 'other/')).toEqual([])
    const [first] = await listed(two, 'gen/001')
    const head = await two.head('gen/001.json')
    expect(first).toMatchObject({ key: head?.key, size: head?.size, etag: head?.etag })
  })

  test('a deleted object is gone, and deleting it again is no error', async (context) => {
    const [one, two] = await open(context)
    await one.put('bundles/a', text('a'))
    await two.delete('bundles/a')
    expect(await one.head('bundles/a')).toBeNull()
    expect(await listed(one, 'bundles/')).toEqual([])
    await two.delete('bundles/a')
    expect(await one.putIfAbsent('bundles/a', text('b'))).not.toBeNull()
  })

  test.for(['../out', 'a/../../out', '/etc/passwd', 'a//b', 'a/', '.lock', 'a b', 'ä', 'a\0b', ''])(
    'the key %j is refused',
    async (key, context) => {
      const [one] = await open(context)
      await expect(one.put(key, text('x'))).rejects.toMatchObject({ outcome: 'refused' })
      await expect(one.get(key)).rejects.toMatchObject({ code: 'fleet' })
      await expect(one.delete(key)).rejects.toMatchObject({ code: 'fleet' })
    },
  )
}
