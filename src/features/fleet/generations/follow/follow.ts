import type { Config } from '../../../../config/schema.ts'
import type { KeyTrust } from '../../../bundles/format/keys.ts'
import { SOURCES, type SourceName } from '../../../../base/domain/sources.ts'
import { messageOf } from '../../../../base/errors.ts'
import type { ObjectStore } from '../../objects/object-store.ts'
import { deviationFromStore } from '../../objects/probe.ts'
import { AHEAD_MS, type Generation, type KnownGeneration } from '../format/generation.ts'
import { type GenerationRefusal, isEndedByNext, refuseGeneration, whyGenerationRefused } from '../format/refusals.ts'
import { type Position, positionOf, readPosition } from '../position.ts'
import {
  type ChainLink,
  confirmLink,
  findNewest,
  linkOf,
  readGeneration,
  readNext,
  refuseHole,
  refuseOtherFleet,
} from '../chain.ts'
import { fetchFleetId } from '../format/fleet-id.ts'
import { type DownloadedBundle, chooseBundles } from './bundles.ts'
import { type Importer, createImporter } from './importer.ts'
import { type LogPart, readLogPart } from './log-part.ts'

/** What a follower needs. */
interface FollowDeps {
  readonly store: ObjectStore
  readonly config: Pick<Config, 'bundle' | 'data' | 'fleet'>
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
  /**
   * Downloads and verifies a generation, and stages what can be staged. Nothing that is served changes. One that the next generation
   * ends is taken by a mirror that may publish, so that it can lead.
   */
  prepare(target: KnownGeneration): Promise<PreparedGeneration>
  /**
   * Publishes a prepared generation here, at its time unless `atOnce`: one transaction, which also records it; then `onStored` is
   * called. Resolves with how long the import took until it could be committed, milliseconds.
   */
  commit(
    prepared: PreparedGeneration,
    options?: { readonly atOnce?: boolean; readonly onStored?: () => void },
  ): Promise<number>
}

/** Creates the follower of a data folder. */
export function createFollower(deps: FollowDeps): Follower {
  const { store, config, trust, now, mayPublish = false } = deps
  const dataDir = config.data.dir
  const importer = deps.importer ?? createImporter({ dataDir, config, trust, now })
  const chain = createVerifiedChain(deps)
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
      const refusal = await judgeTime(deps, generation)
      if (refusal !== null && !(mayPublish && isEndedByNext(refusal.reason)))
        throw refuseGeneration(refusal.reason, refusal.message)
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
    async commit({ target, bundles, log, at }, { atOnce = false, onStored } = {}) {
      const { generation } = target
      const passed = [target, ...chain.seenAfter(position()?.generation ?? 0)]
      const took = await timing.committing(atOnce ? null : at, (reached) =>
        importer.apply(bundles, {
          log,
          position: positionOf(target),
          rollback: generation.reason === 'rollback',
          goesBack: passed.some((one) => one.generation.reason === 'rollback'),
          beforeCommit: reached,
        }),
      )
      onStored?.()
      for (const { path } of bundles) importer.discard(path)
      if (mayPublish && generation.full.digest === generation.digest) await importer.remember()
      return took
    },
  }
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
      `this data folder has ${more.join(', ')}, which generation ${generation} does not have: it follows the next one that has. ` +
        'Where the leader does not mirror that, start this node with an empty data folder',
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
    /** Begins the import so early that it reaches its commit at `at`, where it waits. Returns how long it took to reach it. */
    async committing(at: number | null, work: (reached: () => Promise<void>) => Promise<void>): Promise<number> {
      if (at !== null && at - lead > now()) await waitUntil(at - lead)
      const begun = now()
      let took = 0
      await work(async () => {
        took = now() - begun
        lead = Math.min(MOST_LEAD_MS, Math.max(FIRST_LEAD_MS, 1.5 * took))
        if (at !== null && at > now()) await waitUntil(at)
      })
      return took
    },
  }
}

/** Least and longest time before the commit at which an import begins, milliseconds: other writers wait meanwhile. */
const FIRST_LEAD_MS = 1_000
const MOST_LEAD_MS = 10_000

/** Why the newest generation is not followed. */
interface Refused {
  readonly reason: GenerationRefusal
  readonly message: string
}

