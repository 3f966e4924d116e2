import { hostname } from 'node:os'
import { setTimeout } from 'node:timers/promises'
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import type { Config } from '../../config/schema.ts'
import { messageOf } from '../../base/errors.ts'
import { toIso } from '../../base/time.ts'
import { collectWhenIdle } from '../../base/threads/idle-memory.ts'
import { type StopMessage, type WorkerStarted, refuse } from '../../base/threads/supervisor.ts'
import { lowerPriority } from '../../base/threads/worker-file.ts'
import { stampOfIds } from '../../store/pin.ts'
import { type SigningKey, fleetTrust } from '../bundles/format/keys.ts'
import { deflaterId } from '../bundles/thin/format.ts'
import { createLeaseKeeper, createSoleKeeper } from './lease/keeper.ts'
import { createLeaseProof } from './lease/proof.ts'
import { createMissed, createNotifier, notifyMirrors } from './look/notify.ts'
import type { Takeover } from './look/message.ts'
import { startNode } from './node.ts'
import type { GenerationFacts, Generations, NodeReport } from './turn.ts'
import { type StoreCounters, createStoreCounters } from './objects/counted-store.ts'
import type { ObjectStore } from './objects/object-store.ts'
import { openObjectStore } from './objects/open-store.ts'
import { createReporter, listPresent, reportedRole } from './readers.ts'
import { ownerOf } from './owner.ts'
import { collectGarbage } from './generations/collect.ts'
import { createUseWatch } from './generations/uploads.ts'
import { createFollower } from './generations/follow/follow.ts'
import type { KnownGeneration } from './generations/format/generation.ts'
import { publishGeneration } from './generations/publish/publish.ts'
import { whyGenerationRefused } from './generations/format/refusals.ts'
import { hasItsContent } from './generations/position.ts'

/** Settings of a fleet that a running thread takes over. */
type LiveFleetSettings = Pick<Config['fleet'], 'pollSeconds' | 'maxLagSeconds' | 'leaseSeconds' | 'keepDays'>

/** Start data of the thread of a fleet. */
export interface FleetStart {
  readonly config: Pick<Config, 'fleet' | 'bundle' | 'catalog' | 'data' | 'upstream'>
  readonly version: string
  /** Address at which this mirror takes webhooks. */
  readonly url: string
  /** Where other mirrors reach this one; null: nowhere. */
  readonly address: string | null
}

export type ToFleet =
  /** The store was committed to: if this mirror leads, what is new is to be published. `isLast`: no other commit is expected soon. */
  | { readonly type: 'committed'; readonly isLast: boolean }
  /** This generation is about to be published. */
  | { readonly type: 'look'; readonly generation: number }
  /** This generation is served, and the newest should have been for so many seconds. */
  | { readonly type: 'served'; readonly generation: number; readonly lagSeconds: number | null }
  /** These settings are in force. */
  | { readonly type: 'settings'; readonly settings: LiveFleetSettings }
  | StopMessage

/** What changed of the node. */
export interface FromFleet {
  readonly type: 'report'
  readonly report: NodeReport
  readonly traffic: StoreCounters
  /** The id of this mirror. */
  readonly own: string
  /** What follows from it that not all other mirrors could be notified of the last generation; null: they were. */
  readonly unnotified: string | null
}

/** Runs the thread: one node of a fleet, and its own object on the store. */
function main(port: MessagePort): void {
  const start = workerData as FleetStart
  lowerPriority(5)
  collectWhenIdle()
  const send = (message: FromFleet | WorkerStarted): void => port.postMessage(message)
  const traffic = createStoreCounters()
  const live: Live = {
    settings: start.config.fleet,
    served: 0,
    lagSeconds: null,
    needsWhole: false,
    report: null,
    unwritten: null,
    unnotified: null,
    stopped: false,
  }
  const opened = openNode(start, live, traffic, send)
  const act = (action: (open: OpenNode) => void): void => void opened.then(action, () => undefined) // why it could not be opened is sent below
  port.on('message', (message: ToFleet) => {
    if (message.type === 'served') {
      const isNew = live.served !== message.generation
      Object.assign(live, { served: message.generation, lagSeconds: message.lagSeconds })
      if (isNew) act(({ tell }) => void tell())
    } else if (message.type === 'look') act(({ node }) => node.expect(message.generation))
    else if (message.type === 'settings') live.settings = message.settings
    else if (message.type === 'stop')
      void stop(opened, live)
        .finally(() => port.close())
        .catch(() => undefined)
    else act(({ node }) => node.committed(message.isLast))
  })
  opened.then(
    () => send({ type: 'ready' }),
    (error: unknown) => refuse(port, error),
  )
}

