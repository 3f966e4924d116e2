import { DAY_MS, toIso } from '../../../../base/time.ts'
import { messageOf } from '../../../../base/errors.ts'
import type { KeyTrust } from '../../../bundles/format/keys.ts'
import type { ObjectStore } from '../../objects/object-store.ts'
import {
  type ChainLink,
  findNewest,
  linkOf,
  readChain,
  readGeneration,
  refuseHole,
  refuseOtherFleet,
} from '../chain.ts'
import { fetchFleetId } from '../format/fleet-id.ts'
import type { Generation, KnownGeneration } from '../format/generation.ts'
import { type GenerationRefusal, refuseGeneration, whyGenerationRefused } from '../format/refusals.ts'

/** Why the newest generation is not followed. */
interface Refused {
  readonly reason: GenerationRefusal
  readonly message: string
}

/** What is verified of the chain. */
export interface ChainState {
  /** The newest generation that was verified; null: none. */
  readonly newest: KnownGeneration | null
  /** Null: nothing was refused. */
  readonly refusal: Refused | null
}

/** The generations of the store that are verified; it grows with each update. */
interface VerifiedChain {
  /** Looks for generations behind the newest one that was seen, or behind `stored`. Throws `fleet` for the store. */
  update(stored: ChainLink | null): Promise<ChainState>
  /** Generations that were seen behind a number, oldest first. */
  seenAfter(generation: number): KnownGeneration[]
}

/** Updates between two checks that what was seen is still on the store: two more requests, each ten minutes by default. */
const RECHECK = 60

/** Creates the verified part of the chain, empty at first. An update costs one request while nothing is new. */
export function createVerifiedChain(store: ObjectStore, trust: KeyTrust, now: () => number): VerifiedChain {
  let seen: KnownGeneration[] = []
  let tip: KnownGeneration | null = null
  let updates = 0
  const advance = async (stored: ChainLink | null): Promise<void> => {
    const link = tip === null ? stored : linkOf(tip)
    if (link === null) {
      const newest = await findNewest(store, 0)
      const found = newest === 0 ? null : await readGeneration(store, newest, trust)
      const fleet = found === null ? null : await fetchFleetId(store)
      if (found !== null && fleet !== null) refuseOtherFleet(found.generation, fleet)
      tip = found
      return
    }
    if (tip === null || ++updates % RECHECK === 0) {
      tip = await confirmLink(store, link, trust)
      await refuseHole(store, link.generation)
    }
    const newest = await findNewest(store, link.generation)
    for (let number = link.generation + 1; number <= newest; number++) {
      const next: KnownGeneration[] = await readChain(store, linkOf(tip), number, trust)
      seen.push(...next)
      tip = next[0] ?? tip
    }
  }
  return {
    async update(stored) {
      try {
        await advance(stored)
        if (tip !== null) refuseOtherTime(tip.generation, now())
      } catch (error) {
        const reason = whyGenerationRefused(error)
        if (reason === null) throw error
        return { newest: tip, refusal: { reason, message: messageOf(error) } }
      }
      return { newest: tip, refusal: null }
    },
    seenAfter(generation) {
      seen = seen.filter((one) => one.generation.generation > generation)
      return seen
    },
  }
}

/** Reads a generation again that was followed. Throws `fleet` with the reason `backwards` or `fork`. */
async function confirmLink(
  store: ObjectStore,
  { generation, sha256 }: ChainLink,
  trust: KeyTrust,
): Promise<KnownGeneration> {
  const found = await readGeneration(store, generation, trust)
  if (found?.sha256 === sha256) return found
  const [why, what] =
    found === null
      ? (['backwards', 'does not have the generation'] as const)
      : (['fork', 'has another generation'] as const)
  throw refuseGeneration(
    why,
    `${store.url} ${what} ${generation} that was followed here: the store was restored from a backup, or objects were ` +
      'deleted or replaced. Restore them; if it was intended, start this node with an empty data folder',
  )
}

/** Largest accepted difference between this clock and the publisher's, milliseconds. */
const AHEAD_MS = DAY_MS

/** Throws `fleet` with the reason `expired` or `future`. */
export function refuseOtherTime({ generation, publishedAt, expiresAt }: Generation, now: number): void {
  const here = `the clock here shows ${toIso(now)}`
  if (Date.parse(publishedAt) > now + AHEAD_MS)
    throw refuseGeneration(
      'future',
      `generation ${generation} is dated ${publishedAt}, and ${here}: correct the clocks`,
    )
  if (expiresAt !== null && now >= Date.parse(expiresAt))
    throw refuseGeneration(
      'expired',
      `generation ${generation} expired at ${expiresAt} (published at ${publishedAt}; ${here}): no node publishes, or ` +
        'the store shows old content',
    )
}