/** What is verified of the chain. */
interface ChainState {
  /** The newest generation that was verified; null: none. */
  readonly newest: KnownGeneration | null
  /** Null: nothing was refused. */
  readonly refusal: Refused | null
}

/** Seconds of polls between two checks that what was seen is still on the store: one more request, and two in turn. */
const RECHECK_SECONDS = 300

/**
 * Creates the verified part of the chain, empty at first. An update costs one request while nothing is new. After one that
 * failed or refused something, each checks all again until nothing is found: a refusal stays while its cause does.
 */
function createVerifiedChain(deps: Pick<FollowDeps, 'store' | 'config' | 'trust' | 'now' | 'mayPublish'>) {
  const { store, config, trust } = deps
  let seen: KnownGeneration[] = []
  let tip: KnownGeneration | null = null
  /** Updates since the last check that what was seen is still on the store. */
  let unchecked = Infinity
  /** Whether the next check also looks for a hole. */
  let isHoleDue = true
  /** Number of the newest generation that existed, verified or not. */
  let highest = 0
  const advance = async (stored: ChainLink | null): Promise<void> => {
    const link = tip === null ? stored : linkOf(tip)
    if (link === null) {
      const newest = await findNewest(store, 0)
      const found = newest === 0 ? null : await readGeneration(store, newest, trust)
      const fleet = found === null ? null : await fetchFleetId(store)
      if (found !== null && fleet !== null) refuseOtherFleet(found.generation, fleet)
      tip = found
      unchecked = 0
      return
    }
    if (tip === null || ++unchecked >= RECHECK_SECONDS / config.fleet.pollSeconds) {
      tip = await confirmLink(store, link, trust)
      if (isHoleDue) await refuseHole(store, link.generation, highest)
      isHoleDue = !isHoleDue
      unchecked = 0
    }
    highest = await findNewest(store, link.generation)
    while (tip.generation.generation < highest) {
      tip = await readNext(store, linkOf(tip), highest, trust)
      seen.push(tip)
    }
  }
  return {
    /** Looks for generations behind the newest one that was seen, or behind `stored`. Throws `fleet` for the store. */
    async update(stored: ChainLink | null): Promise<ChainState> {
      try {
        await advance(stored).catch((error: unknown) => {
          unchecked = Infinity
          isHoleDue = true
          throw error
        })
        return { newest: tip, refusal: tip === null ? null : await judgeTime(deps, tip.generation) }
      } catch (error) {
        const reason = whyGenerationRefused(error)
        if (reason === null) throw error
        return { newest: tip, refusal: { reason, message: messageOf(error) } }
      }
    },
    /** Generations that were seen behind a number, oldest first. */
    seenAfter(generation: number): KnownGeneration[] {
      seen = seen.filter((one) => one.generation.generation > generation)
      return seen
    },
  }
}

const WRONGLY_DATED: Refused = {
  reason: 'ahead',
  message:
    'the newest generation is dated in the future, and the clock here is that of the store: its publisher’s was ahead. A ' +
    'mirror that may lead ends it with the next one',
}

/** Reports whether the clock here is the store's; false where that cannot be known now. */
async function agreesWith(store: ObjectStore, now: () => number): Promise<boolean> {
  const off = await deviationFromStore(store, now).catch(() => null)
  return off !== null && Math.abs(off) <= AHEAD_MS
}

/** Returns why a generation is not of this time, with the reason `expired`, `future` or `ahead`; null: it is. */
async function judgeTime(
  { store, now, mayPublish = false }: Pick<FollowDeps, 'store' | 'now' | 'mayPublish'>,
  { generation, publishedAt, expiresAt }: Generation,
): Promise<Refused | null> {
  const time = now()
  if (Date.parse(publishedAt) > time + AHEAD_MS) {
    if (mayPublish && (await agreesWith(store, now))) return WRONGLY_DATED
    const message = `generation ${generation} is dated ${publishedAt}, which is in the future by the clock here: correct the clocks`
    return { reason: 'future', message }
  }
  if (expiresAt === null || time < Date.parse(expiresAt)) return null
  const message =
    `generation ${generation} expired at ${expiresAt} (published at ${publishedAt}) by the clock here: no node publishes, ` +
    'the store shows old content, or the clock is wrong'
  return { reason: 'expired', message }
}
