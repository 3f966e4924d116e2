import { messageOf } from '../../../base/errors.ts'
import type { KeyTrust } from '../../bundles/format/keys.ts'
import type { ObjectStore } from '../objects/object-store.ts'
import { confirmLink, findNewest, readGeneration, refuseHole } from './chain.ts'
import type { KnownGeneration } from './format/generation.ts'
import { createStoredPosition, readPosition } from './position.ts'
import { lostObject, lostOf } from './uploads.ts'

/** What a store shows of its fleet. */
interface Inspection {
  /** The newest generation, verified by itself; null: none is found. */
  readonly newest: KnownGeneration | null
  /** What is not as the data folder or the newest generation says, each with what to do. */
  readonly doubts: readonly string[]
}

/**
 * Reads the newest generation of a store, and compares the store with what a data folder applied or published, and with what that
 * generation names. It only reads. Throws `fleet` when the store cannot be reached, or its newest generation is refused.
 */
export async function inspectStore(store: ObjectStore, trust: KeyTrust, dataDir: string): Promise<Inspection> {
  const number = await findNewest(store, 0)
  const newest = number === 0 ? null : await readGeneration(store, number, trust)
  const compared = await comparePosition(store, trust, { dataDir, number }).then(() => [], doubtOf)
  const lost = newest === null ? [] : await lostOf(store, newest.generation)
  return { newest, doubts: [...compared, ...lost.map(({ key }) => lostObject(store, key).message)] }
}

/** Throws unless the store has what the data folder applied or published last, and no hole behind it. */
async function comparePosition(
  store: ObjectStore,
  trust: KeyTrust,
  { dataDir, number }: { readonly dataDir: string; readonly number: number },
): Promise<void> {
  const position = readPosition(createStoredPosition(dataDir), trust)
  if (position === null) return
  await confirmLink(store, position, trust)
  await refuseHole(store, position.generation, number)
}

function doubtOf(error: unknown): string[] {
  return [messageOf(error)]
}
