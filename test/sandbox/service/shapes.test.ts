import { createServer } from 'node:http'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Sandbox } from '../server.ts'
import { SANDBOX_KEYS } from './credentials.ts'
import { EVENT_TYPE } from './routes/webhooks.ts'
import { type Shape, type ShapeName, SHAPES, SHAPE_NAMES, shaped } from './shapes/shape.ts'
import { formOf, valueAt, walkList } from '../../support/walk.ts'
import { sandboxes } from '../fixtures.ts'
import { type Json, asAdmin, ask, basic, bearer } from './asking.ts'

const open = sandboxes()
const SMALL = { images: 3, tags: 7, packages: 6, tickets: 8, avrs: 2, users: 4, subscriptions: 5 }
const AUTH = basic(SANDBOX_KEYS.admin)

function service(shape: ShapeName | Shape): Promise<Sandbox> {
  return open({ records: 3, service: { ...SMALL, shape } })
}

const LISTS = {
  images: '/v1/images/',
  tags: '/v1/tags/',
  packages: '/v1/packages/',
  tickets: '/v1/patches',
  subscriptions: '/v1/subscriptions/',
  apiKeys: '/v1/api_keys/',
} as const

describe.each(SHAPE_NAMES)('the shape %s', (name) => {
  const shape = SHAPES[name]

  test('lists every item exactly once, by its own rule for the next page', async () => {
    const sandbox = await service(name)
    const walk = (path: string) =>
      walkList((at) => fetch(sandbox.url + at, { headers: AUTH }), path, formOf(shape, path))
    for (const [kind, path] of Object.entries(LISTS)) {
      const { items, pages } = await walk(`${path}?limit=3`)
      const ids = items.map((item) => String(idOf(item)))
      expect({ kind, ids }).toEqual({ kind, ids: sandbox.service.ids(kind as keyof typeof LISTS) })
      expect(pages).toBeGreaterThanOrEqual(Math.ceil(ids.length / 3))
    }
    const users = await walkList(
      (at) => fetch(sandbox.identityUrl + at.slice(3), { headers: bearer(SANDBOX_KEYS.admin) }),
      '/v1/users?limit=2',
      shape.lists,
    )
    expect(users.items).toHaveLength(4)
  })

  test('returns the documents of a tag in its own form', async () => {
    const sandbox = await service(name)
    const [tag = ''] = sandbox.service.ids('tags')
    for (const kind of ['sbom', 'vex', 'provenance'] as const) {
      const path = `/v1/tags/${tag}/${kind}`
      for (let i = 0; i < shape.artifacts.pending; i++) expect((await asAdmin(sandbox, path)).status).toBe(202)
      const bytes = await documentAt(sandbox, path)
      const [document = Buffer.of()] = sandbox.service.documents('tag', tag, kind)
      const isWithin = shape.artifacts.around !== undefined
      expect(isWithin ? bytes.includes(document) : bytes.equals(document)).toBe(true)
    }
  })

  test('answers a missing item in its own form of an error', async () => {
    const { status, headers } = await asAdmin(await service(name), '/v1/tags/999999')
    expect(status).toBe(404)
    expect(headers.get('content-type')).toBe(ERROR_TYPES[shape.errors])
  })

  test('registers a webhook with a secret, and delivers its events', async () => {
    const sandbox = await service(name)
    const received = await endpoint()
    const body = { url: received.url, description: 'x', event_types: [EVENT_TYPE] }
    const url = `${sandbox.url}/v3/settings/webhooks`
    const made = await ask(url, { method: 'POST', headers: AUTH, body })
    expect(made.status).toBe(201)
    expect(JSON.stringify(made.value)).toContain('whsec_')
    const [tag = '', other = ''] = sandbox.service.ids('tags')
    const results = await sandbox.service.announce(tag, other)
    expect(results).toMatchObject([{ status: 'delivered' }])
    const sent = received.bodies.join()
    expect(sent).toContain(String(sandbox.service.read('tags', tag)['name']))
    expect(sent.includes(EVENT_TYPE)).toBe(!['header', 'untyped'].includes(shape.events.envelope))
  })
})

