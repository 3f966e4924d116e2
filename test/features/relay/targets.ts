import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { type IncomingMessage, type Server, type ServerResponse, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'
import { loadQuick } from '../../support/limits.ts'
import { type Relay, type RelaySettings, createRelay } from '../../../src/features/relay/relay.ts'
import { createSender, createSigner } from '../../../src/features/relay/sender.ts'
import type { EventTarget } from '../../../src/base/domain/image-reference.ts'
import { createChangeCheck } from '../../../src/store/database/change-check.ts'
import { relayTargets } from '../../../src/config/kinds/relay-targets.ts'
import { openInbox, openReader } from '../../../src/store/database/open.ts'
import { createInbox } from '../../../src/store/webhooks/inbox.ts'
import { type RelayOutbox, createRelayOutbox } from '../../../src/store/webhooks/outbox.ts'
import { readFindings } from '../../../src/store/findings/database.ts'
import { createReads } from '../../../src/store/reads.ts'
import { openWrites } from '../../../src/store/writes.ts'
import { createTransport } from '../../../src/upstream/http/transport.ts'
import { NOW, record, scratch, snapshot } from '../../store/fixtures.ts'

export const SECRET = `whsec_${Buffer.from('a key for the relay tests').toString('base64')}`

/** A request as a target got it. */
export interface Got {
  id: string
  /** Path and query. */
  url: string
  timestamp: number
  /** Whether the signature is right, judged without the program's own code. */
  signed: boolean
  headers: IncomingMessage['headers']
  body: Buffer
}

/** What a target does with a request; a number is the status to answer. */
export type Manner = number | ((response: ServerResponse, got: Got) => void)

/** A receiver on loopback: answers by `manner`, and remembers what came. */
export interface Target {
  url: string
  got: Got[]
  ids(): string[]
  manner: Manner
  close(): Promise<void>
}

export async function target(manner: Manner = 204, port = 0): Promise<Target> {
  const got: Got[] = []
  const server = createServer((request, response) => {
    void take(request).then((one) => {
      got.push(one)
      if (typeof made.manner === 'number') response.writeHead(made.manner).end()
      else made.manner(response, one)
    })
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const { port: bound } = server.address() as AddressInfo
  const made: Target = {
    url: `http://127.0.0.1:${bound}/hook?token=private`,
    got,
    ids: () => got.map(({ id }) => id),
    manner,
    close: () => closeServer(server),
  }
  onTestFinished(() => closeServer(server))
  return made
}

async function closeServer(server: Server): Promise<void> {
  if (!server.listening) return
  server.closeAllConnections()
  const closed = once(server, 'close')
  server.close()
  await closed
}

async function take(request: IncomingMessage): Promise<Got> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const body = Buffer.concat(chunks)
  const { headers } = request
  const id = String(headers['webhook-id'])
  const time = String(headers['webhook-timestamp'])
  const key = Buffer.from(SECRET.slice('whsec_'.length), 'base64')
  const mac = createHmac('sha256', key).update(`${id}.${time}.`).update(body).digest('base64')
  const hex = createHmac('sha256', SECRET).update(`${id}.${time}.`).update(body).digest('hex')
  const signed = headers['webhook-signature'] === `v1,${mac} v1,${hex}`
  return { id, url: request.url ?? '', timestamp: Number(time), signed, headers, body }
}

/** How a delivery of the service's is stored. */
export interface Delivered {
  body?: string
  state?: 'pending'
  endpoint?: string
  type?: string | null
  target?: EventTarget | null
}

export interface RelayBench {
  dir: string
  relay: Relay
  outbox: RelayOutbox
  faults: string[]
  /** What was told of targets: their number and state; of paused ones what waits. */
  turns: string[]
  /** How often the findings of tags were opened. */
  looks(): number
  /** Whether the findings are served. */
  serveFindings(isServed: boolean): void
  /** Moves the clock. */
  pass(ms: number): void
  /** One look, and what follows from it until nothing is under way. */
  round(): Promise<void>
  /** Stores a delivery of the service's, done unless said otherwise. */
  deliver(webhookId: string, more?: Delivered): number
  /** The refresh for a row is done. */
  done(row: number): void
  /** Enables a target as another process does, over its own connection. */
  enable(target: number): boolean
  /** Publishes a snapshot in mirror.db. */
  publish(id: string, records: string[]): Promise<void>
  /** Another relay over the same folder, as after a restart. */
  restart(settings?: BenchSettings): Promise<RelayBench>
}

/** Targets are URLs, with or without NAME= before them. */
type BenchSettings = Partial<Omit<RelaySettings, 'targets'>> & {
  targets?: readonly string[]
  timeoutMs?: number
  chatTargets?: string[]
  /** Whether an event is worth no message to a team workspace. */
  isOld?: (body: Uint8Array) => boolean
}

/** A relay over a folder, driven by hand: real databases, real HTTP, a clock that stands until it is moved. */
export function bench(settings: BenchSettings = {}, dir = scratch(), start = NOW): RelayBench {
  let time = start
  let looks = 0
  let servesFindings = true
  const now = (): number => time
  openWrites(dir).close()
  const inboxDb = openInbox(dir)
  const outboxDb = openInbox(dir)
  const mirror = openReader(dir)
  if (mirror === null) throw new Error('there is no database')
  const inbox = createInbox(inboxDb)
  const outbox = createRelayOutbox(outboxDb)
  const { config } = loadQuick({ env: {}, cwd: dir })
  const transport = createTransport(config.upstream)
  const faults: string[] = []
  const turns: string[] = []
  const { timeoutMs = 2000, ...more } = settings
  const { chatTargets, isOld, ...rest } = more
  const chat = { urls: new Set(chatTargets), ...(isOld && { isOld }) }
  const sign = createSigner(SECRET)
  const deps = { transport, sign, chat, timeoutMs, userAgent: 'test', now }
  const relay = createRelay({
    settings: {
      ...config.relay,
      concurrency: 4,
      ...rest,
      targets: relayTargets({ targets: [...(more.targets ?? []), ...(chatTargets ?? [])] }),
    },
    outbox,
    reads: () => createReads(mirror),
    changed: createChangeCheck([outboxDb]),
    served: () => Number.POSITIVE_INFINITY,
    findings(use) {
      looks++
      return readFindings(dir, use)
    },
    servesFindings: () => servesFindings,
    send: createSender(deps),
    now,
    random: () => 0.5,
    onFault: (message) => faults.push(message),
    onTurn: ({ id, state }) => turns.push(`${id} ${state}`),
    onUnset: ({ id, pending, givenUp }, is) => turns.push(`${id} ${is}: ${pending} wait, ${givenUp} given up`),
  })
  let open = true
  const end = async (): Promise<void> => {
    if (!open) return
    open = false
    relay.stop()
    await transport.close()
    for (const db of [inboxDb, outboxDb, mirror]) db.close()
  }
  onTestFinished(end)
  return {
    dir,
    relay,
    outbox,
    faults,
    turns,
    looks: () => looks,
    serveFindings: (isServed) => void (servesFindings = isServed),
    pass: (ms) => {
      time += ms
    },
    async round() {
      relay.poll()
      await relay.idle()
    },
    deliver(webhookId, { body = `{"id":"${webhookId}"}`, state, endpoint = 'main', ...more } = {}) {
      inbox.receive({
        endpoint,
        webhookId,
        state: 'pending',
        type: 'io.service.cr.image.created.v1',
        dialect: 'standard',
        secret: '1',
        target: null,
        reason: null,
        receivedAt: now(),
        storedAt: now(),
        body: Buffer.from(body),
        ...more,
      })
      const row = inbox.listRows(null, 1)[0]?.id ?? 0
      if (state === undefined) inbox.settle([{ id: row, state: 'done' }])
      return row
    },
    enable: (target) => createRelayOutbox(inboxDb).enableTarget(target),
    done: (row) => inbox.settle([{ id: row, state: 'done', visibleAt: now() }]),
    async publish(id, records) {
      const store = openWrites(dir)
      await store.transaction(() => {
        for (const one of records) store.osv.updateRecord(record(one, id), 1)
        store.snapshots.replaceSnapshot(snapshot({ id, publishedAt: now(), asOf: now() }))
        return Promise.resolve({ commit: true })
      })
      store.close()
      relay.tick() // as its thread does when it hears what is served
    },
    async restart(changed = {}) {
      await end()
      return bench({ ...settings, ...changed }, dir, time)
    },
  }
}
