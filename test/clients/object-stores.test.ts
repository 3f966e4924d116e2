import { afterAll, beforeAll, describe } from 'vitest'
import { createStoreCounters } from '../../src/fleet/objects/counted-store.ts'
import { createS3Store } from '../../src/fleet/objects/s3-store.ts'
import { testContract } from '../support/fleet/store-contract.ts'
import { REAL_STORES, type Started, useCredentials } from './object-stores.ts'

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

  testContract(
    async (place) => {
      if ('missing' in started) return started
      const { bucket, endpoint } = started
      const settings = { endpoint, region: 'us-east-1', pathStyle: true, caFile: null }
      return createS3Store(`${bucket}/${place}`, settings, {
        counters: createStoreCounters(),
        singleBytes: 8 << 20,
      })
    },
    { largeBytes: 40_000_001 },
  )
})
