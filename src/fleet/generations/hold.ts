import type { ObjectStore } from '../objects/object-store.ts'
import type { Generation } from './format/generation.ts'
import { releaseKey } from './format/object-names.ts'
import { storeOnce } from './uploads.ts'

/**
 * Reports whether syncs are stopped: the newest generation is a rollback that was not released. This follows from the store
 * alone, so that it survives a takeover.
 */
export async function isHeld(
  store: ObjectStore,
  { generation, reason }: Pick<Generation, 'generation' | 'reason'>,
): Promise<boolean> {
  return reason === 'rollback' && (await store.head(releaseKey(generation))) === null
}

/** Lets syncs run again after a rollback. */
export async function releaseHold(store: ObjectStore, generation: number): Promise<void> {
  await storeOnce(store, releaseKey(generation), Buffer.from(`${JSON.stringify({ generation })}\n`))
}
