import { type ObjectInfo, type ObjectStore, FleetError, readObject } from './object-store.ts'

/** How many writes compete, and how often. */
export interface Race {
  readonly width: number
  readonly rounds: number
}

/** How a competing write ended: written, not written, or not known. */
type Ending = 'won' | 'lost' | 'unknown'

/** Starts one write for each body at the same time. Throws when all of them failed. */
export async function raced(
  bodies: readonly Buffer[],
  write: (body: Buffer) => Promise<ObjectInfo | null>,
): Promise<Ending[]> {
  const results = await Promise.allSettled(bodies.map(write))
  const failed = results.find((one) => one.status === 'rejected')
  if (failed !== undefined && results.every((one) => one.status === 'rejected')) throw failed.reason
  return results.map((one) => {
    if (one.status === 'fulfilled') return one.value === null ? 'lost' : 'won'
    if (!(one.reason instanceof FleetError)) throw one.reason
    return one.reason.isPassing ? 'unknown' : 'lost'
  })
}

/**
 * Returns what is wrong with the end of a race; empty: one write won, and its content is what the store has. Throws where no write
 * won and some were not answered: then nothing was seen.
 */
export async function countWinners(
  store: ObjectStore,
  key: string,
  bodies: readonly Buffer[],
  endings: readonly Ending[],
): Promise<string> {
  const won = endings.filter((ending) => ending === 'won').length
  if (won > 1) return `${won} of ${bodies.length} won`
  const found = await readObject(store, key, Number.MAX_SAFE_INTEGER)
  const stored = bodies.findIndex((body) => found?.bytes.equals(body) === true)
  const ending = endings[stored]
  if (won === 0 && ending === undefined && endings.includes('unknown'))
    throw new FleetError('unknown', 'fleet.url: the store did not answer all writes of a race')
  if (won === 1 && ending !== 'won') return 'the content is not that of the write that won'
  return ending === 'won' || ending === 'unknown' ? '' : `none of ${bodies.length} won`
}
