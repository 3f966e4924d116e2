import { databasePath, hasLostLog, keepLog, readyFolder } from '../store/database/open.ts'
import { followNumbers, lossOfInbox } from '../store/given-numbers.ts'
import { catalogRoutes } from '../server/catalog/routes.ts'
import { deliveryRoutes } from '../server/deliveries.ts'
import { withAddress } from '../server/listen.ts'
import { type ServerOptions, createServer } from '../server/server.ts'
import { faultsOfSecretFiles } from '../config/secret-files.ts'
import { createLiveConfig } from '../config/running/live.ts'
import type { Config } from '../config/schema.ts'
import { faultsOfCertificates, readCertificate } from '../base/certificate.ts'
import { openAccount } from '../base/connections/account.ts'
import { MirrorError } from '../base/errors.ts'
import type { Logger } from '../base/log.ts'
import type { SourceName } from '../base/domain/sources.ts'
import { type Lock, acquireLock, announceAddress, announceInstance } from '../store/database/lock.ts'
import { startLocalKey } from '../store/local-key.ts'
import { checkLocks } from '../store/lock-effect.ts'
import { type PinnedReads, openPinnedReads } from '../store/reads.ts'
import { finishReplacing, keptAs } from '../store/salvage.ts'
import type { Run, RunKind } from '../store/runs/runs.ts'
import type { Progress } from '../sync/context.ts'
import { noteProgress } from '../sync/progress.ts'
import { needsRepair, startSyncThread } from '../sync/thread.ts'
import { collectWhenIdle } from '../base/threads/idle-memory.ts'
import { createInboxFault } from '../webhooks/inbox/fault.ts'
import { type Webhooks, startInbox, startWebhooks, tryWebhooks } from '../webhooks/webhooks.ts'
import { createMetrics } from './metrics/metrics.ts'
import type { Feature, GateParts, Parts } from './feature.ts'
import { createInboxView } from './inbox-view.ts'
import { createSignals } from './signals.ts'
import { type RunningFeatures, answersOf, joinGate, loadFeatures, startFeatures } from './start-features.ts'
import { createArrivals } from './verification/arrivals.ts'
import { applyLive } from './reload.ts'
import { type Running, type Wiring, stop } from './running.ts'
import { threadDeps } from './runs.ts'
import { createJobs } from './schedule.ts'
import { startScrub } from './verification/scrub.ts'
import { type StorageWatch, watchStorage } from './storage.ts'

/** Dependencies of an agent, and its callbacks for runs. */
interface AgentOptions {
  config: Config
  features: readonly Feature[]
  version: string
  log: Logger
  /** No connections: no schedules run, and any connection attempt fails. */
  offline?: boolean
  onProgress?: (progress: Progress) => void
  onEnded?: (report: Run) => void
}

/** The running program: started once, closed once. */
export type Agent = ReturnType<typeof createAgent>

/** The whole program behind `patchmirror serve`, wired. Everything meets here and nowhere else. */
export function createAgent(given: AgentOptions) {
  const { features, version, log, offline = false } = given
  const live = createLiveConfig(given.config, { offline, warn: (text) => log.warn({}, text) })
  const wiring: Wiring = {
    config: live.config,
    features,
    version,
    log,
    now: Date.now,
    offline,
    progress: noteProgress(given),
  }
  const on: Running = { stops: [], signals: createSignals() }
  on.signals.on('views', () => on.server?.snapshotChanged())
  return {
    /** Opens the data folder, serves, and starts the schedule. Throws `locked`, `schema`, `storage`, `corrupt`. */
    start: async (): ReturnType<typeof start> => {
      try {
        return await start(wiring, on)
      } catch (error) {
        await stop(on)
        throw error
      }
    },
    requestSync: (source: SourceName, kind: RunKind): void => on.thread?.requestSync(source, kind, 'command'),
    /** Reads files again: secrets of webhooks and certificates; logs what changed. */
    reload: (): void => [on.webhooks, on.server].forEach((one) => one?.reload()),
    /** Takes over the live settings (`config/running/live.ts`) of these; `changed` has the keys that differ. */
    apply: (next: Config, changed: readonly string[]): void => {
      live.replace(next)
      applyLive(wiring, on, changed)
    },
    /** Resolves with true while the serving thread answers. */
    answers: async (): Promise<boolean> => (await on.server?.answers()) ?? false,
    /** Stops accepting requests, lets those in flight finish, ends the run in flight, releases the folder. */
    close: (): Promise<void> => stop(on),
  }
}

