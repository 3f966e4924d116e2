import { afterEach, describe, expect, test } from 'vitest'
import { createAnswer, sendAnswer } from '../../../src/server/http/response.ts'
import { addPrivateRoutes } from '../../../src/server/access/private-routes.ts'
import type { PrivateRoute, RouteCall } from '../../../src/server/access/private-route.ts'
import type { ServerPlugin, ServerTools } from '../../../src/server/plugin.ts'
import { MirrorError } from '../../../src/base/errors.ts'
import { type Reply, type Served, type ServedOptions, closeAll, jsonOf, serve, servedToAll } from '../served.ts'

afterEach(closeAll)

const DOCUMENT = Buffer.from('{"bomFormat":"CycloneDX"}')

const CONTRACT = { summary: 'A sample', tags: ['Catalog'], responses: {} }

const sample: ServerPlugin = (app, tools, done) => {
  addPrivateRoutes(app, tools, sampleRoutes(tools))
  done()
}

/** Routes as the catalog has them: an item, a link to a document, the document, and every way to fail. */
function sampleRoutes({ served, heads, links }: ServerTools): PrivateRoute[] {
  const send = (call: RouteCall, body: Buffer): void =>
    sendAnswer(call, createAnswer('identity', body, '0'.repeat(32), 0), served.originOf('osv'), heads)
  const route = (path: string, work: (call: RouteCall) => void): PrivateRoute => ({
    path,
    contract: CONTRACT,
    answer: (call) => {
      work(call)
      return undefined
    },
  })
  return [
    route('/v1/me', (call) => send(call, Buffer.from('{"id":"me"}'))),
    route('/v1/tags/{tagID}', (call) => send(call, Buffer.from(JSON.stringify(call.params)))),
    route('/v1/tags/{tagID}/sbom', (call) => {
      const path = `/-/artifacts/${encodeURIComponent(call.params['tagID'] ?? '')}`
      const url = call.baseUrl() + links.signLink({ path, expiresAt: links.expiry() })
      send(call, Buffer.from(JSON.stringify({ sbom_file_url: url })))
    }),
    { ...route('/-/artifacts/{digest}', (call) => send(call, DOCUMENT)), opensWith: 'link' },
    route('/v1/users', () => {
      throw new MirrorError('not_found', 'no users here')
    }),
    {
      ...route('/v1/images', (call) =>
        call.refuse({ status: 404, error: 'not_in_scope', message: 'see catalog.scope' }),
      ),
      source: 'osv',
    },
    { path: '/v1/packages', contract: CONTRACT, answer: () => Promise.reject(new Error('a defect with details')) },
  ]
}

function serveSamples(options: ServedOptions = {}): Promise<Served> {
  return serve((store) => store.publishOsv({ one: '{}' }), { plugins: [sample], ...options })
}

const KEY = 'Zk3v9wq7Rt5y2Lm8'
const WITH_KEYS = { PATCHMIRROR_SERVER_KEYS: KEY }
const bearer = (key = KEY): Record<string, string> => ({ Authorization: `Bearer ${key}` })
const status = (reply: Reply): unknown[] => [reply.status, jsonOf(reply)['error']]

