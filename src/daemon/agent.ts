import { readyFolder } from '../store/database/open.ts'
import { followNumbers } from '../store/restored.ts'
import { catalogRoutes } from '../server/catalog/routes.ts'
import { deliveryRoutes } from '../server/deliveries.ts'
import { type MirrorServer, type ServerOptions, createServer } from '../server/server.ts'
import { faultsOfSecretFiles } from '../config/secret-files.ts'
import { createLiveConfig } from '../config/running/live.ts'
import type { Config } from '../config/schema.ts'
import { openAccount } from '../base/connections/account.ts'
import { MirrorError } from '../base/errors.ts'
import type { Logger } from '../base/log.ts'
import type { SourceName } from '../base/domain/sources.ts'
import { type Lock, acquireLock, announceAddress, announceInstance } from '../store/database/lock.ts'
import { awaitRoom, probeStorage } from '../store/disk-state.ts'
import { startLocalKey } from '../store/local-key.ts'
import { checkLocks } from '../store/lock-effect.ts'
import { type PinnedReads, openPinnedReads } from '../store/reads.ts'
import { finishReplacing, keptAs } from '../store/salvage.ts'
import type { Run, RunKind } from '../store/runs/runs.ts'
import type { Progress } from '../sync/context.ts'
import { noteProgress } from '../sync/progress.ts'
import type { Schedule } from '../sync/schedule.ts'
import { type SyncThread, type SyncThreadDeps, needsRepair, startSyncThread } from '../sync/thread.ts'
import { collectWhenIdle } from '../base/threads/idle-memory.ts'
import { createInboxFault } from '../webhooks/inbox/fault.ts'
import type { InboxThread } from '../webhooks/inbox/thread.ts'
import { type Webhooks, startInbox, startWebhooks } from '../webhooks/webhooks.ts'
import { type Counters, createMetrics } from './metrics/metrics.ts'
import type { Answers, Feature, Gate, GateParts, Parts } from './feature.ts'
import { type InboxView, createInboxView } from './inbox-view.ts'
import { type Signals, createSignals } from './signals.ts'
import { tryStart } from './start-check.ts'
import { type RunningFeatures, answersOf, joinGate, loadFeatures, startFeatures } from './start-features.ts'
import { createArrivals } from './verification/arrivals.ts'
import { applyLive } from './reload.ts'
import { createRunLog, logPostponed, logRetries } from './log-lines.ts'
import { type RunRetries, createRetries, jobStarter } from './schedule.ts'
import { type RunningScrub, startScrub } from './verification/scrub.ts'
import { type StorageWatch, watchStorage } from './storage.ts'

/** Dependencies of an agent, and its callbacks for runs. */
interface AgentOptions {
  config: Config
  features: readonly Feature[]
  version: string
  log: Logger
  now?: () => number
  /** No connections: no schedules run, and any connection attempt fails. */
  offline?: boolean
  onProgress?: (progress: Progress) => void
  onEnded?: (report: Run) => void
  onRunLost?: (source: SourceName | null) => void
}

/** The same, with what an agent has of its own. */
type Wired = Omit<AgentOptions, 'now' | 'offline'> & Pick<Parts, 'now' | 'offline' | 'progressOf'>

/** The running program: started once, closed once. */
export interface Agent {
  /** Opens the data folder, serves, and starts the schedule. Throws `locked`, `schema`, `storage`, `corrupt`. */
  start(): Promise<{ url: string; port: number; instance: string }>
  requestSync(source: SourceName, kind: RunKind): void
  /** Reads files again: secrets of webhooks and certificates; logs what changed. */
  reload(): void
  /** Takes over the live settings (`config/running/live.ts`) of these; `changed` has the keys that differ. */
  apply: (next: Config, changed: readonly string[]) => void
  /** Resolves with true while the serving thread answers. */
  answers(): Promise<boolean>
  /** Stops accepting requests, lets those in flight finish, ends the run in flight, releases the folder. */
  close(): Promise<void>
}

/** The whole program behind `patchmirror serve`, wired. Everything meets here and nowhere else. */
export function createAgent(given: AgentOptions): Agent {
  const { log: to, offline = false } = given
  const live = createLiveConfig(given.config, { offline, warn: (text) => to.warn({}, text) })
  const now = given.now ?? Date.now
  const options: Wired = { ...given, ...noteProgress(given), config: live.config, offline, now }
  const on: Running = { stops: [], signals: createSignals() }
  on.signals.on('views', () => on.server?.snapshotChanged())
  return {
    start: () =>
      startOrClose(
        () => start(options, on),
        () => stop(on),
      ),
    requestSync: (source, kind) => on.thread?.requestSync(source, kind, 'command'),
    reload: () => [on.webhooks, on.server].forEach((one) => one?.reload()),
    apply(next, changed) {
      live.replace(next)
      applyLive(options, on, changed)
    },
    answers: async () => (await on.server?.answers()) ?? false,
    close: () => stop(on),
  }
}

