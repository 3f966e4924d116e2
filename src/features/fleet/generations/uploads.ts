import { type ObjectBody, type ObjectStore, FleetError, OversizedError, readObject } from '../objects/object-store.ts'
import { type Generation, type NamedObject, bundlesOf } from './format/generation.ts'
import { refuseGeneration } from './format/refusals.ts'

function sizeOf(body: ObjectBody): number {
  return Buffer.isBuffer(body) ? body.length : body.size
}

/**
 * Stores an object whose key is that of its content. One that exists already, also from an earlier attempt, is fine. Throws
 * `fleet`.
 */
export async function storeOnce(store: ObjectStore, key: string, body: ObjectBody): Promise<void> {
  let failed: FleetError | null = null
  try {
    if ((await store.putIfAbsent(key, body)) !== null) return
  } catch (error) {
    if (!(error instanceof FleetError)) throw error
    failed = error // its answer may have been lost
  }
  const found = await store.head(key)
  if (found?.size === sizeOf(body)) {
    // Written again, it is young again: garbage collection deletes what is old and not named yet.
    await store.put(key, body)
    return
  }
  throw (
    failed ??
    new FleetError(
      'refused',
      `${key} exists on ${store.url} with ${found?.size ?? 'no'} bytes, not ${sizeOf(body)}: remove it`,
    )
  )
}

/**
 * Creates an object; false: another one has this key. Only the stored bytes decide: an answer can be lost, or be that of another
 * program than the store. Throws `fleet` while they cannot be known.
 */
export async function storeDecided(store: ObjectStore, key: string, bytes: Buffer): Promise<boolean> {
  let failed: FleetError | null = null
  try {
    await store.putIfAbsent(key, bytes)
  } catch (error) {
    if (!(error instanceof FleetError)) throw error
    failed = error
  }
  const found = await readObject(store, key, bytes.length).catch((error: unknown) => {
    if (error instanceof OversizedError) return 'other' as const
    throw error
  })
  if (found === 'other') return false
  if (found !== null) return found.bytes.equals(bytes)
  throw failed ?? new FleetError('unknown', `${key} was written to ${store.url}, or exists there, and cannot be read`)
}

/** Reports whether an object has the size that a generation names; its bytes are verified by those who fetch it. */
export async function isStored(store: Pick<ObjectStore, 'head'>, { key, size }: NamedObject): Promise<boolean> {
  return (await store.head(key))?.size === size
}

/** Returns the bundles that a generation names, and the store does not have as it says. */
export async function lostOf(
  store: Pick<ObjectStore, 'head'>,
  generation: Pick<Generation, 'full' | 'delta' | 'thin'>,
): Promise<NamedObject[]> {
  const named = bundlesOf(generation)
  const found = await Promise.all(named.map((one) => isStored(store, one)))
  return named.filter((_, at) => found[at] === false)
}

/** How often a leader looks whether its generation can be used, milliseconds: it names up to 18 objects. */
const USE_MS = 10 * 60_000

/**
 * Creates what reports whether a mirror could not begin with a generation: the store has lost a bundle of it, or the mirror cannot use
 * thin ones. It looks each ten minutes at most.
 */
export function createUseWatch(
  store: Pick<ObjectStore, 'head'>,
  clock: () => number,
  canTakeThin?: () => Promise<boolean>,
) {
  let lookedAt = -Infinity
  return async (generation: Parameters<typeof lostOf>[1]): Promise<boolean> => {
    if (clock() - lookedAt < USE_MS) return false
    lookedAt = clock()
    if (generation.thin !== undefined && (await canTakeThin?.()) === false) return true
    return (await lostOf(store, generation)).length > 0
  }
}

/** The error of an object that a generation names and the store does not have as that says. */
export function lostObject({ url }: Pick<ObjectStore, 'url'>, key: string): Error {
  return refuseGeneration(
    'missing',
    `${key} is missing on ${url}, or has another size, and a generation names it. Restore it, or wait for the next ` +
      'generation: the leader then publishes another one',
  )
}
