import type { AddressInfo, Socket } from 'node:net'
import type { Config } from '../../config/schema.ts'
import { type LimitedConnection, isReserved, shareReserve } from '../../core/connections/limit.ts'
import { supervise } from '../../threads/supervisor.ts'
import { workerFile } from '../../threads/worker-file.ts'
import type { ServerLog } from '../http/problems.ts'
import { BACKLOG } from '../listen.ts'
import { type HandOver, openHandOver } from './hand-over.ts'
import type { FromServing, OpenedConnection, ServingSettings, ServingStart, ToServing } from './messages.ts'
import { type RemoteConnection, createRemote } from './remote.ts'
import { type AnswerMetrics, type PinMoves, createActivity, createAnswerCounts } from './shared.ts'

/** The serving threads beside the main one. */
interface ServingThreads {
  /** Has them listen on what the main thread listens on; resolves when all do. Throws `config`. */
  listen(at: AddressInfo): Promise<void>
  /** Snapshots may have been committed, or the write-ahead log was copied. */
  readonly look: () => void
  /** Closes all their connections at once. */
  readonly cut: () => void
  /** Has them accept no more; resolves when all their connections are closed. */
  close(): Promise<void>
}

/** What the main thread does for the others. */
interface MainThread {
  readonly dataDir: string
  readonly config: Config
  readonly log: ServerLog | null
  readonly moves: PinMoves
  /** Counts a connection within the limits; false: it was refused and destroyed. */
  readonly admit: (connection: LimitedConnection) => boolean
  /** Whether the fast path may answer on a new connection. */
  readonly isFast: () => boolean
  /** Serves a connection that was handed over. */
  readonly serve: (socket: Socket) => void
  /** A thread that has not ended so long after `close` is terminated, milliseconds. */
  readonly stopTimeoutMs: number
  /** Counts what another thread answered. */
  readonly metrics?: AnswerMetrics
  /** Another thread's pin moved: the write-ahead log can be copied further. */
  readonly onMoved?: () => void
}

const NONE: ServingThreads = {
  listen: () => Promise.resolve(),
  look: () => undefined,
  cut: () => undefined,
  close: () => Promise.resolve(),
}

/** Creates the threads that `server.threads` asks for beside the main one; they start with `listen`. */
export function createServingThreads(main: MainThread): ServingThreads {
  const { memory } = main.moves
  if (memory === null) return NONE
  const threads: ServingThread[] = []
  let handOver: HandOver | null = null
  const take = (socket: Socket, thread: number, id: number): boolean => {
    const remote = threads[thread]?.find(id)
    if (remote === undefined || !remote.join(socket)) return false
    shareReserve(remote, socket)
    main.serve(socket)
    return true
  }
  const each = (act: (thread: ServingThread) => unknown): unknown[] => threads.map(act)
  return {
    async listen(at) {
      handOver = await openHandOver(main.dataDir, take)
      const place = { host: at.address, port: at.port, backlog: BACKLOG, handOver: handOver.place }
      const shared = { ...place, dataDir: main.dataDir, settings: settingsOf(main.config) }
      for (let thread = 0; thread < main.config.server.threads - 1; thread++)
        threads.push(startThread({ ...shared, thread, moves: memory }, main))
      await Promise.all(each(({ started }) => started))
    },
    look: () => each(({ post }) => post({ type: 'look' })),
    cut: () => each(({ post }) => post({ type: 'cut' })),
    async close() {
      await Promise.all(each(({ stop }) => stop()))
      await handOver?.close()
    },
  }
}

/** One serving thread, and its connections. */
interface ServingThread {
  readonly started: Promise<void>
  readonly post: (message: ToServing) => void
  readonly stop: () => Promise<void>
  readonly find: (id: number) => RemoteConnection | undefined
}

type Shared = Omit<ServingStart, 'counts' | 'activity' | 'bounds'>

function startThread(shared: Shared, main: MainThread): ServingThread {
  const { log, metrics } = main
  const bounds = metrics?.answerBounds ?? []
  const counts = createAnswerCounts(bounds)
  const activity = createActivity()
  metrics?.addThread({ totals: counts.totals, isReady: () => supervisor.isReady })
  const answered = new Uint32Array(activity)
  const remotes = new Map<number, RemoteConnection>()
  const post = (message: ToServing): void => supervisor.post(message)
  const onOpened = (opened: OpenedConnection): void => {
    const { id } = opened
    const remote = createRemote(opened, answered, post)
    remotes.set(id, remote)
    if (!main.admit(remote)) return
    const isFast = main.isFast() && !isReserved(remote)
    post({ type: 'admitted', id, isFast })
  }
  const onClosed = (id: number): void => {
    remotes.get(id)?.closed()
    remotes.delete(id)
  }
  const supervisor = supervise<ToServing, FromServing>({
    file: workerFile('serving.worker', import.meta.url),
    data: () => ({ ...shared, counts: counts.memory, activity, bounds }) satisfies ServingStart,
    mustStart: true,
    stopTimeoutMs: main.stopTimeoutMs,
    onMessage(message) {
      if (message.type === 'opened') onOpened(message)
      else if (message.type === 'closed') onClosed(message.id)
      else if (message.type === 'moved') main.onMoved?.()
      else log?.[message.level]({ thread: shared.thread }, `serving thread: ${message.message}`)
    },
    onReady(isRestart) {
      if (isRestart) log?.info({ thread: shared.thread }, 'a serving thread (server.threads) was replaced')
    },
    onFailed: (message) =>
      log?.error({ thread: shared.thread }, `a serving thread (server.threads) failed, and is replaced: ${message}`),
    onEnded(failure) {
      for (const id of [...remotes.keys()]) onClosed(id)
      if (failure === null && !state.isStopping)
        log?.error({ thread: shared.thread }, 'a serving thread (server.threads) ended, and is replaced')
    },
  })
  const state = { isStopping: false }
  return {
    started: supervisor.started,
    post,
    find: (id) => remotes.get(id),
    stop() {
      state.isStopping = true
      return supervisor.stop()
    },
  }
}

/** Only what a serving thread needs, and no secret. */
function settingsOf({ server, edge, osv, feeds, catalog, identity }: Config): ServingSettings {
  const { cacheBytes, cacheMaxAgeSeconds, keepAliveSeconds, threads } = server
  const { maxAgeSeconds, tagHeader } = edge
  return {
    server: { cacheBytes, cacheMaxAgeSeconds, keepAliveSeconds, threads },
    edge: { maxAgeSeconds, tagHeader },
    osv: ageOf(osv),
    feeds: ageOf(feeds),
    catalog: ageOf(catalog),
    identity: ageOf(identity),
  }
}

function ageOf({ maxAgeHours, staleAction }: ServingSettings['osv']): ServingSettings['osv'] {
  return { maxAgeHours, staleAction }
}
