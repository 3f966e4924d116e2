import { createHmac } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect } from 'vitest'
import { loadQuick } from '../support/limits.ts'
import { type Target, SECRET, target } from '../features/relay/targets.ts'
import { freePort } from '../support/free-ports.ts'
import { type World, openWorld } from '../support/daemons.ts'
import { commandHost } from '../support/hosted.ts'
import { localKey } from '../support/keys.ts'
import { longTest, test } from '../support/tables.ts'

const command = commandHost()
let world: World
let to: Target

beforeEach(async () => {
  world = await openWorld({ records: 40, service: false }, undefined, command)
})

afterEach(() => world.close())

interface Told {
  data: { source: string; snapshot: string; previous: string; changes: { id: string }[] }
}

/** What the target that answers got of osv. */
const told = (): Told['data'][] =>
  to.got
    .filter(({ url }) => !url.endsWith('slow'))
    .map(({ body }) => (JSON.parse(body.toString()) as Told).data)
    .filter(({ source }) => source === 'osv')

longTest(
  'a daemon sends each snapshot to its targets, signed with the secret that it prints, and a target that never answers delays no other',
  async () => {
    to = await target((response) => {
      if (response.req.url?.endsWith('slow') !== true) response.writeHead(204).end()
    })
    world.env['PATCHMIRROR_RELAY_TARGETS'] = `${to.url}&slow,${to.url}`
    const daemon = await world.host()
    await daemon.said(/osv sync: complete/)
    await expect.poll(() => told().length).toBe(1)
    // With those of the feeds, one more than the requests that a target gets at the same time.
    for (const snapshots of [2, 3, 4]) {
      world.sandbox.feed.add(2)
      // The daemon notices only after a while what a command has published.
      expect((await world.patchmirror('sync', 'osv')).code).toBe(0)
      await expect.poll(() => told().length).toBe(snapshots)
    }
    const [first, second] = told().slice(-2)
    expect(second?.previous).toBe(first?.snapshot)
    expect(second?.changes).toHaveLength(2)
    const changes = await fetch(`${daemon.url}/-/changes?since=${first?.snapshot ?? ''}`)
    expect(await changes.json()).toMatchObject({ to: second?.snapshot, changes: second?.changes })

    const secret = (await world.patchmirror('relay', '--secret')).out.trim()
    const key = Buffer.from(secret.replace('whsec_', ''), 'base64')
    for (const { id, timestamp, body, headers } of to.got) {
      const mac = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body)
      expect(headers['webhook-signature']?.toString().split(' ')[0]).toBe(`v1,${mac.digest('base64')}`)
    }
    await daemon.close() // with a request to the slow target under way
  },
)

/** The relay targets of the daemon's status. */
async function targetsOf({ url }: { url: string }): Promise<object[]> {
  return ((await (await fetch(`${url}/-/status`)).json()) as { relay: object[] }).relay
}

longTest('a disabled target is in the status without its address, and can be enabled by a command', async () => {
  to = await target(410)
  world.env['PATCHMIRROR_RELAY_TARGETS'] = to.url
  const daemon = await world.host()
  const relay = (): Promise<object[]> => targetsOf(daemon)
  const disabled = { id: 1, state: 'disabled', target: null, reason: null }
  await expect.poll(relay).toMatchObject([disabled])
  const status = await world.patchmirror('relay')
  expect([status.code, status.out]).toEqual([1, expect.stringMatching(FAILED)])
  expect(status.out).toMatch(/^id +name +target +kind +state/m)
  expect(status.out).toMatch(/ standard +disabled /)
  expect(status.out).not.toContain('private')
  expect((await world.patchmirror('status')).out).toMatch(/Relay target \S+: disabled/)
  expect((await world.patchmirror('relay', '--enable', '9')).code).toBe(1)
  to.manner = 204
  expect((await world.patchmirror('relay', '--enable', '1')).code).toBe(0)
  await expect.poll(relay).toMatchObject([{ id: 1, state: 'ok', pending: 0 }])
  const after = await world.patchmirror('relay')
  expect([after.code, after.out]).toEqual([0, expect.stringMatching(FAILED_EARLIER)])
})

/** The last failure is told with its time, and as something past once the target is well. */
const FAILED = /disabled .* {2}\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ it answered 410/
const FAILED_EARLIER = / ok .* {2}earlier: \d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ it answered 410/

longTest('the relay continues with another target alone once a reload of the settings names it', async () => {
  to = await target()
  world.env['PATCHMIRROR_RELAY_TARGETS'] = to.url
  const daemon = await world.host()
  const relay = (): Promise<object[]> => targetsOf(daemon)
  await daemon.said(/osv sync: complete/)
  await expect.poll(() => to.got.length).toBe(2) // the snapshots of the feeds and of osv
  await expect.poll(relay).toMatchObject([{ id: 1, state: 'ok', pending: 0 }])
  const other = await target()
  const before = to.got.length
  const env = { ...world.env, PATCHMIRROR_RELAY_TARGETS: other.url }
  daemon.agent.apply(loadQuick({ env, cwd: world.dir }).config, ['relay.targets'])
  await expect.poll(relay).toMatchObject([{ id: 2, state: 'ok' }])
  world.sandbox.feed.add(1)
  expect((await world.patchmirror('sync', 'osv')).code).toBe(0)
  await expect.poll(() => other.got.length).toBe(1)
  expect(to.got.length).toBe(before)
})

