import { type IncomingHttpHeaders, createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'
import type { ReceiptOutcome } from '../../../src/webhooks/receive/responses.ts'
import { createTypeFilter } from '../../../src/webhooks/receive/event.ts'
import { type ReceiverOptions, createReceiver } from '../../../src/webhooks/receive/receiver.ts'
import type { InboxThread } from '../../../src/webhooks/inbox/thread.ts'
import { createSigningSecret, createVerifier } from '../../../src/webhooks/receive/signature.ts'
import { NOW, openInboxHere, scratch } from '../inbox/inboxes.ts'
import { type Signing, EVENT, RAW_SECRET, SECRET, signed } from '../signing.ts'

export interface Reply {
  status: number
  headers: IncomingHttpHeaders
  body: string
}

export interface Sent {
  path?: string
  method?: string
  headers?: Record<string, string | string[]>
  body?: string | Buffer
}

/** Sends one request to a port of this machine. */
export function send(port: number, { path = '/-/webhooks', method = 'POST', headers, body }: Sent): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }
    const sent = request({ port, host: '127.0.0.1', path, method, headers: { ...length, ...headers }, agent: false })
    sent.once('error', reject).once('response', (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk)).once('error', reject)
      response.once('end', () => {
        const { statusCode = 0, headers } = response
        resolve({ status: statusCode, headers, body: Buffer.concat(chunks).toString() })
      })
    })
    sent.end(body)
  })
}

/** A delivery as its sender makes it; the body is the usual event unless another is given. */
export function deliveryOf(signing: Signing = {}, headers: Record<string, string> = {}): Sent {
  const { body = JSON.stringify(EVENT) } = signing
  return { headers: { ...signed({ ...signing, body }), ...headers }, body }
}

export interface Receiving {
  port: number
  inbox: InboxThread
  outcomes: [ReceiptOutcome, string][]
  /** Lines logged at warn level. */
  told: { fields: Record<string, unknown>; message: string }[]
  clock: { now: number }
  /** Rows stored that wait for a refresh. */
  stored: () => number
  close: () => void
  deliver: (signing?: Signing, headers?: Record<string, string>) => Promise<Reply>
}

/** A receiver over a real server and a real inbox, this one unless another is given, with two secrets and two endpoints. */
export async function receiving(
  more: Partial<ReceiverOptions> = {},
  inbox: InboxThread = openInboxHere(scratch()),
): Promise<Receiving> {
  const clock = { now: NOW }
  const outcomes: [ReceiptOutcome, string][] = []
  const told: Receiving['told'] = []
  let stored = 0
  const secrets = [SECRET, RAW_SECRET].map((secret, at) => createSigningSecret(`settings-${at + 1}`, secret))
  const now = (): number => clock.now
  const receiver = createReceiver({
    endpoints: [
      { name: 'default', path: '/-/webhooks' },
      { name: 'staging', path: '/-/webhooks/staging' },
    ],
    inbox,
    verify: createVerifier({ secrets: () => secrets, dialect: 'any', toleranceSeconds: 300, now }),
    isSetUp: () => true,
    isWanted: createTypeFilter(['io.{vendor}.cr.image.created.v*'], 'service'),
    allowedOrigins: ['events.example.com'],
    maxBytes: 4096,
    now,
    log: {
      debug: () => undefined,
      warn: (fields: Record<string, unknown>, message: string) => told.push({ fields, message }),
    } as never,
    counters: [{ countWebhook: (outcome, reason) => outcomes.push([outcome, reason]) }],
    followers: [{ arrived: () => (stored += 1) }],
    ...more,
  })
  const server = createServer((asked, response) => {
    if (!receiver.handle(asked, response)) response.writeHead(404).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return {
    port,
    inbox,
    outcomes,
    told,
    clock,
    stored: () => stored,
    close: receiver.close,
    deliver: (signing, headers) => send(port, deliveryOf(signing, headers)),
  }
}