describe('a private route', () => {
  test('answers GET and HEAD, with and without the slash at the end, as private to the client', async () => {
    const { get, head } = await serveSamples()
    for (const path of ['/v1/me', '/v1/me/', '/v1/me?x=1']) {
      const reply = await get(path)
      expect([path, reply.status, reply.body.toString()]).toEqual([path, 200, '{"id":"me"}'])
      expect(reply.headers['cache-control']).toMatch(/^private, /)
      expect((await head(path)).headers.etag).toBe(reply.headers.etag)
    }
    expect(jsonOf(await get('/v1/tags/a%2Fb'))).toEqual({ tagID: 'a/b' })
  })

  test('answers errors in the form of its surface', async () => {
    const { get, errors } = await serveSamples()
    expect(jsonOf(await get('/v1/users'))).toEqual({
      error: 'not_found',
      error_description: 'no users here',
      status_code: 404,
    })
    expect(jsonOf(await get('/v1/users/u-1'))).toMatchObject({
      error: 'not_found',
      status_code: 404,
    })
    expect(jsonOf(await get('/v1/images'))).toEqual({
      error: 'not_in_scope',
      message: 'see catalog.scope',
    })
    const failed = await get('/v1/packages')
    expect(status(failed)).toEqual([500, 'internal'])
    expect(failed.body.toString()).not.toContain('details')
    expect(errors).toHaveLength(1)
  })

  test('that does not exist is a 404, and a path that cannot be decoded is a 400', async () => {
    const { get } = await serveSamples()
    const missed = await get('/v1/tag/t-1/sbom')
    expect(jsonOf(missed)).toMatchObject({ error: 'not_found', path: '/v1/tag/t-1/sbom' })
    expect(status(await get('/v1/tags/%zz'))).toEqual([400, 'bad_request'])
    expect(status(await get('/v2/tags/t-1'))).toEqual([404, 'not_found'])
    expect(status(await get('/v1/nothing', {}, 'POST'))).toEqual([404, 'not_found'])
    expect((await get('/%76%31/me')).status).toBe(200)
    expect(jsonOf(await get('/v1/%75sers'))['status_code']).toBe(404)
    for (const path of ['/V1/me', '//v1/me', '/v1%2Fme', '/./v1/me', '/x/../v1/me'])
      expect([path, ...status(await get(path))]).toEqual([path, 404, 'not_found'])
  })

  test('gives the same answer to a request with an absolute URL', async () => {
    const { raw } = await serveSamples({ env: WITH_KEYS })
    const answer = await raw(
      `GET http://elsewhere.example/v1/me HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${KEY}\r\nConnection: close\r\n\r\n`,
    )
    expect(answer).toMatch(/^HTTP\/1\.1 200 /)
  })
})

test('the errors of a private route name the snapshot, except to clients without a key', async () => {
  const { get } = await serveSamples({ env: WITH_KEYS })
  const { headers } = await get('/external/osv/all.json')
  const snapshot = headers['x-mirror-snapshot']
  expect((await get('/v1/images', bearer())).headers['x-mirror-snapshot']).toBe(snapshot)
  const denied = await get('/v1/images')
  expect([denied.status, denied.headers['x-mirror-snapshot']]).toEqual([401, undefined])
})

describe('a writing request', () => {
  const serveKeyed = servedToAll((store) => store.publishOsv({ one: '{}' }), {
    plugins: [sample],
    env: WITH_KEYS,
  })

  test.each([
    ['POST', '/v1/api_keys/', 'api-keys create'],
    ['POST', '/v1/api_keys', 'api-keys create'],
    ['DELETE', '/v1/api_keys/k-1/', 'api-keys delete ID'],
    ['POST', '/v1/subscriptions/', 'subscriptions add'],
    ['DELETE', '/v1/subscriptions/', 'subscriptions remove'],
    ['POST', '/v3/settings/webhooks', 'webhooks register'],
    ['DELETE', '/v3/settings/webhooks/w-1', 'webhooks delete ID'],
    ['POST', '/v3/settings/webhooks/w-1/test-tag-created', 'webhooks test ID'],
  ])('%s %s is a 405 that names the command, with and without a key', async (method, path, command) => {
    const { get } = await serveKeyed()
    const reply = await get(path, { 'Content-Type': 'application/json' }, method)
    expect([reply.status, reply.headers.allow]).toEqual([405, 'GET, HEAD'])
    expect(jsonOf(reply)).toMatchObject({
      error: 'method_not_allowed',
      command: `patchmirror ${command}`,
    })
    expect(jsonOf(reply)['message']).toContain(`patchmirror ${command}`)
  })

  test('is refused on every other known path as well, also on a signed link', async () => {
    const { get } = await serveSamples({ env: WITH_KEYS })
    for (const path of ['/v1/me', '/v1/me/', '/v1/tags/x', '/-/artifacts/x', '/v1/subscriptions'])
      for (const method of ['PUT', 'PATCH', 'OPTIONS'])
        expect([path, method, (await get(path, {}, method)).status]).toEqual([path, method, 405])
  })

  test('for a token is refused in the form of the identity surface', async () => {
    const { get } = await serveSamples()
    for (const path of ['/oauth/token', '/oauth/token/']) {
      const reply = await get(path, {}, 'POST')
      expect([reply.status, reply.headers.allow]).toEqual([405, 'GET, HEAD'])
      const body = jsonOf(reply)
      expect(Object.keys(body)).toEqual(['error', 'error_description', 'status_code'])
      expect(body['error_description']).toContain('token endpoint of the service')
    }
    const read = await get('/oauth/token')
    expect([read.status, jsonOf(read)['status_code']]).toEqual([404, 404])
    expect(jsonOf(await get('/v3/settings/webhooks'))['message']).toContain('nothing to read')
  })
})

