import type { Config } from '../../../config/schema.ts'
import { MirrorError } from '../../../base/errors.ts'
import { type StoreCounters, countCalls, createStoreCounters } from './counted-store.ts'
import { createFolderStore } from './folder-store.ts'
import type { S3Options } from './s3-store.ts'
import type { ObjectStore } from './object-store.ts'

/** Settings that say where the object store of a fleet is. */
type StoreSettings = Pick<Config['fleet'], 'url' | 'endpoint' | 'region' | 'pathStyle' | 'caFile'>

/** Opens the object store of `fleet.url`; its calls are counted in `counters`; `sizes` are those of a bucket's uploads. Throws `config` where none is set. */
export async function openObjectStore(
  settings: StoreSettings,
  counters: StoreCounters = createStoreCounters(),
  sizes: Pick<S3Options, 'singleBytes' | 'partBytes'> = {},
): Promise<ObjectStore> {
  const { url } = settings
  if (url === null)
    throw new MirrorError(
      'config',
      'fleet.url: not set, so there is no fleet. Give s3://BUCKET/PREFIX or file:///FOLDER.',
    )
  const store = url.startsWith('s3:')
    ? await (await import('./s3-store.ts')).createS3Store(url, settings, { counters, ...sizes })
    : createFolderStore(url)
  return countCalls(store, counters)
}
