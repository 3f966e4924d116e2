import { afterEach, beforeAll, expect } from 'vitest'
import { longTest, test } from '../../../support/tables.ts'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { createStoreCounters } from '../../../../src/features/fleet/objects/counted-store.ts'
import { createFolderStore } from '../../../../src/features/fleet/objects/folder-store.ts'
import { FleetError, type ObjectStore } from '../../../../src/features/fleet/objects/object-store.ts'
import { probeStore } from '../../../../src/features/fleet/objects/probe.ts'
import { createS3Store } from '../../../../src/features/fleet/objects/s3-store.ts'
import { createMemoryBucket } from '../../../support/fleet/memory-store.ts'
import { type S3Server, startS3Server } from '../../../support/fleet/s3-server.ts'

const closing: (() => unknown)[] = []

beforeAll(() => {
  const keys = { AWS_ACCESS_KEY_ID: 'AKIATEST', AWS_SECRET_ACCESS_KEY: 'secret' }
  Object.assign(process.env, keys)
})
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

async function openS3(options: Parameters<typeof startS3Server>[0]): Promise<{ server: S3Server; store: ObjectStore }> {
  const server = await startS3Server(options)
  const settings = { endpoint: server.endpoint, region: 'us-east-1', pathStyle: true, caFile: null }
  const store = await createS3Store('s3://bucket', settings, {
    counters: createStoreCounters(),
    pauseMs: 5,
  })
  closing.push(
    () => store.close(),
    () => server.close(),
  )
  return { server, store }
}

const failedOf = ({ checks }: Awaited<ReturnType<typeof probeStore>>) =>
  checks.filter(({ state }) => state === 'failed').map(({ name }) => name)

longTest('a folder, a store in memory and one with the protocol of S3 pass, and nothing remains there', async () => {
  const path = mkdtempSync(join(tmpdir(), 'patchmirror-probe-'))
  closing.push(() => rmSync(path, { recursive: true, force: true }))
  const bucket = createMemoryBucket()
  const { server, store } = await openS3({})
  for (const one of [createFolderStore(pathToFileURL(path).href), bucket.client(), store]) {
    const report = await probeStore(one, { rounds: 1 })
    expect(failedOf(report)).toEqual([])
    expect(report).toMatchObject({ store: true, lease: true })
    expect(report.checks.find(({ name }) => name === 'put if absent')?.found).toMatch(/^1 of 32 won/)
    const left: string[] = []
    for await (const { key } of one.list('')) left.push(key)
    expect(left).toEqual([])
    one.close()
  }
  expect(server.objects.size).toBe(0)
})

longTest('a store that checks a condition before it writes is refused as a keeper of the lease', async () => {
  const { store } = await openS3({ checksThenActs: true })
  const report = await probeStore(store, { rounds: 2 })
  expect(failedOf(report)).toEqual(['put if absent', 'put if match'])
  expect(report).toMatchObject({ store: true, lease: false })
  expect(report.checks[0]?.found).toMatch(/^\d+ of 32 won, in 2 rounds/)
})

test('a store that ignores conditions is refused as a keeper of the lease', async () => {
  const { store } = await openS3({ ignoresConditions: true })
  const report = await probeStore(store, { rounds: 1, width: 8 })
  expect(failedOf(report)).toEqual(['put if absent', 'put if match', 'stale match refused'])
  expect(report.lease).toBe(false)
})

longTest('stale reads and ranges that are ignored are found', async () => {
  const stale = createMemoryBucket().client(({ verb }) => (verb === 'get' ? 'stale' : undefined))
  const report = await probeStore(stale, { rounds: 1, width: 4 })
  expect(failedOf(report)).toContain('read after write')
  expect(report).toMatchObject({ store: false, lease: false })
  const { server, store } = await openS3({})
  server.script = ({ method }) => (method === 'GET' ? 'whole' : undefined)
  expect(failedOf(await probeStore(store, { rounds: 1, width: 4 }))).toEqual(['ranges'])
})

test('answers that are lost in a race are no second winner, and a store that cannot be written is an error', async () => {
  const bucket = createMemoryBucket()
  const losing = bucket.client(({ verb, count }) =>
    (verb === 'putIfAbsent' || verb === 'putIfMatch') && count % 3 === 0 ? 'lost-answer' : undefined,
  )
  const races = (await probeStore(losing, { rounds: 2 })).checks.slice(0, 2)
  expect(races.map(({ state }) => state)).toEqual(['ok', 'ok'])
  const down = bucket.client(() => 'down')
  await expect(probeStore(down)).rejects.toBeInstanceOf(FleetError)
})

test('the clock of a store that is off is reported', async () => {
  const bucket = createMemoryBucket({ now: () => Date.now() + 60_500 })
  const { checks } = await probeStore(bucket.client(), { rounds: 1, width: 2 })
  expect(checks.at(-1)).toMatchObject({
    state: 'warn',
    found: expect.stringMatching(/^60\.\d s ahead of this machine$/) as string,
  })
})
