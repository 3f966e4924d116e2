import { readdirSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import openDatabase from 'better-sqlite3'
import { expect, onTestFinished, test } from 'vitest'
import { type FaultScript, createMemoryBucket } from '../../../support/fleet/memory-store.ts'
import { createBench } from '../../../support/mirror.ts'
import type { Generation } from '../../../../src/features/fleet/generations/format/generation.ts'
import { fleetFolder } from '../../../../src/features/fleet/generations/position.ts'
import { readObject } from '../../../../src/features/fleet/objects/object-store.ts'
import { createChangeReader } from '../../../../src/store/changes/log.ts'
import { databasePath } from '../../../../src/store/database/open.ts'
import { change, createNode, publish, stateOf } from './nodes.ts'

/** A leader with so many records that its deltas are larger than what a thin one is made for, and a bucket that notes reads. */
async function fleet() {
  const bench = await createBench({ sandbox: { records: 4000, large: 0, service: false } })
  onTestFinished(() => bench.close())
  await bench.run('osv')
  const bucket = createMemoryBucket()
  const read: string[] = []
  const note: FaultScript = ({ verb, key }) => {
    if (verb === 'get' && key.startsWith('bundles/')) read.push(key)
    return undefined
  }
  const published = async (): Promise<Generation> => {
    const { generation } = await publish(bucket.client(), bench.dir)
    if (generation === null) throw new Error('nothing was published')
    return generation.generation
  }
  return { bench, bucket, read, published, store: bucket.client(note) }
}

test('a follower of the generation before takes the thin delta, any other one the whole delta, to the same state', async () => {
  const { bench, read, published, store } = await fleet()
  expect((await published()).thin).toBeNull()
  const each = createNode(store)
  const late = createNode(store)
  for (const node of [each, late]) expect(await node.catchUp()).toBe(1)
  for (const number of [2, 3]) {
    await change(bench, 5)
    const { thin, delta } = await published()
    expect(thin?.size).toBeLessThan((delta?.size ?? 0) / 4)
    read.length = 0
    expect(await each.catchUp()).toBe(number)
    expect(read).toEqual([thin?.key])
    expect(stateOf(each.dir)).toEqual(stateOf(bench.dir))
    if (number === 2) continue
    read.length = 0
    expect(await late.catchUp()).toBe(3)
    expect(read).toEqual([delta?.key])
    expect(stateOf(late.dir)).toEqual(stateOf(bench.dir))
  }
  for (const { dir } of [each, late])
    expect(readdirSync(fleetFolder(dir)).filter((name) => /\.(?:zip|thin)/.test(name))).toEqual([])
})

/** A follower of the first generation, and the second one, whose thin delta it has not read. */
async function beforeTheSecond() {
  const all = await fleet()
  await all.published()
  const node = createNode(all.store)
  await node.catchUp()
  await change(all.bench, 5)
  const { thin, delta } = await all.published()
  all.read.length = 0
  return { ...all, node, key: thin?.key ?? '', keys: [thin?.key, delta?.key] }
}

test.each([
  ['is missing', () => null],
  ['is another one', (bytes: Buffer) => Buffer.from(bytes.toReversed())],
  ['is cut', (bytes: Buffer) => bytes.subarray(0, -9)],
])('a thin delta that %s costs a follower its bytes alone: it takes the whole one', async (_, damage) => {
  const { bench, bucket, read, node, key, keys } = await beforeTheSecond()
  const client = bucket.client()
  const damaged = damage((await readObject(client, key, 2 ** 20))?.bytes ?? Buffer.alloc(0))
  await (damaged === null ? client.delete(key) : client.put(key, damaged))
  expect(await node.catchUp()).toBe(2)
  expect(read).toEqual(keys)
  expect(stateOf(node.dir)).toEqual(stateOf(bench.dir))
})

test('a follower whose earlier versions of the changed records are damaged takes the whole delta, which replaces them', async () => {
  const { bench, read, node, keys } = await beforeTheSecond()
  const above = openDatabase(databasePath(bench.dir), { readonly: true })
  const changed = createChangeReader(above)
  const names = changed.listNames(changed.lastLogged(), 100).map(({ name }) => name)
  above.close()
  const db = openDatabase(databasePath(node.dir))
  const damage = db.prepare(
    'UPDATE osv_body SET bytes = ? WHERE rowid IN (SELECT body FROM osv_record WHERE id IN (SELECT value FROM json_each(?)))',
  )
  expect(damage.run(gzipSync('{}'), JSON.stringify(names)).changes).toBe(5)
  db.close()
  expect(await node.catchUp()).toBe(2)
  expect(read).toEqual(keys)
  expect(stateOf(node.dir)).toEqual(stateOf(bench.dir))
})