describe('a link in an answer', () => {
  const linkOf = async ({ get }: Served, headers: Record<string, string> = {}): Promise<URL> =>
    new URL(String(jsonOf(await get('/v1/tags/a%20b/sbom', headers))['sbom_file_url']))
  const targetOf = (url: URL): string => url.pathname + url.search

  test('opens the document without a key, at the host that was asked', async () => {
    const served = await serveSamples({ env: WITH_KEYS })
    const url = await linkOf(served, { ...bearer(), Host: 'mirror.example:99' })
    expect(url.origin).toBe('http://mirror.example:99')
    for (const headers of [{}, bearer('wrong-key-wrong-key')]) {
      const reply = await served.get(targetOf(url), headers)
      expect([reply.status, reply.body]).toEqual([200, DOCUMENT])
    }
    expect((await served.get(url.pathname, bearer())).status).toBe(403)
  })

  test('is a 403 after it has expired, and says how to get a new one', async () => {
    let now = Date.UTC(2026, 6, 1)
    const served = await serveSamples({ now: () => now })
    const target = targetOf(await linkOf(served))
    now += 17 * 60_000
    const reply = await served.get(target)
    expect(status(reply)).toEqual([403, 'link_expired'])
    expect(jsonOf(reply)['message']).toContain('Request the path that returned this link again')
  })

  test('still opens after a restart on the same data folder, and not on another one', async () => {
    const one = await serveSamples()
    const other = await serveSamples()
    const target = targetOf(await linkOf(one))
    expect(status(await other.get(target))).toEqual([403, 'link_not_valid'])
    await one.server.close()
    const again = await serveSamples({ dir: one.dir })
    expect((await again.get(target)).status).toBe(200)
  })

  test('has the host of the public URL or of a trusted proxy, and of no other client', async () => {
    const evil = { 'X-Forwarded-Host': 'evil.example', 'X-Forwarded-Proto': 'https' }
    const plain = await serveSamples({ env: WITH_KEYS })
    expect((await linkOf(plain, { ...bearer(), ...evil })).hostname).toBe('127.0.0.1')
    const trusting = await serveSamples({
      env: { ...WITH_KEYS, PATCHMIRROR_SERVER_TRUST_PROXY: '127.0.0.0/8' },
    })
    const proxied = { 'X-Forwarded-Host': 'm.example', 'X-Forwarded-Proto': 'https' }
    const url = await linkOf(trusting, { ...bearer(), ...proxied, 'X-Forwarded-Prefix': '/m' })
    expect(url.href).toMatch(/^https:\/\/m\.example\/m\/-\/artifacts\/a%20b\?expires=/)
    const fixed = await serveSamples({
      env: { ...WITH_KEYS, PATCHMIRROR_SERVER_PUBLIC_URL: 'https://public.example/x/' },
    })
    const link = await linkOf(fixed, { ...bearer(), ...evil })
    expect(link.href).toMatch(/^https:\/\/public\.example\/x\/-\//)
  })

  test('is logged without its signature', async () => {
    const served = await serveSamples({ debug: true })
    await served.get(targetOf(await linkOf(served)))
    await expect.poll(() => served.requests.length).toBe(2)
    expect(JSON.stringify(served.requests)).toMatch(/signature=\*{8}"/)
  })
})