interface Live {
  settings: LiveFleetSettings
  served: number
  lagSeconds: number | null
  /** Whether it could not use a thin bundle: the next one would be no other. */
  needsWhole: boolean
  report: NodeReport | null
  /** Why what this mirror says of itself cannot be written; null: it can. The leader knows no other mirrors. */
  unwritten: string | null
  unnotified: string | null
  stopped: boolean
}

type OpenNode = Awaited<ReturnType<typeof openNode>>

async function openNode(start: FleetStart, live: Live, traffic: StoreCounters, send: (message: FromFleet) => void) {
  const { config, version, url } = start
  const { soleWriter } = config.fleet
  const role = reportedRole(config.fleet.role)
  const store = await openObjectStore(config.fleet, traffic)
  const owner = ownerOf(config.data.dir)
  const name = config.fleet.ownName ?? hostname()
  const floor = (): number => live.report?.newest?.epoch ?? 0
  const patienceMs = role === 'standby' ? config.fleet.leaseSeconds * PATIENCE : 0
  const keeper = soleWriter
    ? createSoleKeeper({ floor })
    : createLeaseKeeper({
        store,
        owner,
        name,
        url,
        floor,
        seconds: () => live.settings.leaseSeconds,
        patienceMs,
        clock: () => performance.now(),
        now: Date.now,
        proof: createLeaseProof(store, () => performance.now()),
      })
  const tell = createAnnouncing(start, live, store, owner)
  const written = tell() // before anything is served: who publishes waits for the mirrors that it knows
  const notifier = createNotifier(config.upstream)
  const ending = new AbortController()
  const waitUntil = (at: number): Promise<void> => untilTime(at, ending.signal)
  const node = startNode({
    role,
    keeper,
    generations: createReplica({
      config: following(config, live),
      version,
      store,
      now: Date.now,
      waitUntil,
      notify: createNotify(live, { store, own: owner, transport: notifier }),
      canTakeThin: () => canAllTakeThin(store, owner),
    }),
    pollMs: () => live.settings.pollSeconds * 1000,
    onReport(report) {
      const isNews = noteReport(live, report)
      const { unwritten, unnotified } = live
      if (unwritten !== null || isNews) void tell()
      const failing = report.failing ?? (unwritten === null ? null : { refused: null, message: unwritten })
      send({ type: 'report', report: { ...report, failing }, traffic, own: owner, unnotified })
    },
  })
  void written.then(() => node.expect(Infinity)) // one that did not know this mirror may be about to publish
  return {
    node,
    store,
    ending,
    notifier,
    /** Writes what this mirror says of itself. Never rejects. */
    tell,
    announcing: setInterval(() => void tell(), ANNOUNCE_MS),
  }
}

/** Notes what a node reports. Returns whether it says something else of itself now. */
function noteReport(live: Live, report: NodeReport): boolean {
  const { report: before, needsWhole } = live
  live.report = report
  live.needsWhole ||= report.failing?.refused === 'thin'
  return needsWhole !== live.needsWhole || (before !== null && before.leads !== report.leads)
}

/** Returns what notifies the other mirrors of a generation, and notes what follows where one cannot be. */
function createNotify(
  live: Live,
  sending: Pick<Parameters<typeof notifyMirrors>[0], 'store' | 'own' | 'transport'>,
): ReplicaOptions['notify'] {
  const missed = createMissed(
    () => live.settings.maxLagSeconds * 1000,
    () => performance.now(),
  )
  const onNotified = (effect: string | null): void => void (live.unnotified = effect)
  return (keys, generation) => notifyMirrors({ ...sending, keys, missed, onNotified }, generation)
}

/** Reports whether all other mirrors that are present can make whole bundles of thin ones; false where that cannot be known. */
async function canAllTakeThin(store: ObjectStore, own: string): Promise<boolean> {
  const here = deflaterId()
  const mirrors = await listPresent(store).catch(() => null)
  return mirrors?.every(({ id, deflater }) => id === own || deflater === here) ?? false
}

/** Returns what writes what a mirror says of itself. */
function createAnnouncing(
  { config, version, address }: FleetStart,
  live: Live,
  store: ObjectStore,
  owner: string,
): () => Promise<void> {
  const { fleet } = config
  const { site } = fleet
  const name = fleet.ownName ?? hostname()
  const role = reportedRole(fleet.role)
  const compresses = deflaterId()
  const write = createReporter(store, () => performance.now())
  const announce = (): Promise<void> => {
    const { served, lagSeconds, report, needsWhole, stopped } = live
    const leads = report !== null && report.leads !== null
    const deflater = needsWhole ? null : compresses
    const own = { id: owner, name, site, role, leads, generation: served, lagSeconds, version, address }
    return write({ ...own, deflater, stopped, at: toIso(Date.now()) })
  }
  let isDue = false
  let writing = Promise.resolve()
  const writeDue = async (): Promise<void> => {
    if (!isDue) return
    isDue = false
    live.unwritten = await announce().then(() => null, messageOf) // tried again with the next report
  }
  return () => {
    isDue = true
    return (writing = writing.then(writeDue))
  }
}

