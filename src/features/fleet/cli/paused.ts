import { fleetTrust } from '../../bundles/format/keys.ts'
import type { Config } from '../../../config/schema.ts'
import { MirrorError } from '../../../base/errors.ts'
import { findNewest, readGeneration } from '../generations/chain.ts'
import { isRollingBack, isUnreleased } from '../generations/rollback-state.ts'
import type { ObjectStore } from '../objects/object-store.ts'
import { openObjectStore } from '../objects/open-store.ts'
import { closing } from '../../../base/closing.ts'

/** Refuses a run of this process while a rollback is not released. Throws `config`, and `fleet` where the store cannot be asked. */
export async function refuseUnpublished(config: Config): Promise<void> {
  if (config.fleet.url === null) return
  if (isRollingBack(config.data.dir))
    throw new MirrorError(
      'config',
      'a rollback of this data folder is not published yet: run the same "patchmirror fleet rollback" again, or give it up with "patchmirror fleet rollback --end"',
    )
  const store = await openObjectStore(config.fleet)
  if (await closing(store, () => isPaused(store, config)))
    throw new MirrorError(
      'config',
      'a rollback was published, and nothing is synced until its release: run "patchmirror fleet rollback --end" first',
    )
}

async function isPaused(store: ObjectStore, config: Config): Promise<boolean> {
  const number = await findNewest(store, 0)
  const newest = number === 0 ? null : await readGeneration(store, number, fleetTrust(config, Date.now))
  return newest !== null && isUnreleased(store, newest.generation)
}

/** Refuses a repair of a mirror that its fleet is to fill again, while that has nothing, or does not answer. Throws `fleet`. */
export async function refuseUnfilled({ fleet }: Config): Promise<void> {
  if (fleet.url === null) return
  const store = await openObjectStore(fleet)
  const newest = await closing(store, () => findNewest(store, 0))
  if (newest === 0) throw new MirrorError('fleet', `${store.url} has no generation`)
}
