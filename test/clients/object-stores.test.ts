import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { sha256Hex } from '../../src/base/digest.ts'
import { probeStore } from '../../src/features/fleet/objects/probe.ts'
import { tell } from './toolbox.ts'
import { createStoreCounters } from '../../src/features/fleet/objects/counted-store.ts'
import type { ObjectStore } from '../../src/features/fleet/objects/object-store.ts'
import { createS3Store } from '../../src/features/fleet/objects/s3-store.ts'
import { walkProtocol } from '../features/fleet/generations/walk.ts'
import { testContract } from '../support/fleet/store-contract.ts'
import { REAL_STORES, type Started, useCredentials } from './object-stores.ts'

const SETTINGS = { region: 'us-east-1', pathStyle: true, caFile: null }
/** The smallest part of an upload that stores accept, bytes. */
const PART = 5 << 20

/* The contract of object stores, with stores that other people write and run. */

describe.each(REAL_STORES)('%s', (_, start) => {
  let started: Started = { missing: 'it was not started' }

  beforeAll(async () => {
    useCredentials()
    started = await start()
  })
  afterAll(async () => {
    if ('stop' in started) await started.stop()
  })

  test('carries a fleet: publish, follow, take over, roll back, collect', async ({ skip }) => {
    if ('missing' in started) return skip(started.missing)
    const settings = { ...SETTINGS, endpoint: started.endpoint }
    const url = `${started.bucket}/walk`
    const counters = createStoreCounters()
    const stores = await Promise.all([1, 2].map(() => createS3Store(url, settings, { counters })))
    const [store, other] = stores as [ObjectStore, ObjectStore]
    await walkProtocol(store, other).finally(() => {
      for (const one of stores) one.close()
    })
  })

  test('passes the probe, with 32 conditional writes at once', async ({ skip }) => {
    if ('missing' in started) return skip(started.missing)
    const settings = { ...SETTINGS, endpoint: started.endpoint }
    const counters = createStoreCounters()
    const sizes = { singleBytes: PART, partBytes: PART }
    const store = await createS3Store(`${started.bucket}/probe`, settings, { counters, ...sizes })
    const file = join(mkdtempSync(join(tmpdir(), 'patchmirror-probe-')), 'large')
    writeFileSync(file, Buffer.alloc(PART + 1))
    const large = { file, size: PART + 1, sha256: sha256Hex(readFileSync(file)) }
    const start = performance.now()
    const report = await probeStore(store, { large }).finally(() => {
      store.close()
      rmSync(dirname(file), { recursive: true })
    })
    const lines = report.checks.map(({ name, found, state }) => `${name}: ${found} (${state})`)
    tell(`${lines.join('\n')}\n${Math.round(performance.now() - start)} ms`)
    expect(report.checks.filter(({ state }) => state === 'failed')).toEqual([])
    expect(report).toMatchObject({ store: true, lease: true })
  })

  testContract(
    async (place) => {
      if ('missing' in started) return started
      const { bucket, endpoint } = started
      const settings = { ...SETTINGS, endpoint }
      return createS3Store(`${bucket}/${place}`, settings, {
        counters: createStoreCounters(),
        singleBytes: 8 << 20,
      })
    },
    { largeBytes: 40_000_001 },
  )
})
