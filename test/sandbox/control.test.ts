import { type ChildProcess, fork, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { describe, expect } from 'vitest'
import { SANDBOX_TOKEN } from './service/credentials.ts'
import { exchange } from './exchange.ts'
import { JSON_PATH, sandboxes } from './fixtures.ts'
import { longTest, test } from '../support/tables.ts'

const open = sandboxes()
const NODE = 'node_modules/.bin/node'
const MAIN = 'test/sandbox/main.ts'

async function call(url: string, method = 'GET', body?: object) {
  const answer = await fetch(url, { method, ...(body && { body: JSON.stringify(body) }) })
  return { status: answer.status, value: await answer.json() }
}

describe('control over HTTP', () => {
  test('runs the feed commands and returns the ids', async () => {
    const { url, feed } = await open()
    const commands = [
      'add',
      'change',
      'change-silently',
      'withdraw',
      'lower-fixes',
      'empty',
      'move-backwards',
      'remove',
    ]
    for (const command of commands) {
      const before = feed.archive()
      const { status, value } = await call(`${url}/-/sandbox/${command}?n=2`, 'POST')
      expect(status, command).toBe(200)
      expect((value as { ids: string[] }).ids).toHaveLength(2)
      expect(feed.archive().equals(before)).toBe(false)
    }
    expect(await call(`${url}/-/sandbox/touch-feeds`, 'POST')).toMatchObject({ status: 200 })
  })

  test('sets and clears faults', async () => {
    const { url } = await open()
    const fault = { path: '/external/osv/*.json', fault: { kind: 'status', status: 503 }, times: 5 }
    expect((await call(`${url}/-/sandbox/fault`, 'POST', fault)).status).toBe(200)
    expect((await exchange(url + JSON_PATH)).status).toBe(503)
    expect((await call(`${url}/-/sandbox/fault`, 'DELETE')).status).toBe(200)
    expect((await exchange(url + JSON_PATH)).status).toBe(200)
  })

  test('shows requests, without its own, and state', async () => {
    const { url, feed } = await open()
    const { headers } = await exchange(url + JSON_PATH)
    const { value } = await call(`${url}/-/sandbox/requests`)
    expect(value).toMatchObject([{ method: 'GET', path: JSON_PATH, status: 200 }])
    feed.freezeArchive()
    expect((await call(`${url}/-/sandbox/state`)).value).toMatchObject({
      records: 60,
      index: { etag: headers.etag, lastModified: headers['last-modified'], frozen: false },
      archive: { size: feed.archive().length, frozen: true },
    })
  })

  test('changes the catalog by a plan, the items that are longest unchanged first', async () => {
    const { url, service } = await open()
    for (const kind of ['tag', 'package', 'ticket'] as const) {
      const before = service.ids(`${kind}s`)
      const added = await call(`${url}/-/sandbox/add-${kind}?n=2`, 'POST')
      const { ids } = added.value as { ids: string[] }
      expect(service.ids(`${kind}s`)).toEqual([...before, ...ids])
      const change = async (n: number) =>
        (await call(`${url}/-/sandbox/change-${kind}?n=${n}`, 'POST')).value as { ids: string[] }
      const first = await change(before.length)
      expect(new Set(first.ids)).toEqual(new Set(before))
      expect(new Set((await change(2)).ids)).toEqual(new Set(ids))
    }
    expect((await call(`${url}/-/sandbox/state`)).value).toMatchObject({
      counts: { images: 12, tags: 42, packages: 32, tickets: 302, webhooks: 0 },
    })
  })

  test('refuses catalog commands where there is no catalog', async () => {
    const { url } = await open({ service: false })
    expect((await call(`${url}/-/sandbox/add-tag`, 'POST')).status).toBe(404)
    expect((await call(`${url}/-/sandbox/state`)).value).not.toHaveProperty('counts')
  })

  test('refuses unknown operations', async () => {
    const { url } = await open()
    const status = async (path: string, method = 'POST', body?: object) =>
      (await call(`${url}/-/sandbox/${path}`, method, body)).status
    expect(await status('explode')).toBe(404)
    expect(await status('toString')).toBe(404)
    expect(await status('change', 'GET')).toBe(405)
    expect(await status('change?n=many')).toBe(400)
    expect(await status('fault', 'POST', { path: '/x', fault: { kind: 'sulk' } })).toBe(400)
    const archive = { path: '/x', fault: { kind: 'archive', archive: 'nice' } }
    expect(await status('fault', 'POST', archive)).toBe(400)
    expect(await status('fault', 'POST')).toBe(400)
  })

  test('refuses a fault without what it needs, and names that', async () => {
    const { url } = await open()
    const set = (path: string, fault: object) => call(`${url}/-/sandbox/${path}`, 'POST', { path: '/x', fault })
    for (const [path, fault, names] of [
      ['fault', { kind: 'slow' }, 'the fault slow needs bytesPerSecond (a number)'],
      ['fault', { kind: 'status', status: '503' }, 'the fault status needs status (a number)'],
      ['delivery-fault', { kind: 'delayed' }, 'the fault delayed needs ms (a number)'],
    ] as const) {
      const { status, value } = await set(path, fault)
      expect([status, JSON.stringify(value)]).toEqual([400, expect.stringContaining(names)])
    }
    expect((await set('fault', { kind: 'slow', bytesPerSecond: 9 })).status).toBe(200)
    expect((await set('fault', { kind: 'stall' })).status).toBe(200)
  })
})

describe('the command', () => {
  interface Message {
    url: string
    catalogUrl: string
    identityUrl: string
  }

  async function start(...args: string[]): Promise<{ child: ChildProcess; url: string; message: Message }> {
    const child = fork(MAIN, ['--port', '0', '--records', '60', ...args], {
      execPath: NODE,
      execArgv: [],
      stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    })
    const [message] = (await once(child, 'message')) as [Message]
    return { child, url: message.url, message }
  }

  longTest('serves, sends its URL to its parent, and ends on SIGTERM', async () => {
    const { child, url } = await start('--no-ranges', '--live', '3600')
    expect(JSON.parse((await exchange(url + JSON_PATH)).body.toString())).toHaveLength(60)
    const { headers } = await exchange(`${url}/external/osv/all.zip`)
    expect(headers['accept-ranges']).toBeUndefined()
    child.kill('SIGTERM')
    expect(await once(child, 'exit')).toEqual([0, null])
  })

  test('prints its addresses, and serves a catalog of the size that its options set', async () => {
    const { child, message } = await start('--tags', '3', '--tickets', '7', '--shape', 'other')
    const headers = { authorization: `Bearer ${SANDBOX_TOKEN}` }
    const read = async (address: string | undefined) => (await fetch(String(address), { headers })).json()
    expect(await read(`${message.url}/v1/tags/`)).toMatchObject({ results: [{}, {}, {}] })
    expect(await read(`${message.url}/v1/patches`)).toMatchObject({ total: 7 })
    expect(await read(`${message.identityUrl}/users`)).toHaveProperty('results')
    expect(await read(`${message.catalogUrl}/`)).toHaveProperty('message')
    child.kill('SIGTERM')
    expect(await once(child, 'exit')).toEqual([0, null])
  })

  longTest('ends when its parent goes away', async () => {
    const { child } = await start()
    child.disconnect()
    expect(await once(child, 'exit')).toEqual([0, null])
  })

  longTest('explains bad arguments and exits with 2', () => {
    const wrong = [['--port', 'x'], ['--osv-index', 'a'], ['--tags', 'x'], ['--nonsense'], ['--records=-1']]
    for (const args of wrong) {
      const { status, stderr } = spawnSync(NODE, [MAIN, ...args], { encoding: 'utf8' })
      expect([status, stderr.includes('--help')]).toEqual([2, true])
    }
  })

  longTest('prints its options with --help', () => {
    const { status, stdout } = spawnSync(NODE, [MAIN, '--help'], { encoding: 'utf8' })
    expect([status, stdout.includes('--osv-zip FILE')]).toEqual([0, true])
    expect(stdout).toMatch(/^ {2}slow +bytesPerSecond$/m)
    expect(stdout).toMatch(/^ {2}status +status, \[headers\], \[body\]$/m)
  })
})
