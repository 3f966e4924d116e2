import { Agent, request as httpRequest } from 'node:http'
import { randomBytes, randomUUID } from 'node:crypto'
import { expect, onTestFinished } from 'vitest'
import type { Status } from '../../src/base/reports/status.ts'
import type { Sandbox } from '../sandbox/server.ts'
import type { ServiceOptions } from '../sandbox/service/options.ts'
import { sampleEvent } from '../../src/features/account/webhooks/send.ts'
import { signDelivery } from '../../src/webhooks/receive/signature.ts'
import { catalogEnv } from '../support/catalog/mirror.ts'
import { TEST_KEY, bearer } from '../support/keys.ts'
import type { run } from '../support/command.ts'
import { type Hosted, type World, openWorld } from '../support/daemons.ts'

/** What the stand-in signs with. */
export const SECRET = `whsec_${randomBytes(24).toString('base64')}`
/** For a poll: a refresh takes its time on a busy machine. */
export const PATIENT = { interval: 20 }

/** A daemon that mirrors a small catalog, and where its deliveries go. */
export interface Receiving extends Hosted {
  hook: string
}

/** Opens a world for one test, whose daemons all listen on the port of the first one. */
export async function open(service: ServiceOptions = {}, command?: typeof run): Promise<World> {
  const small = { images: 2, tags: 4, packages: 2, tickets: 5, webhookSecret: SECRET }
  const envOf = (sandbox: Sandbox): Record<string, string> => ({
    ...catalogEnv(sandbox),
    PATCHMIRROR_SERVER_KEYS: TEST_KEY,
    PATCHMIRROR_CATALOG_SCOPE: 'all',
    LIMIT_WEBHOOKS_DEBOUNCE_MS: '100',
  })
  const options = { records: 5, service: { ...small, ...service } }
  const world = await openWorld(options, envOf, command)
  onTestFinished(() => world.close())
  return world
}

/** Starts the daemon; the first time on any port, afterwards on the same one. */
export async function serve(world: World, more: Record<string, string> = {}): Promise<Receiving> {
  const daemon = await world.host(more)
  world.env['PATCHMIRROR_SERVER_LISTEN'] = new URL(daemon.url).host
  return { ...daemon, hook: `${daemon.url}/-/webhooks` }
}

/** Resolves once the catalog is mirrored. */
export const synced = (daemon: Pick<Receiving, 'said'>): Promise<string> => daemon.said(/catalog sync: complete/)

/**
 * Has a tag announced while no daemon runs, and compares what is readable once one does. The world's service signs in this
 * dialect, and tries again every 200 ms.
 */
export async function becomesReadable(world: World, dialect: string): Promise<Receiving> {
  const first = await serve(world)
  await synced(first)
  const made = await world.patchmirror('webhooks', 'register', '--url', first.hook)
  expect(made.code, made.err).toBe(0)
  expect(made.err).toContain('a test event was delivered') // about a tag that is mirrored
  await first.close()
  const tag = world.sandbox.service.addTag()
  const records = world.sandbox.service.deliveries.records
  await expect.poll(() => records.length, PATIENT).toBeGreaterThan(1)
  const second = await serve(world, { LIMIT_SYNC_CATCH_UP: 'false' })
  await expect.poll(() => isServed(second, tag), PATIENT).toBe(200)
  await expect.poll(() => isServed(second, tag, '/sbom'), PATIENT).toBe(200)
  await expect.poll(async () => (await webhooksOf(second)).counts?.done, PATIENT).toBe(2)
  const inbox = await world.patchmirror('webhooks', 'inbox', '--json')
  expect(JSON.parse(inbox.out)).toMatchObject([
    { state: 'done', dialect, secret: expect.any(String) as string, reason: null },
    { state: 'done' },
  ])
  expect(inbox.out).not.toContain('"visibleAt": null')
  // The daemon makes these figures from time to time, not for each request.
  const shown = async (): Promise<string> => (await world.patchmirror('status')).out
  await expect.poll(shown, PATIENT).toMatch(/received to visible: median \d/)
  expect(await (await fetch(`${second.url}/-/metrics`)).text()).toMatch(
    /patchmirror_webhook_latency_seconds\{stage="visible",percentile="99"\} [\d.]+/,
  )
  return second
}

/** What the status says of webhooks. */
export async function webhooksOf({ url }: Receiving): Promise<NonNullable<Status['webhooks']>> {
  const status = (await (await fetch(`${url}/-/status`)).json()) as Status
  if (status.webhooks === undefined) throw new Error('no webhooks in the status')
  return status.webhooks
}

const keepAlive = new Agent({ keepAlive: true, maxSockets: 32 })

/** When the events happened: one that is sent again is the same. */
const HAPPENED = Date.now()

/** Signs an event about a tag and sends it; rejects when the connection breaks. */
export function send({ sandbox }: World, hook: string, tagId: string, id: string = randomUUID()): Promise<number> {
  const tag = sandbox.service.read('tags', tagId)
  const { repository } = tag['image'] as { repository: string }
  const named = {
    repository,
    tag: String(tag['name']),
    digest: String(tag['digest']),
    arch: 'amd64',
  }
  const body = sampleEvent(id, HAPPENED, { type: 'io.service.cr.image.created.v1', ...named })
  const timestamp = Math.floor(Date.now() / 1000)
  const signature = signDelivery({ id, timestamp, body, secret: SECRET, dialect: 'standard' }) ?? ''
  const headers = {
    'content-type': 'application/cloudevents+json',
    'content-length': body.length,
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signature,
  }
  return new Promise((resolve, reject) => {
    const sent = httpRequest(hook, { method: 'POST', headers, agent: keepAlive }, (response) => {
      response.resume().once('end', () => resolve(response.statusCode ?? 0))
    })
    sent.once('error', reject).end(body)
  })
}

/** The answer's status for a tag, or what hangs on it. */
export async function isServed({ url }: Receiving, tag: string, more = ''): Promise<number> {
  return (await fetch(`${url}/v1/tags/${tag}${more}`, { headers: bearer() })).status
}
