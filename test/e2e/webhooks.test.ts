import { Agent, request as httpRequest } from 'node:http'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { randomBytes, randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Status } from '../../src/api/status.ts'
import { type Sandbox, createSandbox } from '../../src/sandbox/server.ts'
import type { ServiceOptions } from '../../src/sandbox/service/options.ts'
import { openInbox } from '../../src/store/database.ts'
import { createInboxReads } from '../../src/store/inbox.ts'
import { sampleEvent } from '../../src/webhooks/sample.ts'
import { signDelivery } from '../../src/webhooks/verify.ts'
import { catalogEnv } from '../catalog/benches.ts'
import { type Started, run, start } from '../support/command.ts'
import { QUICK } from '../support/mirror.ts'

const SECRET = `whsec_${randomBytes(24).toString('base64')}`
const PATIENT = { timeout: 60_000, interval: 20 }

let sandbox: Sandbox
let dir: string
let env: Record<string, string>
const started: Started[] = []

async function open(service: ServiceOptions = {}): Promise<void> {
  const small = { images: 2, tags: 4, packages: 2, tickets: 5, webhookSecret: SECRET }
  sandbox = await createSandbox({ records: 5, service: { ...small, ...service } })
  env = {
    ...QUICK,
    ...catalogEnv(sandbox),
    PATCHMIRROR_UPSTREAM_API_ROOT: sandbox.url,
    PATCHMIRROR_CATALOG_SCOPE: 'all',
    PATCHMIRROR_DATA_DIR: join(dir, 'data'),
    PATCHMIRROR_SERVER_PORT: '0',
    PATCHMIRROR_WEBHOOKS_DEBOUNCE_MS: '100',
    PATCHMIRROR_WEBHOOKS_DEBOUNCE_MAX_MS: '120000',
  }
}

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'patchmirror-webhooks-'))
})

afterEach(async () => {
  for (const { child, finished } of started.splice(0)) {
    child.kill('SIGKILL')
    await finished
  }
  await sandbox.close()
  rmSync(dir, { recursive: true, force: true })
})

interface Served {
  daemon: Started
  url: string
  hook: string
}