/** Starts everything, what writes first, and what needs the others after them. */
async function start(wiring: Wiring, on: Running): Promise<{ url: string; port: number; instance: string }> {
  const core = await startCore(wiring, on)
  const { parts, gate, features } = core
  const { config, reads, thread } = parts
  const webhooks = (on.webhooks = receive(core))
  const running = (on.features = startFeatures(features, parts, gate))
  followServed(parts, on)
  const server = (on.server = createServer(servedBy(core, webhooks, running, on)))
  const jobs = (on.jobs = createJobs(wiring, reads, thread, gate !== null))
  if (gate === null) jobs.start() // its first look at a calendar is slow
  if (needsRepair(reads.live, config.data.dir)) await thread.started
  const address = await server.listen() // what is stored is served while the threads that write start
  on.announce = () => announceAddress(config.data.dir, core.instance, address)
  on.announce()
  await Promise.all([thread.started, core.inbox.started])
  core.storage.look()
  await webhooks.listen(address.url)
  on.stops.push(collectWhenIdle())
  await running.placed // else whether the first snapshots are relayed would be a matter of time
  jobs.catchUp()
  gate?.begin(address.url)
  return { ...address, instance: core.instance }
}

/** Starts what all others need: lock, storage, writing threads, the reads of what is served. */
async function startCore(wiring: Wiring, on: Running) {
  const { config, log, version } = wiring
  on.lock = lockFolder(config.data.dir, log)
  const instance = announceInstance(config.data.dir)
  const metrics = (on.metrics = createMetrics(version, certificatesOf(config)))
  const features = await loadFeatures(wiring.features)
  await tryStart(config, wiring.now)
  readyData(wiring, on)
  const storage = startWatch(wiring, on)
  const thread = (on.thread = startSyncThread(threadDeps(wiring, on)))
  const { inbox, fault, isExplained } = beginInbox(wiring, on)
  const opened = openReads(config.data.dir)
  const gate = (on.gate = joinGate(features, gateParts(wiring, opened, on)))
  const reads = (on.reads = gate?.reads ?? opened)
  const view = (on.view = createInboxView({ config, log, isExplained, onFound: fault.end })) // after the inbox, which creates webhooks.db
  const leads = (): boolean => gate?.leads() ?? true
  const parts: Parts = {
    ...wiring,
    progressOf: wiring.progress.progressOf,
    reads,
    thread,
    signals: on.signals,
    inbox: view,
    isExplained,
    leads,
  }
  const account = openAccount(log, metrics.countShort)
  return { parts, gate, features, instance, metrics, storage, inbox, fault, account }
}

type Core = Awaited<ReturnType<typeof startCore>>

/** Starts to receive deliveries, and to refresh for them. */
function receive({ parts, gate, inbox, fault, account, metrics }: Core): Webhooks {
  const { config, log, now, reads, thread, signals } = parts
  return startWebhooks({
    config,
    log,
    now,
    inbox,
    fault,
    reads,
    account,
    sync: thread,
    counters: metrics,
    refusal: () => gate?.refusal() ?? null,
    follower: { arrived: () => signals.send('delivered') },
    onWritten: parts.inbox.onWritten,
  })
}

/** Starts the core's own parts that follow what is served. Called last: the reader has moved on in all others. */
function followServed({ config, reads, thread, signals, log, now }: Parts, on: Running): void {
  const scrub = (on.scrub = startScrub({ config, log, now, reads, thread }))
  void thread.started.then(scrub.catchUp, () => undefined) // a thread that cannot start ends the daemon
  const verify = (): void => thread.rebuildArchive()
  const lookForArrivals = createArrivals({ config, reads, verify })
  signals.on('served', () => {
    lookForArrivals()
    thread.checkpoint() // also after an import or a run of another process
  })
  signals.on('views', () => thread.checkpoint()) // a build reads one snapshot for long, and the log could not be copied beyond it
}

/** What a gate acts on: the serving side, the runs and the schedule. */
function gateParts({ config, version, log, now, offline }: Wiring, reads: PinnedReads, on: Running): GateParts {
  return {
    config,
    version,
    log,
    now,
    offline,
    reads,
    onReleased: () => on.server?.snapshotChanged(),
    onServed() {
      on.thread?.checkpoint() // the pin has moved on, so the log can be copied
      on.thread?.resume()
    },
    onLead(leads) {
      on.jobs?.stop()
      on.signals.send('relaySettings')
      if (leads) on.jobs?.start()
      if (leads) on.jobs?.catchUp()
      else on.thread?.abort() // its lock would keep the next generation from being stored
      on.thread?.resume()
    },
  }
}

