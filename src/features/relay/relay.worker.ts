import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { chatUrls, relayTargets } from '../../config/kinds/relay-targets.ts'
import type { Config } from '../../config/schema.ts'
import { MirrorError, messageOf } from '../../base/errors.ts'
import { type Db, openInbox, openReader } from '../../store/database/open.ts'
import { createChangeCheck } from '../../store/database/change-check.ts'
import { createRelayOutbox } from '../../store/webhooks/outbox.ts'
import type { UnsetTarget } from '../../store/webhooks/target-settings.ts'
import { readFindings } from '../../store/findings/database.ts'
import { timeOfAges } from '../../store/runs/age-limit.ts'
import { type Reads, createReads } from '../../store/reads.ts'
import { collectWhenIdle } from '../../base/threads/idle-memory.ts'
import { type StopMessage, type WorkerStarted, openOrRefuse } from '../../base/threads/supervisor.ts'
import { type RelaySettings, createRelay } from './relay.ts'
import type { RelayStateChange } from './state-changes.ts'

/** Start data of the relay's thread. */
export interface RelayStart {
  readonly config: Pick<Config, 'relay' | 'upstream' | 'data'>
  readonly version: string
}

export type ToRelay =
  /** The change log is served up to here. */
  | { readonly type: 'served'; readonly log: number }
  /** The tags were judged again. */
  | { readonly type: 'judged' }
  /** Whether the findings of tags are served. */
  | { readonly type: 'findings'; readonly isServed: boolean }
  | StopMessage

export type FromRelay =
  | { readonly type: 'fault'; readonly message: string }
  | { readonly type: 'turn'; readonly turn: RelayStateChange }
  | { readonly type: 'unset'; readonly target: UnsetTarget; readonly is: 'paused' | 'forgotten' }

/** Requests at the same time to one target: a burst is quick, and a receiver is not flooded. */
const CONCURRENCY = 4
/** Deadline of one attempt, milliseconds. A receiver answers at once and works later; slow ones do not delay others. */
const TIMEOUT_MS = 15_000
/** Interval between checks for due deliveries, milliseconds. */
const CHECK_MS = 1_000

/** Runs the relay in its own thread, so that its writes and waits do not delay the thread that serves requests. */
function main(port: MessagePort): void {
  const { config, version } = workerData as RelayStart
  const send = (message: FromRelay | WorkerStarted): void => port.postMessage(message)
  const opened = openOrRefuse(port, () => open(config))
  if (opened === null) return
  collectWhenIdle()
  const { outbox: db, mirror } = opened
  const reads = createReads(mirror)
  const settings = { ...config.relay, concurrency: CONCURRENCY, targets: relayTargets(config.relay) }
  const sending = createSending(() => connect(config, settings, version, reads))
  let served = 0
  let servesFindings = false
  const relayLoop = createRelay({
    settings,
    outbox: createRelayOutbox(db),
    reads: () => reads,
    changed: createChangeCheck([db]),
    served: () => served,
    findings: (use) => readFindings(config.data.dir, use),
    servesFindings: () => servesFindings,
    send: sending.send,
    now: Date.now,
    random: Math.random,
    onFault: (message) => send({ type: 'fault', message }),
    onTurn: (turn) => send({ type: 'turn', turn }),
    onUnset: (target, is) => send({ type: 'unset', target, is }),
  })
  const timer = setInterval(() => relayLoop.poll(), CHECK_MS)
  port.on('message', (message: ToRelay) => {
    if (message.type !== 'stop') {
      if (message.type === 'judged') relayLoop.judged()
      else if (message.type === 'findings') servesFindings = message.isServed
      else served = message.log
      return relayLoop.tick()
    }
    clearInterval(timer)
    relayLoop.stop()
    void sending.close().finally(() => {
      db.close()
      mirror.close()
      port.close()
    })
  })
  relayLoop.tick() // before ready: what is published after it is relayed
  send({ type: 'ready' })
}

/** Creates a sender that connects with the first delivery. What cannot be loaded is a failure of the delivery, which is tried again. */
function createSending(load: () => ReturnType<typeof connect>) {
  let connecting: ReturnType<typeof connect> | null = null
  return {
    send: async (...delivery: Parameters<RelaySend>): ReturnType<RelaySend> => {
      try {
        const { send } = await (connecting ??= load())
        return await send(...delivery)
      } catch (error) {
        connecting = null
        return { failure: `the relay cannot send: ${messageOf(error)}` }
      }
    },
    close: async (): Promise<void> => (await connecting)?.transport.close(),
  }
}

type RelaySend = Parameters<typeof createRelay>[0]['send']

/** Loads what sends, with the first delivery: the modules of an HTTP client take more memory than all others of this thread. */
async function connect(
  { relay, upstream }: RelayStart['config'],
  settings: RelaySettings & Pick<Config['relay'], 'secret'>,
  version: string,
  reads: Pick<Reads, 'secrets' | 'catalog' | 'runs' | 'snapshots'>,
) {
  const [{ createTransport }, { createSender, createSigner, formatSecret }, { isOldNews }] = await Promise.all([
    import('../../upstream/http/transport.ts'),
    import('./sender.ts'),
    import('./news.ts'),
  ])
  const transport = createTransport({
    ...upstream,
    proxy: null, // that is upstream's proxy; targets use HTTPS_PROXY and NO_PROXY
    // Connections are limited by host, requests by target: several targets may be on one host.
    concurrency: CONCURRENCY * Math.max(1, settings.targets.length),
    requestTimeoutMs: TIMEOUT_MS,
  })
  const sign = createSigner(settings.secret ?? formatSecret(reads.secrets.readSecret('relay')))
  const isOld = (body: Uint8Array): boolean => isOldNews(body, reads.catalog, timeOfAges(reads, Date.now()))
  const chat = { urls: new Set(chatUrls(relay)), isOld }
  const userAgent = `patchmirror/${version}`
  const send = createSender({ transport, sign, chat, timeoutMs: TIMEOUT_MS, userAgent, now: Date.now })
  return { transport, send }
}

function open({ data }: RelayStart['config']): { outbox: Db; mirror: Db } {
  const mirror = openReader(data.dir)
  if (mirror === null) throw new MirrorError('not_ready', 'the database is not there yet')
  return { outbox: openInbox(data.dir), mirror }
}

if (parentPort !== null) main(parentPort)
