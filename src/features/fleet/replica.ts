import type { Config } from '../../config/schema.ts'
import { fleetTrust } from '../bundles/format/keys.ts'
import { stampOfIds } from '../../store/pin.ts'
import { collectGarbage } from './generations/collect.ts'
import { createFollower } from './generations/follow/follow.ts'
import type { KnownGeneration } from './generations/format/generation.ts'
import { publishGeneration } from './generations/publish/publish.ts'
import { whyGenerationRefused } from './generations/format/refusals.ts'
import { hasUnpublished } from './generations/position.ts'
import type { GenerationFacts, Generations } from './turn.ts'
import type { ObjectStore } from './objects/object-store.ts'

/** What a data folder follows and publishes generations with. */
interface ReplicaOptions {
  readonly config: Pick<Config, 'fleet' | 'bundle' | 'catalog' | 'data' | 'history'>
  /** Version of this program. */
  readonly version: string
  readonly store: ObjectStore
  /** Unix milliseconds. */
  readonly now: () => number
  /** Resolves at a time, or rejects when the program ends. */
  readonly waitUntil: (at: number) => Promise<void>
}

/** Creates the generations of a data folder: those on the store are applied to it, and what it has is published. */
export function createReplica(options: ReplicaOptions): Generations {
  const { config, version, store, now, waitUntil } = options
  const trust = fleetTrust(config, now)
  const mayPublish = config.fleet.role !== 'reader'
  const follower = createFollower({ store, config, trust, now, waitUntil, mayPublish })
  return {
    stored() {
      const position = follower.position()
      return position === null || hasUnpublished(config.data.dir, position) ? 0 : position.generation
    },
    async follow(onProgress) {
      const { newest, isCurrent, refusal } = await follower.look()
      const facts = newest === null ? null : factsOf(newest)
      onProgress({ newest: facts })
      if (newest !== null && !isCurrent) {
        const prepared = await follower.prepare(newest)
        onProgress({ prepared: newest.generation.generation })
        await follower.commit(prepared)
      }
      const applied = { newest: facts, applied: facts, prepared: facts?.generation ?? 0 }
      if (refusal === null) return { ...applied, refusal }
      return { ...applied, refusal: { refused: refusal.reason, message: refusal.message } }
    },
    async publish(epoch) {
      const program = `patchmirror/${version}`
      const dataDir = config.data.dir
      const made = { store, dataDir, config, keys: trust.own, trust, epoch, program, now }
      const { outcome, generation, isPaused } = await publishGeneration(made)
      const newest = generation === null ? null : factsOf(generation)
      return { newest, fenced: outcome === 'fenced', paused: isPaused }
    },
    async collect() {
      await collectGarbage({ store, config, trust, now, dryRun: false })
    },
    whyRefused: whyGenerationRefused,
  }
}

function factsOf({ generation: made }: KnownGeneration): GenerationFacts {
  const { generation, epoch, sources, publishedAt, activateAt } = made
  const stamp = stampOfIds((source) => sources[source]?.snapshot)
  return {
    generation,
    epoch,
    stamp,
    publishedAt: Date.parse(publishedAt),
    activateAt: Date.parse(activateAt),
  }
}