/** Where a document is: behind a redirect, a URL, or in the answer itself. */
async function documentAt(sandbox: Sandbox, path: string): Promise<Buffer> {
  const { headers, bytes } = await asAdmin(sandbox, path)
  const named = [headers.get('location') ?? '', ...(bytes.toString().match(/http:[^"]*/g) ?? [])]
  const url = named.find((one) => one.startsWith(sandbox.artifactUrl))
  return url === undefined ? bytes : (await ask(url)).bytes
}

function idOf(item: Json): unknown {
  const names = Object.keys(item)
  const own = names.find((one) => /^(id|(tag|image|package|subscription|webhook)_id|api_key_id|ticket_?id)$/i.test(one))
  return item[own ?? '']
}

const ERROR_TYPES = {
  message: 'application/json',
  nested: 'application/json',
  problem: 'application/problem+json',
  text: 'text/plain; charset=utf-8',
  html: 'text/html',
  empty: null,
}

async function endpoint(): Promise<{ url: string; bodies: string[] }> {
  const bodies: string[] = []
  const server = createServer((request, response) => {
    let text = ''
    request.setEncoding('utf8').on('data', (part: string) => (text += part))
    request.on('end', () => {
      bodies.push(text)
      response.end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  return { url: `http://127.0.0.1:${String(port)}/hook`, bodies }
}

describe('a shape with one changed part', () => {
  test('leaves the other parts unchanged', async () => {
    const shape = shaped('wire', { records: { ids: 'integer', fields: 'camel', none: 'absent' } })
    const sandbox = await service(shape)
    const { value } = await asAdmin(sandbox, '/v1/patches?limit=8')
    expect(Object.keys(value)).toEqual(['tickets', 'cursor'])
    const tickets = value['tickets'] as Json[]
    expect(tickets.map((ticket) => ticket['ticketId'])).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
    expect(tickets.some((ticket) => 'patchFoundAt' in ticket)).toBe(true)
    expect(tickets.every((ticket) => ticket['patchFoundAt'] !== null)).toBe(true)
    const tag = (await asAdmin(sandbox, '/v1/tags/2')).value
    expect(tag).toMatchObject({ id: 2, image: { id: 1002 }, avrId: 2 })
  })

  test('gives the next URL in every style, with and without the query', async () => {
    for (const style of ['absolute', 'path', 'query'] as const) {
      for (const keeps of [true, false]) {
        const next = {
          form: 'url',
          at: ['next'],
          end: 'null',
          style,
          keeps,
          parameter: 'p',
        } as const
        const shape = shaped('nested', { lists: { next } })
        const sandbox = await service(shape)
        const { value } = await asAdmin(sandbox, '/v1/tags/?limit=3')
        const url = String(value['next'])
        expect(url.startsWith({ absolute: 'http://127', path: '/v1/tags/?', query: '?' }[style])).toBe(true)
        expect(url.includes('limit=3')).toBe(keeps)
        const ask = (at: string) => fetch(sandbox.url + at, { headers: AUTH })
        expect((await walkList(ask, '/v1/tags/?limit=3', shape.lists)).items).toHaveLength(7)
      }
    }
  })

  test('has the named validators, gzips on request, and may omit the length', async () => {
    const seen = async (http: Partial<Shape['http']>) => {
      const { url } = await service(shaped('wire', { http }))
      const { headers } = await fetch(`${url}/v1/tags/`, {
        headers: { ...AUTH, 'accept-encoding': 'identity' },
      })
      const has = (name: string) => headers.has(name)
      return [has('etag'), has('last-modified'), has('content-encoding'), has('content-length')]
    }
    expect(await seen({})).toEqual([true, true, false, true])
    expect(await seen({ validators: 'etag' })).toEqual([true, false, false, true])
    expect(await seen({ validators: 'date' })).toEqual([false, true, false, true])
    expect(await seen({ validators: 'none', gzip: 'always' })).toEqual([false, false, true, true])
    expect(await seen({ length: false })).toEqual([true, true, false, false])
  })

  test('sets the clock of the service, not that of its deliveries', async () => {
    const { url } = await service(shaped('wire', { http: { clockSeconds: 600 } }))
    const { headers } = await fetch(`${url}/v1/tags/`, { headers: AUTH })
    const ahead = Date.parse(headers.get('date') ?? '') - Date.now()
    expect(Math.abs(ahead - 600_000)).toBeLessThan(120_000)
  })

  test('answers 204 for an owner without artifacts', async () => {
    const sandbox = await service(shaped('wire', { artifacts: { none: 204 } }))
    const [bare = ''] = sandbox.service.ids('packages')
    expect((await asAdmin(sandbox, `/v1/packages/${bare}/artifacts/patches`)).status).toBe(204)
  })

  test('has the patch feed as rows, or as rows under `data`, of the same packages', async () => {
    const names = async (feed: Shape['feed'], at: readonly string[]) => {
      const { url } = await service(shaped('wire', { feed }))
      const asked = await fetch(`${url}/external/patch_feed?ecosystem=debian&os_distro_major=12`)
      const rows = valueAt(await asked.json(), at) as Json[]
      return [...new Set(rows.map((row) => row['package_src_name']))]
    }
    const tree = await fetch(`${(await service('wire')).url}/external/patch_feed?ecosystem=debian&os_distro_major=12`)
    const [release] = valueAt(await tree.json(), ['debian']) as [{ packages: { pkg: Json }[] }]
    const expected = release.packages.map(({ pkg }) => pkg['name'])
    expect(await names('rows', [])).toEqual(expected)
    expect(await names('data', ['data'])).toEqual(expected)
  })
})

test('an artifact has around it, beside it and before it what its forms say', async () => {
  const bodyOf = async (artifacts: Partial<Shape['artifacts']>, name: ShapeName = 'items') => {
    const sandbox = await service(shaped(name, { artifacts }))
    const [tag = ''] = sandbox.service.ids('tags')
    const { value, bytes, headers } = await asAdmin(sandbox, `/v1/tags/${tag}/sbom`)
    const [file = Buffer.of()] = sandbox.service.documents('tag', tag, 'sbom')
    return { value, text: bytes.toString(), headers, file: file.toString() }
  }
  const inside = await bodyOf({ around: 'json-api' })
  expect(inside.text).toBe(`{"data":{"id":"1","attributes":{"document":${inside.file}}}}`)
  const list = await bodyOf({ around: 'list' })
  expect(list.text).toBe(`[${list.file}]`)
  const packed = await bodyOf({ around: 'base64' })
  expect(atob(packed.value['content'] as string)).toBe(packed.file)
  const hal = await bodyOf({ links: 'hal' }, 'wire')
  expect(hal.text).toMatch(/"self":\{"href":"http:[^"]*\/sbom"\}.*"download"/)
  const located = await bodyOf({ links: 'location' }, 'wire')
  expect(located.headers.get('location')).toMatch(/^\/v1\/files\/sbom-/)
  const making = await bodyOf({ pending: 1, unfinished: 'processing' }, 'wire')
  expect(making.value).toEqual({ status: 'processing' })
})

test('paths are refused, or have another form, as the shape says', async () => {
  const http = { refused: ['/v1/tags/{tagID}/sbom'], keyed: ['/v1/subscriptions/'] }
  const sandbox = await service(shaped('wire', { http }))
  const [tag = ''] = sandbox.service.ids('tags')
  expect((await asAdmin(sandbox, `/v1/tags/${tag}/sbom`)).status).toBe(403)
  expect((await asAdmin(sandbox, `/v1/tags/${tag}/vex`)).status).toBe(200)
  expect((await asAdmin(sandbox, '/v1/subscriptions/')).value).toHaveProperty('7')
})
