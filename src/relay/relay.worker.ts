import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { relayUrls } from '../config/kinds/urls.ts'
import type { Config } from '../config/schema.ts'
import { MirrorError } from '../core/errors.ts'
import { createChangeCheck } from '../store/database/change-check.ts'
import { type Db, openInbox, openReader } from '../store/database/open.ts'
import { createRelayOutbox } from '../store/webhooks/outbox.ts'
import { readFindings } from '../store/findings/database.ts'
import { createReads } from '../store/reads.ts'
import { collectWhenIdle } from '../threads/idle-memory.ts'
import { type StopMessage, type WorkerStarted, openOrRefuse } from '../threads/supervisor.ts'
import { createTransport } from '../upstream/http/transport.ts'
import { createRelay } from './relay.ts'
import type { RelayStateChange } from './state-changes.ts'
import { createSender, createSigner, formatSecret } from './sender.ts'

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

/** Interval between checks for new and due deliveries, milliseconds. */
const CHECK_MS = 1_000

/** Runs the relay in its own thread, so that its writes and waits do not delay the thread that serves requests. */
function main(port: MessagePort): void {
  const { config, version } = workerData as RelayStart
  const send = (message: FromRelay | WorkerStarted): void => port.postMessage(message)
  const opened = openOrRefuse(port, () => open(config))
  if (opened === null) return
  collectWhenIdle()
  const { outbox: db, mirror } = opened
  const { relay, upstream } = config
  const settings = { ...relay, targets: relayUrls(relay) }
  const reads = createReads(mirror)
  const transport = createTransport({
    ...upstream,
    proxy: null, // that is upstream's proxy; targets use HTTPS_PROXY and NO_PROXY
    // Connections are limited by host, requests by target: several targets may be on one host.
    concurrency: settings.concurrency * Math.max(1, settings.targets.length),
    connectTimeoutMs: Math.min(upstream.connectTimeoutMs, settings.timeoutMs),
    requestTimeoutMs: settings.timeoutMs,
  })
  const deps = { transport, timeoutMs: settings.timeoutMs, now: Date.now }
  const sign = createSigner(
    settings.secret ?? formatSecret(reads.secrets.readSecret('relay')),
    settings.dialect,
  )
  const chat = { urls: new Set(relay.chatTargets), template: relay.chatTemplate }
  let [served, servesFindings] = [0, false]
  const relayLoop = createRelay({
    settings,
    outbox: createRelayOutbox(db),
    reads: () => reads,
    changed: createChangeCheck([db]), // of what is published, the serving thread tells
    served: () => served,
    findings: (use) => readFindings(config.data.dir, use),
    servesFindings: () => servesFindings,
    send: createSender({ ...deps, sign, chat, userAgent: `patchmirror/${version}` }),
    now: Date.now,
    random: Math.random,
    onFault: (message) => send({ type: 'fault', message }),
    onTurn: (turn) => send({ type: 'turn', turn }),
  })
  const timer = setInterval(() => relayLoop.poll(), CHECK_MS)
  port.on('message', (message: ToRelay) => {
    if (message.type !== 'stop') {
      if (message.type === 'judged') relayLoop.judged()
      else if (message.type === 'findings') servesFindings = message.isServed
      else served = message.log
      relayLoop.tick()
      return
    }
    clearInterval(timer)
    relayLoop.stop()
    void transport.close().finally(() => {
      db.close()
      mirror.close()
      port.close()
    })
  })
  relayLoop.tick() // before ready: what is published after it is relayed
  send({ type: 'ready' })
}

function open({ data }: RelayStart['config']): { outbox: Db; mirror: Db } {
  const mirror = openReader(data.dir)
  if (mirror === null) throw new MirrorError('not_ready', 'the database is not there yet')
  return { outbox: openInbox(data.dir), mirror }
}

if (parentPort !== null) main(parentPort)
