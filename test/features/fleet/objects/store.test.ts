import { describe } from 'vitest'
import { mkdirSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { ObjectStore } from '../../../../src/features/fleet/objects/object-store.ts'
import { openObjectStore } from '../../../../src/features/fleet/objects/open-store.ts'
import { type MemoryBucket, createMemoryBucket } from '../../../support/fleet/memory-store.ts'
import { type OpenPlace, testContract } from '../../../support/fleet/store-contract.ts'

const buckets = new Map<string, MemoryBucket>()
const folder = mkdtempSync(join(tmpdir(), 'patchmirror-objects-'))

function openMemory(place: string): Promise<ObjectStore> {
  const bucket = buckets.get(place) ?? createMemoryBucket()
  buckets.set(place, bucket)
  return Promise.resolve(bucket.client())
}

function openFolder(place: string): Promise<ObjectStore> {
  const path = join(folder, place)
  mkdirSync(path, { recursive: true })
  const settings = { endpoint: null, region: 'us-east-1', pathStyle: true, caFile: null }
  return openObjectStore({ ...settings, url: pathToFileURL(path).href })
}

const DRIVERS: readonly (readonly [string, OpenPlace])[] = [
  ['in memory', openMemory],
  ['in a folder', openFolder],
]

describe.each(DRIVERS)('an object store %s', (_, open) => {
  testContract(open)
})