/** Starts the daemon; the first time on any port, afterwards on the same one. */
async function serve(more: Record<string, string> = {}): Promise<Served> {
  const daemon = start(['serve'], { ...env, ...more }, dir)
  started.push(daemon)
  const said = await daemon.said(/"msg":"serving http[^"]+"/)
  const url = /serving (http[^"]+)"/.exec(said)?.[1] ?? ''
  env['PATCHMIRROR_SERVER_PORT'] = new URL(url).port
  return { daemon, url, hook: `${url}/-/webhooks` }
}

async function kill({ daemon }: Served): Promise<void> {
  daemon.child.kill('SIGKILL')
  await daemon.finished
}

const synced = ({ daemon }: Served): Promise<string> => daemon.said(/catalog sync: complete/)

async function webhooksOf({ url }: Served): Promise<NonNullable<Status['webhooks']>> {
  const status = (await (await fetch(`${url}/-/status`)).json()) as Status
  if (status.webhooks === undefined) throw new Error('no webhooks in the status')
  return status.webhooks
}

const patchmirror = (...args: string[]) => run(args, env, dir)

const keepAlive = new Agent({ keepAlive: true, maxSockets: 32 })

/** Signs an event about a tag and sends it; rejects when the connection breaks. */
function send(hook: string, tagId: string, id: string = randomUUID()): Promise<number> {
  const tag = sandbox.service.read('tags', tagId)
  const { repository } = tag['image'] as { repository: string }
  const named = {
    repository,
    tag: String(tag['name']),
    digest: String(tag['digest']),
    arch: 'amd64',
  }
  const body = sampleEvent(id, Date.now(), { type: 'io.service.cr.image.created.v1', ...named })
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

/** A tag that the service has and tells nobody of: nobody has subscribed. */
const quietTag = (): string => sandbox.service.addTag()

const isServed = async ({ url }: Served, tag: string, more = ''): Promise<number> =>
  (await fetch(`${url}/v1/tags/${tag}${more}`)).status

describe('an event of the service', () => {
  test.each(['standard', 'vendor'] as const)(
    'makes the tag and its SBOM readable in the mirror, signed as %s, tried again until the mirror is there',
    async (dialect) => {
      await open({ dialect, retryDelaysMs: Array.from({ length: 300 }, () => 200) })
      const first = await serve()
      await synced(first)
      const made = await patchmirror('webhooks', 'register', '--url', first.hook)
      expect(made.code, made.err).toBe(0)
      expect(made.err).toContain('a test event was delivered') // about a tag that is mirrored
      await kill(first)
      const tag = sandbox.service.addTag()
      const records = sandbox.service.deliveries.records
      await expect.poll(() => records.length, PATIENT).toBeGreaterThan(1)
      const second = await serve({ PATCHMIRROR_SYNC_CATCH_UP: 'false' })
      await expect.poll(() => isServed(second, tag), PATIENT).toBe(200)
      await expect.poll(() => isServed(second, tag, '/sbom'), PATIENT).toBe(200)
      await expect.poll(async () => (await webhooksOf(second)).counts?.done, PATIENT).toBe(2)
      const inbox = await patchmirror('webhooks', 'inbox', '--json')
      expect(JSON.parse(inbox.out)).toMatchObject([
        { state: 'done', dialect, secret: expect.any(String) as string, reason: null },
        { state: 'done' },
      ])
      expect(inbox.out).not.toContain('"visibleAt": null')
      const shown = await patchmirror('status')
      expect(shown.out).toMatch(/received to visible: median \d/)
      expect(await (await fetch(`${second.url}/-/metrics`)).text()).toMatch(
        /patchmirror_webhook_latency_seconds\{stage="visible",quantile="0.99"\} [\d.]+/,
      )
    },
    180_000,
  )

  test('that comes before its tag is listed is looked for again', async () => {
    await open()
    const served = await serve()
    await synced(served)
    const made = await patchmirror('webhooks', 'register', '--url', served.hook)
    expect(made.code, made.err).toBe(0)
    await expect.poll(async () => (await webhooksOf(served)).counts?.done, PATIENT).toBe(1)
    sandbox.service.deliveries.faults.set({ kind: 'early' })
    const tag = sandbox.service.addTag()
    const note = async (): Promise<string> =>
      (await patchmirror('webhooks', 'inbox', '--state', 'pending')).out
    await expect.poll(note, PATIENT).toMatch(/not yet: the tag is not listed; next try/)
    sandbox.service.deliveries.reveal()
    await expect.poll(() => isServed(served, tag), PATIENT).toBe(200)
    await expect.poll(async () => (await webhooksOf(served)).counts?.done, PATIENT).toBe(2)
  }, 180_000)

  test('that is replayed by a command is refreshed for by the daemon that runs', async () => {
    await open()
    env['PATCHMIRROR_WEBHOOKS_SECRETS'] = SECRET
    const served = await serve()
    await synced(served)
    const tag = sandbox.service.ids('tags')[0] ?? ''
    expect(await send(served.hook, tag)).toBe(202)
    const done = async (): Promise<unknown> => (await webhooksOf(served)).refresh.refreshes
    await expect.poll(done, PATIENT).toBe(1)
    await expect.poll(async () => (await webhooksOf(served)).counts?.done, PATIENT).toBe(1)
    const replayed = await patchmirror('webhooks', 'replay', '1')
    expect([replayed.code, replayed.out]).toEqual([0, expect.stringContaining('in a moment')])
    await expect.poll(done, PATIENT).toBe(2)
    await expect.poll(async () => (await webhooksOf(served)).counts?.done, PATIENT).toBe(1)
  }, 180_000)
})

describe('a daemon that is killed', () => {
  test('right after it has acknowledged an event refreshes for it when it is started again', async () => {
    await open()
    env['PATCHMIRROR_WEBHOOKS_SECRETS'] = SECRET
    const first = await serve({ PATCHMIRROR_WEBHOOKS_DEBOUNCE_MS: '60000' })
    await synced(first)
    const tag = quietTag()
    expect(await send(first.hook, tag)).toBe(202)
    await kill(first)
    const second = await serve({ PATCHMIRROR_SYNC_CATCH_UP: 'false' })
    await expect.poll(() => isServed(second, tag), PATIENT).toBe(200)
    await expect
      .poll(async () => (await webhooksOf(second)).counts, PATIENT)
      .toMatchObject({
        pending: 0,
        done: 1,
      })
  }, 180_000)

  test('between commit and answer has each event once, when its sender tries again', async () => {
    await open()
    env['PATCHMIRROR_WEBHOOKS_SECRETS'] = SECRET
    const first = await serve({ PATCHMIRROR_WEBHOOKS_DEBOUNCE_MS: '60000' })
    await synced(first)
    const tag = quietTag()
    const ids = Array.from({ length: 200 }, () => randomUUID())
    const db = openInbox(join(dir, 'data'))
    const inbox = createInboxReads(db)
    const outcomes = Promise.allSettled(ids.map((id) => send(first.hook, tag, id)))
    await expect.poll(() => inbox.counts().pending, { timeout: 60_000, interval: 1 }).not.toBe(0)
    await kill(first)
    const answered = (await outcomes).filter(({ status }) => status === 'fulfilled')
    const stored = inbox.counts().pending
    expect(stored).toBeGreaterThanOrEqual(answered.length) // none acknowledged that is not stored
    const second = await serve({ PATCHMIRROR_SYNC_CATCH_UP: 'false' })
    const again = await Promise.all(ids.map((id) => send(second.hook, tag, id)))
    expect(again.filter((status) => status === 200)).toHaveLength(stored)
    expect(again.filter((status) => status === 202)).toHaveLength(ids.length - stored)
    await expect.poll(() => inbox.counts(), PATIENT).toMatchObject({ pending: 0, done: ids.length })
    expect(await isServed(second, tag)).toBe(200)
    db.close()
  }, 180_000)
})

test('ten thousand events cause at most two refreshes, and all are settled', async () => {
  await open()
  env['PATCHMIRROR_WEBHOOKS_SECRETS'] = SECRET
  const served = await serve({ PATCHMIRROR_WEBHOOKS_DEBOUNCE_MS: '2000' })
  await synced(served)
  const tags = [quietTag(), quietTag(), quietTag()]
  const left = Array.from({ length: 10_000 }, (_, i) => tags[i % tags.length] ?? '')
  const sender = async (): Promise<void> => {
    for (let tag = left.pop(); tag !== undefined; tag = left.pop())
      expect(await send(served.hook, tag)).toBe(202)
  }
  await Promise.all(Array.from({ length: 32 }, sender))
  await expect
    .poll(async () => (await webhooksOf(served)).counts, PATIENT)
    .toMatchObject({
      pending: 0,
      done: 10_000,
    })
  expect((await webhooksOf(served)).refresh.refreshes).toBeLessThanOrEqual(2)
  for (const tag of tags) expect(await isServed(served, tag)).toBe(200)
}, 240_000)
