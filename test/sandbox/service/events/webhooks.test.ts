import { createHmac } from 'node:crypto'
import { type IncomingMessage, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Sandbox } from '../../server.ts'
import { SANDBOX_KEYS } from '../credentials.ts'
import { EVENT_TYPE } from '../routes/webhooks.ts'
import { sandboxes } from '../../fixtures.ts'
import { type Json, asAdmin, ask, basic } from '../asking.ts'

const open = sandboxes()
const PATH = '/v3/settings/webhooks'
const now = Date.UTC(2026, 5, 1, 12)
let sandbox: Sandbox
let endpoint: string

interface Received {
  headers: IncomingMessage['headers']
  body: string
}
const received: Received[] = []
const server = createServer((request, response) => {
  void text(request).then((body) => {
    received.push({ headers: request.headers, body })
    const status = Number(request.url?.slice(1))
    response.writeHead(status, status === 302 ? { Location: '/200' } : {}).end()
  })
})

beforeAll(async () => {
  sandbox = await open({ now: () => now })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

const register = async (at: Sandbox, url: string, types = [EVENT_TYPE]): Promise<Json> => {
  const body = { url, description: 'für den Spiegel', event_types: types }
  const { status, value } = await asAdmin(at, PATH, { method: 'POST', body })
  expect(status).toBe(201)
  return value
}

const send = (at: Sandbox, id: unknown, tag: unknown) =>
  asAdmin(at, `${PATH}/${String(id)}/test-tag-created`, {
    method: 'POST',
    body: { service_registry_tag_id: tag },
  })

describe('a webhook subscription', () => {
  test('shows its secret once, is listed, read and deleted', async () => {
    const { secret, ...shown } = await register(sandbox, 'https://hooks.example.com/in')
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{32}$/)
    const one = `${PATH}/${String(shown['id'])}`
    expect((await asAdmin(sandbox, one)).value).toEqual(shown)
    const list = await asAdmin(sandbox, PATH)
    expect(list.value['data']).toContainEqual(shown)
    expect(list.bytes.toString()).not.toContain('whsec_')
    expect((await asAdmin(sandbox, one, { method: 'DELETE' })).status).toBe(204)
    expect((await asAdmin(sandbox, one)).status).toBe(404)
    expect((await asAdmin(sandbox, one, { method: 'DELETE' })).status).toBe(404)
  })

  test('needs an https URL, or one of a loopback address, and event types', async () => {
    const url = 'https://hooks.example.com/'
    const wrong = [
      {},
      { url: 'http://hooks.example.com/', event_types: [] },
      { url: 'hooks', event_types: [] },
      { url },
      { url, event_types: 'all' },
      { url, event_types: [1] },
      { url, event_types: [], description: 1 },
    ]
    for (const body of wrong) {
      expect((await asAdmin(sandbox, PATH, { method: 'POST', body })).status).toBe(400)
    }
    const headers = basic(SANDBOX_KEYS.readonly)
    const body = { url, event_types: [] }
    expect((await ask(sandbox.url + PATH, { method: 'POST', headers, body })).status).toBe(403)
  })
})

describe('the test operation', () => {
  test('sends a CloudEvent signed as Standard Webhooks, and returns the result', async () => {
    const { id, secret } = await register(sandbox, `${endpoint}/200`)
    const tag = sandbox.service.ids('tags')[4] ?? ''
    received.length = 0
    const { status, value } = await send(sandbox, id, tag)
    expect(status).toBe(200)
    expect(value).toMatchObject({
      subscription_id: id,
      status: 'delivered',
      http_status: 200,
      type: EVENT_TYPE,
    })
    expect(value['sent_at']).toBe('2026-06-01T12:00:00Z')
    const [{ headers, body }] = received as [Received]
    const event = JSON.parse(body) as Json
    const { image, name } = sandbox.service.read('tags', tag) as { image: Json; name: string }
    expect(event).toMatchObject({ specversion: '1.0', id: value['event_id'], type: EVENT_TYPE })
    expect(event['data']).toMatchObject({ image_repo: image['repository'], image_tag: name })
    expect(headers['content-type']).toBe('application/cloudevents+json')
    expect(headers['webhook-timestamp']).toBe(String(now / 1000))
    const key = Buffer.from(String(secret).slice('whsec_'.length), 'base64')
    const content = `${String(headers['webhook-id'])}.${now / 1000}.${body}`
    const signature = createHmac('sha256', key).update(content).digest('base64')
    expect(headers['webhook-signature']).toBe(`v1,${signature}`)
  })

  test('signs in the vendor’s dialect when it is configured to', async () => {
    const vendor = await open({ now: () => now, service: { dialect: 'vendor' } })
    const { id, secret } = await register(vendor, `${endpoint}/204`)
    received.length = 0
    await send(vendor, id, vendor.service.ids('tags')[0])
    const [{ headers, body }] = received as [Received]
    const content = `${String(headers['webhook-id'])}.${now / 1000}.${body}`
    const signature = createHmac('sha256', String(secret)).update(content).digest('hex')
    expect(headers['webhook-signature']).toBe(`v1,${signature}`)
  })

  test('reports an endpoint that fails, redirects, or is unreachable', async () => {
    const [tag] = sandbox.service.ids('tags')
    const outcome = async (url: string) => {
      const { id } = await register(sandbox, url)
      const { status, value } = await send(sandbox, id, tag)
      return [status, value['status'], value['http_status'], typeof value['error_reason']]
    }
    expect(await outcome(`${endpoint}/500`)).toEqual([200, 'failed', 500, 'string'])
    expect(await outcome(`${endpoint}/302`)).toEqual([200, 'failed', 302, 'string'])
    expect(await outcome('http://127.0.0.1:1/')).toEqual([200, 'failed', null, 'string'])
  })

  test('is a 404 without subscription or tag, a 422 without the event type, a 400 without a tag id', async () => {
    const { id } = await register(sandbox, `${endpoint}/200`)
    const { id: other } = await register(sandbox, `${endpoint}/200`, ['io.service.cr.other.v1'])
    const [tag] = sandbox.service.ids('tags')
    expect((await send(sandbox, 'none', tag)).status).toBe(404)
    expect((await send(sandbox, id, 'none')).status).toBe(404)
    expect((await send(sandbox, other, tag)).status).toBe(422)
    expect((await send(sandbox, id, undefined)).status).toBe(400)
  })
})

test('a tag is announced again to those who subscribe to it', async () => {
  const own = await open()
  await register(own, `${endpoint}/200`)
  await register(own, `${endpoint}/200`, [])
  received.length = 0
  const results = await own.service.announce(own.service.ids('tags')[0] ?? '')
  expect(results.map(({ status }) => status)).toEqual(['delivered'])
  expect(received).toHaveLength(1)
})