/** Starts everything, what writes first, and what needs the others after them. */
async function start(options: Wired, on: Running): ReturnType<Agent['start']> {
  const core = await startCore(options, on)
  const { parts, gate, features } = core
  const { config, reads, thread } = parts
  const webhooks = (on.webhooks = receive(core))
  const running = (on.features = startFeatures(features, parts, gate))
  followServed(parts, on)
  const server = (on.server = createServer({
    ...serverOptions(options, reads, on),
    onArchiveLost: () => thread.rebuildArchive(),
    ...pathsOf(webhooks, running, answersOf(features, options)),
    metrics: core.metrics,
    account: core.account,
    onUnreadable: core.storage.note,
    shown: {
      ...running.shown,
      ...(gate !== null && { fleet: gate.status }),
      webhooks: webhooks.report,
      storage: core.storage.state,
      secretFaults: () => [...faultsOfSecretFiles(config), ...webhooks.secretFaults()],
      instance: core.instance,
      progressOf: options.progressOf,
    },
    followed: {
      ...running.followed,
      webhookLog: parts.inbox.webhookLog,
      onServed: (upTo) => parts.signals.send('served', upTo),
    },
  }))
  const startJobs = jobStarter(options, reads, thread, gate !== null)
  const begin = (): Schedule => (on.schedule = (on.startSchedule = startJobs)(config.sync))
  const schedule = gate === null ? begin() : null // its first look at a calendar is slow
  if (needsRepair(reads.live, config.data.dir)) await thread.started
  const at = await server.listen() // what is stored is served while the threads that write start
  const address = (on.announce = () => announceAddress(config.data.dir, core.instance, at))()
  await Promise.all([thread.started, core.inbox.started])
  core.storage.look()
  await webhooks.listen(address.url)
  on.stops.push(collectWhenIdle())
  await running.placed // else whether the first snapshots are relayed would be a matter of time
  on.lead = () => begin().catchUp()
  schedule?.catchUp()
  gate?.begin(address.url)
  return { ...address, instance: core.instance }
}

/** Starts what all others need: lock, storage, writing threads, the reads of what is served. */
async function startCore(options: Wired, on: Running) {
  const { config, log, version } = options
  on.lock = lockFolder(config.data.dir, log)
  const instance = announceInstance(config.data.dir)
  const metrics = (on.metrics = createMetrics(version, certificatesOf(config)))
  const features = await loadFeatures(options.features)
  await readyData(options, on)
  const storage = startWatch(options, on)
  const thread = (on.thread = startSyncThread(threadDeps(options, on)))
  const { inbox, fault, isExplained } = beginInbox(options, on)
  const opened = openReads(config.data.dir)
  const gate = (on.gate = joinGate(features, gateParts(options, opened, on)))
  const reads = (on.reads = gate?.reads ?? opened)
  const view = (on.view = createInboxView({ config, log, isExplained })) // after the inbox, which creates webhooks.db
  const leads = (): boolean => gate?.leads() ?? true
  const parts: Parts = { ...options, reads, thread, signals: on.signals, inbox: view, isExplained, leads }
  const account = openAccount(log, metrics.countShort)
  return { parts, gate, features, instance, metrics, storage, inbox, fault, account }
}

