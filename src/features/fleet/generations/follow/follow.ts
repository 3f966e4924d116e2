import type { Config } from '../../../../config/schema.ts'
import type { KeyTrust } from '../../../bundles/format/keys.ts'
import { SOURCES, type SourceName } from '../../../../base/domain/sources.ts'
import type { ObjectStore } from '../../objects/object-store.ts'
import { openGeneration } from '../format/envelope.ts'
import type { Generation, KnownGeneration } from '../format/generation.ts'
import { refuseGeneration } from '../format/refusals.ts'
import { type Position, positionOf } from '../position.ts'
import { type DownloadedBundle, chooseBundles } from './bundles.ts'
import { type Importer, createImporter } from './importer.ts'
import { type LogPart, readLogPart } from './log-part.ts'
import { type ChainState, createVerifiedChain, refuseOtherTime } from './verified-chain.ts'

/** What a follower needs. */
interface FollowDeps {
  readonly store: ObjectStore
  readonly config: Pick<Config, 'bundle' | 'data' | 'history' | 'fleet'>
  readonly trust: KeyTrust
  readonly now: () => number
  /** Resolves at a time (Unix milliseconds); rejects when the program ends, and then nothing is committed. */
  readonly waitUntil: (at: number) => Promise<void>
  /** Whether this mirror may become a publisher: it then remembers the states of full bundles, for its own deltas. */
  readonly mayPublish?: boolean
  /** Another destination than the data folder. */
  readonly importer?: Importer
}

/** What a look at the store found. */
interface Look extends ChainState {
  /** Whether the stored data is the newest generation: there is nothing to do. */
  readonly isCurrent: boolean
  /** Number of generations between the stored and the newest one. */
  readonly behind: number
}

/** A generation that can be committed. */
interface PreparedGeneration {
  readonly target: KnownGeneration
  readonly bundles: readonly DownloadedBundle[]
  /** Bytes of its bundles. */
  readonly bytes: number
  readonly log: LogPart
  /** When it is to be served, Unix milliseconds; null: at once. */
  readonly at: number | null
}

/** Follows the generations of a fleet. Its functions are called one after the other. */
export interface Follower {
  /** The generation that is stored, published or applied last; null: none. */
  position(): Position | null
  /** Looks for new generations. Throws `fleet` when the store cannot be reached; a refused generation is reported. */
  look(): Promise<Look>
  /** Downloads and verifies a generation, and stages what can be staged. Nothing that is served changes. */
  prepare(target: KnownGeneration): Promise<PreparedGeneration>
  /** Publishes a prepared generation here, at its time unless `atOnce`: one transaction, which also records it. */
  commit(prepared: PreparedGeneration, options?: { readonly atOnce?: boolean }): Promise<void>
}

/** Creates the follower of a data folder. */
export function createFollower(deps: FollowDeps): Follower {
  const { store, config, trust, now, mayPublish = false } = deps
  const dataDir = config.data.dir
  const importer = deps.importer ?? createImporter({ dataDir, config, trust, now })
  const chain = createVerifiedChain(store, trust, now)
  const timing = createTiming(deps)
  const position = (): Position | null => readPosition(importer, trust)
  return {
    position,
    async look() {
      const stored = position()
      const state = await chain.update(stored)
      const { newest } = state
      const number = newest?.generation.generation ?? 0
      const isCurrent = newest !== null && isStored(importer, stored, newest)
      return { ...state, isCurrent, behind: Math.max(0, number - (stored?.generation ?? 0)) }
    },
    async prepare(target) {
      const { generation } = target
      refuseOtherTime(generation, now())
      refuseOtherSources(importer, generation)
      const stored = position()
      const seen = chain.seenAfter(stored?.generation ?? 0)
      const chosen = chooseBundles(importer.readDigests(), generation)
      const bundles = await importer.download(store, chosen)
      await importer.stage(bundles)
      const days = config.fleet.keepDays
      const log = await readLogPart(store, stored, seen, target, { trust, now: now(), days })
      const bytes = chosen.reduce((sum, { size }) => sum + size, 0)
      return { target, bundles, bytes, log, at: timing.timeOf(stored, seen, generation) }
    },
    async commit({ target, bundles, log, at }, { atOnce = false } = {}) {
      const { generation } = target
      await timing.committing(atOnce ? null : at, (reached) =>
        importer.apply(bundles, {
          log,
          position: positionOf(target),
          rollback: generation.reason === 'rollback',
          beforeCommit: reached,
        }),
      )
      for (const { path } of bundles) importer.discard(path)
      if (mayPublish && generation.full.digest === generation.digest) await importer.remember()
    },
  }
}

function readPosition(importer: Importer, trust: KeyTrust): Position | null {
  const applied = importer.readApplied()
  const object = importer.readPublished()
  if (object === null) return applied
  const published = positionOf(openGeneration(object, trust, 'published.json'))
  return applied !== null && applied.generation >= published.generation ? applied : published
}

function isStored(importer: Importer, stored: Position | null, { generation, sha256 }: KnownGeneration): boolean {
  if (stored?.sha256 !== sha256) return false
  const snapshots = importer.readSnapshots()
  return SOURCES.every((source) => snapshots[source] === generation.sources[source]?.snapshot)
}

function refuseOtherSources(importer: Importer, { generation, sources }: Generation): void {
  const stored = Object.keys(importer.readSnapshots()) as SourceName[]
  const more = stored.filter((source) => sources[source] === undefined)
  if (more.length > 0)
    throw refuseGeneration(
      'sources',
      `this data folder has ${more.join(', ')}, which generation ${generation} does not have: start this node with an ` +
        'empty data folder',
    )
}

/** Decides when a generation is committed. */
function createTiming({ config, now, waitUntil }: FollowDeps) {
  /** How long the last import took to reach its commit, milliseconds. */
  let lead = FIRST_LEAD_MS
  return {
    /** Null: a first fill, or the data is too old already to wait with the others. */
    timeOf(
      stored: Position | null,
      seen: readonly KnownGeneration[],
      { activateAt, publishedAt }: Generation,
    ): number | null {
      const missed = Date.parse(seen[0]?.generation.activateAt ?? activateAt)
      const isLate = missed + config.fleet.maxLagSeconds * 1000 < now()
      // It is published already: a longer wait than its publisher's would follow from clocks that differ.
      const longest = Date.parse(activateAt) - Date.parse(publishedAt)
      return stored === null || isLate ? null : Math.min(Date.parse(activateAt), now() + longest)
    },
    /** Begins the import so early that it reaches its commit at `at`, where it waits. */
    async committing(at: number | null, work: (reached: () => Promise<void>) => Promise<void>): Promise<void> {
      if (at !== null && at - lead > now()) await waitUntil(at - lead)
      const begun = now()
      await work(async () => {
        lead = Math.min(MOST_LEAD_MS, Math.max(FIRST_LEAD_MS, 1.5 * (now() - begun)))
        if (at !== null && at > now()) await waitUntil(at)
      })
    },
  }
}

/** Least and longest time before the commit at which an import begins, milliseconds: other writers wait meanwhile. */
const FIRST_LEAD_MS = 1_000
const MOST_LEAD_MS = 10_000