function openReads(dataDir: string): PinnedReads {
  const opened = openPinnedReads(dataDir)
  if (opened === null) throw new MirrorError('internal', 'the database is not there')
  return opened
}

/**
 * Tries everything that a start needs beside the data folder: certificates, webhook secrets, and both addresses at the same
 * time. A start that fails here has changed no database, so the version before still opens them. Throws `config`.
 */
async function tryStart(config: Config, now: () => number): Promise<void> {
  const { certFile, keyFile } = config.server
  if (certFile !== null && keyFile !== null) readCertificate({ certFile, keyFile }, 'server')
  await withAddress(config.server, () => tryWebhooks(config, now))
}

/** Makes the data folder ready, and its first key, before this thread begins to read. */
function readyData({ config, log, now }: Wiring, on: Running): void {
  const { data, server } = config
  const isInboxLost = lossOfInbox(data.dir) !== null
  readyFolder(data.dir, (text) => log.info({}, text))
  on.stops.push(followNumbers(data.dir, log, now(), isInboxLost))
  if (server.keys.length === 0) on.stops.push(startLocalKey(data.dir, now, log))
}

/** Starts the inbox, and notes what is wrong with it for all that use webhooks.db. */
function beginInbox({ config, log, now }: Wiring, on: Running) {
  const fault = createInboxFault({ dataDir: config.data.dir, log, now })
  const inbox = (on.inbox = startInbox({ config, fault }))
  const isExplained = (message: string): boolean => fault.noteOwn(message) || on.storage?.explains(message) === true
  return { inbox, fault, isExplained }
}

/** Watches the data folder until the daemon stops. */
function startWatch({ config, log, now }: Wiring, on: Running): StorageWatch {
  const onRoom = (): void => on.announce?.()
  const watch = watchStorage({ dataDir: config.data.dir, log, now, onRoom })
  on.storage = watch
  on.stops.push(watch.stop)
  return watch
}

function certificatesOf({ server, webhooks }: Config) {
  return { server: server.certFile, webhooks: webhooks.certFile }
}

/** Returns what the server is made from: what is stored, and what the parts of the daemon add to it. */
function servedBy(core: Core, webhooks: Webhooks, running: RunningFeatures, on: Running): ServerOptions {
  const { parts, features, gate, storage, metrics, account, instance } = core
  const { config, version, log, now, reads, thread, inbox, signals } = parts
  const { plugins = [], ...answers } = answersOf(features, parts)
  return {
    reads,
    dataDir: config.data.dir,
    config,
    version,
    log,
    now,
    startedAt: now(),
    metrics,
    account,
    nextRunAt: (source) => on.retries?.nextAt(source) ?? on.jobs?.nextRunAt(source) ?? null,
    onArchiveLost: () => thread.rebuildArchive(),
    onUnreadable: storage.note,
    ...answers,
    // Those of the catalog last: they have what is left of its surfaces.
    plugins: [...running.plugins, deliveryRoutes(webhooks), ...plugins, catalogRoutes],
    shown: {
      ...running.shown,
      ...(gate !== null && { fleet: gate.status }),
      webhooks: webhooks.report,
      storage: storage.state,
      secretFaults: () => [...faultsOfSecretFiles(config), ...faultsOfCertificates(config), ...webhooks.secretFaults()],
      instance,
      progressOf: parts.progressOf,
    },
    followed: {
      ...running.followed,
      webhookLog: inbox.webhookLog,
      onServed: (upTo) => signals.send('served', upTo),
    },
  }
}

/** Takes the lock of the daemon, where locks of the data folder work; before, ends a repair that was killed at its last step. */
function lockFolder(dataDir: string, log: Logger): Lock {
  const aside = finishReplacing(dataDir)
  if (aside !== null) log.warn({}, `a repair was killed at its end: all is mirrored again, and ${keptAs(aside)}`)
  const isLogLost = hasLostLog(databasePath(dataDir)) // before the lock forgets what the last daemon had open
  const lock = acquireLock(dataDir, 'serve')
  try {
    if (isLogLost) keepLog(databasePath(dataDir), (text) => log.warn({}, text))
    checkLocks(dataDir, (text) => log.warn({}, text))
    return lock
  } catch (error) {
    lock.release()
    throw error
  }
}
