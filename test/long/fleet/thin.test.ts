import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { sha256Hex } from '../../../src/base/digest.ts'
import { readSigningKey } from '../../../src/features/bundles/format/keys.ts'
import { openGeneration, sealGeneration } from '../../../src/features/fleet/generations/format/envelope.ts'
import type { Generation } from '../../../src/features/fleet/generations/format/generation.ts'
import { bundleKey, generationKey } from '../../../src/features/fleet/generations/format/object-names.ts'
import type { ReaderReport } from '../../../src/features/fleet/readers.ts'
import { openFleet, untilFleet } from '../../support/fleet/daemons.ts'
import { trust as trustIn } from '../../features/bundles/fixtures.ts'

test('a leader publishes thin bundles until a mirror says that it needs whole ones, as one does that cannot use them', async () => {
  const { world, env, store } = await openFleet(30)
  const leader = await world.host(env('a', 'writer'))
  const keys = [readSigningKey(join(world.dir, 'key'))]
  const trust = trustIn(keys, { now: Date.now })
  for (const source of ['osv', 'feeds', 'catalog']) await leader.said(new RegExp(`${source} sync: complete`))
  const settled = await untilFleet(leader, ({ served, holdingBackSince }) => served > 0 && holdingBackSince === null)
  const newest = { generation: settled.served }
  const keyOf = (): string => generationKey(newest.generation)
  const read = (): Generation => openGeneration(readFileSync(join(store, keyOf())), trust, keyOf()).generation
  const change = async (): Promise<Generation> => {
    newest.generation += 1
    world.sandbox.feed.change(1)
    leader.agent.requestSync('osv', 'sync')
    await untilFleet(leader, ({ served }) => served >= newest.generation)
    return read()
  }
  const reports = (): ReaderReport[] =>
    readdirSync(join(store, 'readers')).map((name) => {
      return JSON.parse(readFileSync(join(store, 'readers', name), 'utf8')) as ReaderReport
    })
  const first = await change()
  expect(first.thin?.length).toBeGreaterThan(0)

  const [own] = reports()
  const other = { ...own, id: 'f'.repeat(32), name: 'other', address: null, deflater: null }
  writeFileSync(join(store, 'readers', `${other.id}.json`), JSON.stringify(other))
  expect((await change()).thin).toBe(undefined)
  writeFileSync(join(store, 'readers', `${other.id}.json`), JSON.stringify({ ...other, deflater: own?.deflater }))
  const last = await change()
  expect(last.thin).toHaveLength(1)

  await leader.close()
  const thin = last.thin ?? []
  const [named] = thin
  const bytes = readFileSync(join(store, named?.key ?? ''))
  bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 255
  const sha256 = sha256Hex(bytes)
  writeFileSync(join(store, bundleKey(sha256)), bytes)
  const forged = { ...last, thin: thin.map((one) => ({ ...one, key: bundleKey(sha256), sha256 })) }
  writeFileSync(join(store, keyOf()), sealGeneration(forged, keys).bytes)
  const reader = await world.serve(env('b', 'reader'))
  await untilFleet(reader, ({ failing }) => failing?.refused === 'thin')
  await expect.poll(() => reports().find(({ name }) => name === 'b')?.deflater).toBe(null)
})