/** Starts to receive deliveries, and to refresh for them. */
function receive({ parts, gate, inbox, fault, account, metrics }: Awaited<ReturnType<typeof startCore>>): Webhooks {
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
function gateParts({ config, version, log, now, offline }: Wired, reads: PinnedReads, on: Running): GateParts {
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
      on.schedule?.stop()
      delete on.schedule
      delete on.startSchedule
      on.signals.send('relaySettings')
      if (leads) on.lead?.()
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

/** The paths of all modules, those of the catalog last: they have what is left of its surfaces. */
function pathsOf(webhooks: Webhooks, running: RunningFeatures, { plugins = [], ...answers }: Answers) {
  return { ...answers, plugins: [...running.plugins, deliveryRoutes(webhooks), ...plugins, catalogRoutes] }
}

/** What runs by now. */
interface Running {
  lock?: Lock
  thread?: SyncThread
  reads?: PinnedReads | undefined
  server?: MirrorServer
  schedule?: Schedule
  startSchedule?: (sync: Config['sync']) => Schedule
  /** Starts the schedule. */
  lead?: () => void
  gate?: Gate | null
  features?: RunningFeatures
  webhooks?: Webhooks
  inbox?: InboxThread
  view?: InboxView
  scrub?: RunningScrub
  metrics?: Counters
  storage?: StorageWatch
  /** Writes where the daemon listens. */
  announce?: () => { port: number; url: string }
  stops: (() => void)[]
  readonly signals: Signals
  retries?: RunRetries
}

/** Stops what runs, in this order: what writes first, what serves after it. */
async function stop(on: Running): Promise<void> {
  on.webhooks?.refuse()
  on.stops.forEach((end) => end())
  on.retries?.stop()
  on.schedule?.stop()
  await Promise.all([on.gate?.close(), on.scrub?.close()])
  await on.thread?.stop()
  await on.features?.close()
  await on.server?.close()
  on.view?.close()
  await on.webhooks?.close()
  await on.inbox?.close()
  on.reads?.close()
  on.lock?.release()
}

/** Tries what else a start needs; then makes the data folder ready, and its first key, before this thread begins to read. */
async function readyData({ config, log, now }: Wired, on: Running) {
  const { data, server } = config
  await tryStart(config, now)
  readyFolder(data.dir, (text) => log.info({}, text))
  on.stops.push(followNumbers(data.dir, log, now()))
  if (server.keys.length === 0) on.stops.push(startLocalKey(data.dir, now, log))
}

function startOrClose<T>(start: () => Promise<T>, close: () => Promise<void>): Promise<T> {
  return start().catch(async (error: unknown) => {
    await close()
    throw error
  })
}

/** Reacts on the serving side to messages of the sync thread. */
function threadDeps(options: Wired, on: Running): SyncThreadDeps {
  const { config, version, log, offline } = options
  const retry = (source: SourceName): void => on.thread?.requestSync(source, 'sync', 'retry')
  const retryWithRoom = awaitRoom(config.data.dir, retry)
  const isStored = (source: SourceName) => !!on.reads?.live.snapshots.readSnapshot(source)
  const retries = (on.retries = createRetries(isStored, retry))
  const logEnded = createRunLog(log, options.now)
  return {
    offline,
    mayRun: () => on.gate?.mayRun() ?? true,
    config,
    version,
    onEnded(report) {
      on.server?.snapshotChanged()
      on.gate?.committed()
      on.metrics?.countRun(report)
      on.thread?.checkpoint() // the reader has moved on, so the log can be copied
      logEnded(report)
      // With nothing to serve yet, the next hour is too far away.
      const isEmpty = ['failed', 'stopped'].includes(report.state) && report.snapshot === null
      if (isEmpty && config.upstream.apiRoot !== null) retries.plan(report.source)
      if (report.code === 'storage' || report.code === 'corrupt') on.storage?.look()
      if (report.code === 'storage') retryWithRoom(report.source)
      options.onEnded?.(report)
    },
    onCheckpoint() {
      readOrNote(on, () => on.reads?.repin())
      on.server?.snapshotChanged() // in the same event-loop iteration: another process may have committed just now
    },
    onFailed(request, message) {
      log.error({ request }, message)
      options.onRunLost?.(request?.source ?? null)
      // Not even its row could be written.
      on.storage?.look()
      const isFull = probeStorage(config.data.dir, true).state !== 'ok'
      if (request !== null && isFull) retryWithRoom(request.source)
    },
    onPostponed(request, message) {
      retries.postponed(request.source)
      logPostponed(log, request, message)
    },
    onProgress: logRetries(log, (progress) => options.onProgress?.(progress)),
    onWarning: (message) => log.warn({}, message),
  }
}

/** Starts the inbox, and notes what is wrong with it for all that use webhooks.db. */
function beginInbox({ config, log, now }: Wired, on: Running) {
  const fault = createInboxFault({ dataDir: config.data.dir, log, now })
  const inbox = (on.inbox = startInbox({ config, fault }))
  const isExplained = (message: string): boolean => fault.noteOwn(message) || on.storage?.explains(message) === true
  return { inbox, fault, isExplained }
}

/** Watches the data folder until the daemon stops. */
function startWatch({ config, log, now }: Wired, on: Running): StorageWatch {
  const onRoom = (): void => void on.announce?.()
  const watch = watchStorage({ dataDir: config.data.dir, log, now, onRoom })
  on.storage = watch
  on.stops.push(watch.stop)
  return watch
}

function certificatesOf({ server, webhooks }: Config) {
  return { server: server.certFile, webhooks: webhooks.certFile }
}

/** Does a read that nothing waits for. What cannot be read is logged by what watches the data folder. */
function readOrNote(on: Running, read: () => void): void {
  try {
    read()
  } catch (error) {
    if (on.storage?.note(error) !== true) throw error
  }
}

function serverOptions({ config, version, log, now }: Wired, reads: PinnedReads, on: Running): ServerOptions {
  const nextRunAt = (source: SourceName): number | null =>
    on.retries?.nextAt(source) ?? on.schedule?.nextRunAt(source) ?? null
  const dataDir = config.data.dir
  return { reads, dataDir, config, version, now, log, nextRunAt, startedAt: now() }
}

/** Takes the lock of the daemon, where locks of the data folder work; before, ends a repair that was killed at its last step. */
function lockFolder(dataDir: string, log: AgentOptions['log']): Lock {
  const aside = finishReplacing(dataDir)
  if (aside !== null) log.warn({}, `a repair was killed at its end: all is mirrored again, and ${keptAs(aside)}`)
  const lock = acquireLock(dataDir, 'serve')
  try {
    checkLocks(dataDir, (text) => log.warn({}, text))
    return lock
  } catch (error) {
    lock.release()
    throw error
  }
}