test('a mirror without relay targets relays nothing, and the relay commands say so', async () => {
  const none = await world.patchmirror('relay')
  expect([none.code, none.out]).toEqual([0, expect.stringContaining('relay.targets')])
  const secret = await world.patchmirror('relay', '--secret')
  expect([secret.code, secret.out]).toEqual([0, expect.stringMatching(/^whsec_/)])
  expect((await world.patchmirror('relay', '--enable', '1')).code).toBe(1)
})

longTest('a second mirror syncs when the first one notifies it, and relays deliveries unchanged', async () => {
  to = await target()
  const second = {
    PATCHMIRROR_DATA_DIR: join(world.dir, 'second'),
    PATCHMIRROR_WEBHOOKS_SECRETS: SECRET,
    LIMIT_WEBHOOKS_DEBOUNCE_MS: '100',
    PATCHMIRROR_SERVER_LISTEN: `127.0.0.1:${await freePort()}`,
    PATCHMIRROR_RELAY_TARGETS: to.url,
    PATCHMIRROR_RELAY_EVENTS: 'webhook',
  }
  world.env['PATCHMIRROR_RELAY_SECRET'] = SECRET
  const hook = `http://${second.PATCHMIRROR_SERVER_LISTEN}/-/webhooks`
  const first = await world.host({ PATCHMIRROR_RELAY_TARGETS: hook })
  await first.said(/osv sync: complete/)
  const below = await world.host({ ...second, PATCHMIRROR_UPSTREAM_API_ROOT: first.url })
  const { url } = below
  const counts = async (): Promise<{ pending: number; done: number }> => {
    const status = (await (await fetch(`${url}/-/status`)).json()) as {
      webhooks: { counts: { pending: number; done: number } }
    }
    return status.webhooks.counts
  }
  // Two snapshots were published before the second mirror was there: they waited for it.
  expect((await world.patchmirror('relay', '--enable', '1')).code).toBe(0)
  await expect.poll(counts).toMatchObject({ pending: 0, done: 2 })
  world.sandbox.feed.add(3)
  expect((await world.patchmirror('sync', 'osv')).code).toBe(0)
  const index = async (mirror: string): Promise<string> => (await fetch(`${mirror}/external/osv/all.json`)).text()
  await expect.poll(() => index(first.url)).toBe(world.sandbox.feed.index().toString())
  await expect.poll(() => index(url)).toBe(await index(first.url))
  world.env['PATCHMIRROR_RELAY_TARGETS'] = hook
  expect((await world.patchmirror('relay')).out).toMatch(/ ok /)

  expect(await deliver(below, BODY, second.PATCHMIRROR_DATA_DIR)).toContain('"webhookId":"msg_1"')
  await expect.poll(() => to.ids()).toContain('msg_1')
  const got = to.got.find(({ id }) => id === 'msg_1')
  expect([got?.body.toString(), got?.signed]).toEqual([BODY, true])
})

/** Sends a signed event, reads the daemon's stream until it is told there, and returns what was told. */
async function deliver({ url }: { url: string }, body: string, dataDir: string): Promise<string> {
  const events = await fetch(`${url}/-/events`, { headers: localKey(dataDir) })
  const timestamp = Math.floor(Date.now() / 1000)
  const key = Buffer.from(SECRET.slice('whsec_'.length), 'base64')
  const mac = createHmac('sha256', key).update(`msg_1.${timestamp}.${body}`).digest('base64')
  const headers = {
    'webhook-id': 'msg_1',
    'webhook-timestamp': String(timestamp),
    'webhook-signature': `v1,${mac}`,
  }
  const answer = await fetch(`${url}/-/webhooks`, { method: 'POST', headers, body })
  expect(answer.status).toBe(202)
  let text = ''
  for await (const chunk of events.body ?? []) {
    text += Buffer.from(chunk as Uint8Array).toString()
    if (text.includes('event: webhook') && text.includes('library/python')) break
  }
  return text
}

const BODY = '{ "type": "io.service.cr.image.created.v1",\n "data": {"image_repo": "library/python"} }'

longTest('readers of events receive deliveries also when the first secret is added while the daemon runs', async () => {
  const daemon = await world.host({ LIMIT_WEBHOOKS_DEBOUNCE_MS: '50' })
  const kept = JSON.stringify({ secrets: [{ label: 'first', secret: SECRET }] })
  writeFileSync(join(world.data, 'webhook-secrets.json'), kept, { mode: 0o600 })
  expect(await deliver(daemon, BODY, world.data)).toContain('"webhookId":"msg_1"')
})
