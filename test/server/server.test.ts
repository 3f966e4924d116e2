import { connect } from 'node:net'
import { once } from 'node:events'
import { type IncomingMessage, Agent, get as httpGet } from 'node:http'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect } from 'vitest'
import { openFilledStore } from '../support/filled-store.ts'
import { type Served, type ServedOptions, FEEDS, closeAll, jsonOf, serve, servedToAll } from './served.ts'
import { BUCKET_CONTRACTS, QUERY_CONTRACTS } from '../../src/features/scanners/routes/contract.ts'
import { longTest, test } from '../support/tables.ts'

afterEach(closeAll)

const RECORD = '/external/osv/one.json'
const PATCH_FEED_PATH = '/external/patch_feed'
const MIRRORED = [
  RECORD,
  '/external/osv/all.json',
  '/external/osv/all.zip',
  '/external/patch_feed',
  '/external/globals/sys_matrix',
]

const serveAll = servedToAll((store) => {
  store.publishOsv({ one: '{"id":"one"}' })
  store.publishFeeds(FEEDS)
})

longTest('HEAD has exactly the headers of GET, and no body', async () => {
  const { get, head } = await serveAll()
  const others = ['/external/cve_feed', '/external/osv/none.json', '/nothing', '/', '/-/health']
  for (const path of [...MIRRORED, ...others, '/-/status', '/-/ready']) {
    for (const coding of ['identity', 'gzip']) {
      const full = await get(path, { 'Accept-Encoding': coding })
      const headed = await head(path, { 'Accept-Encoding': coding })
      expect([path, headed.status, headed.body.length]).toEqual([path, full.status, 0])
      expect({ path, ...headed.headers, date: '' }).toEqual({ path, ...full.headers, date: '' })
    }
  }
})

test('a writing method on a known path is a 405 that names the allowed ones', async () => {
  const { get } = await serveAll()
  for (const path of [...MIRRORED, '/external/osv/none.json', '/', '/-/status'])
    for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE', 'PROPFIND']) {
      const reply = await get(path, { 'Content-Type': 'text/odd' }, method)
      expect([path, method, reply.status]).toEqual([path, method, 405])
      expect(reply.headers.allow).toBe('GET, HEAD')
      expect(jsonOf(reply)['error']).toBe('method_not_allowed')
    }
})

test('an unknown path of the package catalog is a 404 that names its setting and its paths', async () => {
  const { get } = await serveAll()
  for (const path of ['/packages/ecosystems', '/packages/ecosystems/npm/packages/a'])
    expect(jsonOf(await get(path))).toMatchObject({
      error: 'not_found',
      message: expect.stringMatching(/upstream\.catalogUrl, it is \/packages\/.*\/versions/) as string,
    })
})

test('a writing method on an unknown path is a 404, like GET', async () => {
  const { get } = await serveAll()
  for (const path of ['/nothing', '/external/nothing', '/external/osv/', '/-/redy'])
    for (const method of ['POST', 'DELETE', 'OPTIONS']) {
      const reply = await get(path, {}, method)
      expect([path, method, reply.status]).toEqual([path, method, 404])
      expect(jsonOf(reply)).toEqual(jsonOf(await get(path)))
    }
})

test('an error on a mirrored path names the snapshot', async () => {
  const { get } = await serveAll()
  const refused: [string, string, number][] = [
    ...MIRRORED.map((path): [string, string, number] => ['POST', path, 405]),
    ['GET', '/external/patch_feed?ecosystem=none', 400],
    ['GET', '/external/osv/%zz.json', 400],
    ['POST', '/external/osv/%zz.json', 400],
    ['POST', '/external/patch%5Ffeed', 405],
    ['GET', '/external/osv/none.json', 404],
    ['GET', '/external/cve_feed', 404],
  ]
  for (const [method, path, status] of refused) {
    const { headers } = await get(path.startsWith('/external/osv/') ? RECORD : PATCH_FEED_PATH)
    const reply = await get(path, {}, method)
    expect([path, reply.status]).toEqual([path, status])
    expect(reply.headers).toMatchObject({
      'x-mirror-snapshot': headers['x-mirror-snapshot'],
      'x-mirror-as-of': headers['x-mirror-as-of'],
    })
  }
})

test('an error before the first sync names no snapshot', async () => {
  const { get } = await serve(() => undefined)
  const reply = await get(RECORD, {}, 'POST')
  expect(reply.status).toBe(405)
  expect(Object.keys(reply.headers).filter((name) => name.startsWith('x-mirror'))).toEqual([])
})