/** Longest pause between two looks at the time of day, milliseconds: the machine may be suspended meanwhile. */
const LOOK_MS = 5_000

/** Waits until a time of day, but no longer than it was away at first: the clock may be set back meanwhile. */
async function untilTime(at: number, signal: AbortSignal): Promise<void> {
  const latest = performance.now() + at - Date.now()
  const left = (): number => Math.min(at - Date.now(), latest - performance.now())
  for (let wait = left(); wait > 0; wait = left()) await setTimeout(Math.min(wait, LOOK_MS), undefined, { signal })
}

/** The settings, with those that are in force now. */
function following(config: FleetStart['config'], live: Live): FleetStart['config'] {
  const fleet = { get: () => ({ ...config.fleet, ...live.settings }) }
  return Object.defineProperty({ ...config }, 'fleet', fleet)
}

/** How often a mirror looks whether what it says on the store has changed, milliseconds. */
const ANNOUNCE_MS = 60_000

/** Milliseconds for each second of a lease that a standby waits before it takes one that no mirror has. */
const PATIENCE = 500

async function stop(opened: Promise<OpenNode>, live: Live): Promise<void> {
  const { node, store, ending, notifier, tell, announcing } = await opened
  ending.abort()
  clearInterval(announcing)
  await node.stop()
  live.stopped = true
  await tell()
  await notifier.close()
  store.close()
}

/** What a data folder follows and publishes generations with. */
interface ReplicaOptions {
  readonly config: Pick<Config, 'fleet' | 'bundle' | 'catalog' | 'data'>
  /** Version of this program. */
  readonly version: string
  readonly store: ObjectStore
  /** Unix milliseconds. */
  readonly now: () => number
  /** Resolves at a time, or rejects when the program ends. */
  readonly waitUntil: (at: number) => Promise<void>
  /** Notifies all other mirrors of the next generation. */
  readonly notify: (keys: readonly SigningKey[], generation: number) => Promise<readonly Takeover[] | null>
  /** As for `publishGeneration`. */
  readonly canTakeThin: () => Promise<boolean>
}

/** Takeovers in time of which the slowest counts: a small one says little of the next. */
const TAKEOVERS = 5

/** Creates the generations of a data folder: those on the store are applied to it, and what it has is published. */
function createReplica(options: ReplicaOptions): Generations {
  const { config, version, store, now, waitUntil, notify, canTakeThin } = options
  const trust = fleetTrust(config, now)
  const mayPublish = config.fleet.role !== 'reader'
  const follower = createFollower({ store, config, trust, now, waitUntil, mayPublish })
  const takeovers: Takeover[] = []
  const isUnusable = createUseWatch(store, () => performance.now(), canTakeThin)
  return {
    stored() {
      const position = follower.position()
      return position !== null && hasItsContent(config.data.dir, position) ? position.generation : 0
    },
    async follow(onProgress) {
      const begun = performance.now()
      const { newest, isCurrent, refusal } = await follower.look()
      const facts = newest === null ? null : factsOf(newest)
      onProgress({ newest: facts })
      if (newest !== null && !isCurrent) {
        const prepared = await follower.prepare(newest)
        onProgress({ prepared: newest.generation.generation })
        const stagedMs = performance.now() - begun
        // All begin to serve it now; a standby has work on it after that.
        const onStored = (): void => onProgress({ applied: facts })
        const ms = Math.ceil(stagedMs + (await follower.commit(prepared, { onStored })))
        if (prepared.at !== null) takeovers.unshift({ ms, bytes: prepared.bytes })
        takeovers.splice(TAKEOVERS)
      }
      const took = takeovers.toSorted((one, other) => other.ms - one.ms)[0] ?? null
      const applied = { newest: facts, applied: facts, prepared: facts?.generation ?? 0, took }
      if (refusal === null) return { ...applied, refusal }
      return { ...applied, refusal: { refused: refusal.reason, message: refusal.message } }
    },
    async publish(epoch) {
      const program = `patchmirror/${version}`
      const dataDir = config.data.dir
      const { own: keys } = trust
      const made = { store, dataDir, config, keys, trust, epoch, program, now }
      const { outcome, generation, isPaused } = await publishGeneration({
        ...made,
        canTakeThin,
        isUnusable,
        notify: (number) => notify(keys, number),
      })
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

if (parentPort !== null) main(parentPort)