test.each([
  '/-/redy',
  '/-/',
  '/-',
  '/-/Health/',
  '/entirely/elsewhere',
  '/external/osv/all.json/',
  '/external/osv/ALL.json',
  '/external//osv/all.zip',
  '//external/patch_feed',
  '/external/Patch_Feed',
  '/v1/external/patch_feed',
  '/external/osv/CVE-2024-1',
])('the unknown path %s is a 404 in JSON that no cache stores', async (path) => {
  const { get } = await serveAll()
  const reply = await get(path)
  expect([reply.status, jsonOf(reply)['error']]).toEqual([404, 'not_found'])
  expect(reply.headers['cache-control']).toBe('no-store')
})

test('a very long path and one that cannot be decoded are answered in JSON', async () => {
  const { get } = await serveAll()
  expect((await get(`/${'x'.repeat(20_000)}`)).status).toBe(404)
  const bad = await get('/%zz')
  expect([bad.status, jsonOf(bad)['error']]).toEqual([400, 'bad_request'])
})

test('credentials, upgrades, bodies and unknown headers do not change a public answer', async () => {
  const { get, raw } = await serveAll()
  const plain = await get(RECORD)
  const odd: Record<string, string>[] = [
    { Authorization: 'Bearer nonsense' },
    { Authorization: '' },
    { 'api-key': '' },
    { Cookie: 'a=b' },
    { Connection: 'Upgrade, HTTP2-Settings', Upgrade: 'h2c', 'HTTP2-Settings': 'AAMAAABkAAQAAP__' },
    { 'X-Long': 'x'.repeat(40_000) },
    { Accept: 'text/html' },
    { 'Accept-Charset': '%%%', Range: 'bytes=0-1' },
  ]
  for (const headers of odd) {
    const reply = await get(RECORD, headers)
    expect([Object.keys(headers), reply.status]).toEqual([Object.keys(headers), 200])
    expect(reply.body.equals(plain.body)).toBe(true)
  }
  const withBody = await raw(
    `GET ${RECORD} HTTP/1.1\r\nHost: m\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"bad":1,GET ${RECORD} HTTP/1.1\r\nHost: m\r\nConnection: close\r\n\r\n`,
  )
  expect(withBody.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(2)
})

test('an HTTP/1.0 client gets an answer and the end of the connection', async () => {
  const { raw } = await serveAll()
  for (const path of [RECORD, '/external/osv/all.zip', '/-/health']) {
    const answer = await raw(`GET ${path} HTTP/1.0\r\n\r\n`)
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
    expect(answer).not.toMatch(/transfer-encoding/i)
  }
})

test('a request that is not HTTP or has too many header bytes is refused in JSON', async () => {
  const { raw } = await serveAll()
  expect(await raw('\x16\x03\x01\x02\x00 TLS\r\n\r\n')).toMatch(/^HTTP\/1\.1 400 [^]*"bad_request"/)
  for (const target of ['*', '*?x', 'ftp://h/external/osv/all.json'])
    expect([target, await raw(`GET ${target} HTTP/1.1\r\nHost: m\r\nConnection: close\r\n\r\n`)]).toEqual([
      target,
      expect.stringMatching(/^HTTP\/1\.1 400 [^]*"bad_request"/),
    ])
  const options = await raw('OPTIONS * HTTP/1.1\r\nHost: m\r\nConnection: close\r\n\r\n')
  expect(options).toMatch(/^HTTP\/1\.1 40[45] /)
  const huge = `GET / HTTP/1.1\r\nHost: m\r\nX: ${'x'.repeat(70_000)}\r\n\r\n`
  expect(await raw(huge)).toMatch(/^HTTP\/1\.1 431 /)
})

test('the root document names the mirrored paths', async () => {
  const { get } = await serveAll()
  expect(jsonOf(await get('/'))).toMatchObject({
    name: 'patchmirror',
    version: '9.9.9',
    mirrored: [
      '/external/osv/all.json',
      '/external/osv/all.zip',
      '/external/patch_feed',
      '/external/globals/sys_matrix',
      '/external/cve_feed',
      '/external/osv/{id}.json',
      ...Object.keys(BUCKET_CONTRACTS),
      ...Object.keys(QUERY_CONTRACTS),
    ],
  })
})

test('the index is served as upstream’s bytes', async () => {
  let index = ''
  const { get } = await serve((store) => {
    index = store.publishOsv({ one: '{}', two: '{}' }).index
  })
  const reply = await get('/external/osv/all.json')
  expect(reply.body.toString()).toBe(index)
  expect(reply.headers['last-modified']).toBe('Wed, 01 Jul 2026 00:00:00 GMT')
})

longTest('hundreds of connections at once are all answered', async () => {
  const { port } = await serveAll()
  const count = 1000
  const agent = new Agent({ keepAlive: true, maxSockets: count })
  const statuses = await Promise.all(
    Array.from(
      { length: count },
      (_, i) =>
        new Promise<number | undefined>((resolve, reject) => {
          const path = MIRRORED[i % MIRRORED.length] ?? ''
          httpGet({ port, host: '127.0.0.1', path, agent }, (response: IncomingMessage) => {
            response.resume().once('end', () => resolve(response.statusCode))
          }).once('error', reject)
        }),
    ),
  )
  expect(new Set(statuses)).toEqual(new Set([200]))
  agent.destroy()
})

test('a client beyond the limit takes the place of a connection that has sent nothing', async () => {
  const { port, get } = await serve((store) => store.publishOsv({ one: '{}' }), {
    env: { PATCHMIRROR_SERVER_MAX_CONNECTIONS: '2' },
  })
  const held = [connect(port, '127.0.0.1'), connect(port, '127.0.0.1')]
  await Promise.all(held.map((socket) => once(socket, 'connect')))
  const closed = Promise.race(held.map((socket) => once(socket.resume(), 'close')))
  expect((await get(RECORD)).status).toBe(200)
  await closed
  for (const socket of held) socket.destroy()
})

/** A folder whose archive is more than sockets buffer; it is filled once. */
const large = mkdtempSync(join(tmpdir(), 'patchmirror-large-'))
beforeAll(() => {
  const store = openFilledStore(large)
  store.publishOsv({ big: randomBytes(12_000_000) })
  store.close()
})
afterAll(() => rmSync(large, { recursive: true, force: true }))

const serveLarge = (options: ServedOptions = {}): Promise<Served> =>
  serve(() => undefined, { ...options, dir: large, keep: true })

test('closing the server lets a running request finish', async () => {
  const { port, server } = await serveLarge()
  const options = { port, host: '127.0.0.1', path: '/external/osv/all.zip', agent: false }
  const [response] = (await once(httpGet(options), 'response')) as [IncomingMessage]
  const closed = server.close()
  let received = 0
  for await (const chunk of response) received += (chunk as Buffer).length
  expect(received).toBe(Number(response.headers['content-length']))
  await closed
  expect(server.address()).toBeNull()
  await expect(once(connect(port, '127.0.0.1'), 'connect')).rejects.toThrow()
})

test('closing the server ends a request that does not finish in time', async () => {
  const { port, server } = await serveLarge({ closeGraceMs: 50 })
  const options = { port, host: '127.0.0.1', path: '/external/osv/all.zip', agent: false }
  const [response] = (await once(httpGet(options), 'response')) as [IncomingMessage]
  await server.close()
  await expect(once(response.resume(), 'end')).rejects.toThrow()
})

test('every request is logged at debug level', async () => {
  const { get, requests } = await serve((store) => store.publishOsv({ one: '{}' }), { debug: true })
  for (const path of [RECORD, '/external/osv/none.json', '/-/health', RECORD]) await get(path)
  await expect.poll(() => requests.length).toBe(4)
  expect(requests).toMatchObject([
    { method: 'GET', url: RECORD, statusCode: 200, finished: true },
    { statusCode: 404 },
    { url: '/-/health' },
    { url: RECORD },
  ])
})

test('the log at debug level has the names of parameters, and no value that may be secret', async () => {
  const { get, requests } = await serve(() => undefined, { debug: true })
  const query = 'limit=5&order=name&after=c1&token=geheim&x=geheim&geheim&=geheim&&expires=1'
  await get(`/-/health?${query}#geheim`)
  await get(`/-/health?geheim`)
  await expect.poll(() => requests.length).toBe(2)
  const hidden = 'token=********&x=********&********&********&********&expires=********'
  expect(requests).toMatchObject([
    { url: `/-/health?limit=5&order=name&after=c1&${hidden}` },
    { url: '/-/health?********' },
  ])
  expect(JSON.stringify(requests)).not.toContain('geheim')
})

test('an address in use is an error that names the setting', async () => {
  const { port } = await serveAll()
  const second = serve(() => undefined, { env: { PATCHMIRROR_SERVER_LISTEN: `127.0.0.1:${port}` } })
  await expect(second).rejects.toMatchObject({ code: 'config' })
  await expect(second).rejects.toThrow('server.listen')
})

test.each([
  ['a proxy that no setting names', {}, 1],
  ['a proxy that is trusted', { PATCHMIRROR_SERVER_TRUST_PROXY: '127.0.0.1' }, 0],
])('forwarding headers of %s cause warnings with %j: %i', async (_name, env, warnings) => {
  const { get, told } = await serve((store) => store.publishOsv({ one: '{"id":"one"}' }), {
    env: env,
  })
  for (const headers of [
    { 'X-Forwarded-For': '192.0.2.1' },
    { Forwarded: 'for=192.0.2.1' },
    { 'X-Forwarded-Host': 'mirror.example', 'X-Forwarded-Proto': 'https' },
  ])
    expect((await get(RECORD, headers)).status).toBe(200)
  const found = told.filter((line) => line.includes('server.trustProxy'))
  expect(found).toHaveLength(warnings)
  for (const line of found) expect(line).toContain('the header x-forwarded-for, which is ignored')
})
