import { inspect } from 'node:util'
import { afterEach, describe, expect, test } from 'vitest'
import { createAccess, createAttempts } from '../../../src/server/access/access.ts'
import { createTrust } from '../../../src/server/http/client-address.ts'
import { readCredential } from '../../../src/server/access/credentials.ts'
import { openPinnedReads } from '../../../src/store/reads.ts'
import { openWrites } from '../../../src/store/writes.ts'
import { type Reply, type Served, type ServedOptions, closeAll, jsonOf, serve, servedToAll } from '../served.ts'

afterEach(closeAll)

const KEY = 'Zk3v9wq7Rt5y2Lm8'
const OTHER = 'uH4x8Nq1Vb6c0Td3'
const WITH_KEYS = { PATCHMIRROR_SERVER_KEYS: `${KEY},${OTHER}` }
const NO_KEYS = { PATCHMIRROR_SERVER_KEYS: '' }
const OPEN = { ...NO_KEYS, PATCHMIRROR_SERVER_OPEN_LOOPBACK: 'true' }
const PATHS = ['/v1/me', '/v1/tags/t-1', '/v3/settings', '/packages/ecosystems/npm', '/v1/users']

const fillOne: Parameters<typeof serve>[0] = (store) => store.publishOsv({ one: '{}' })

/** Nothing is registered: who is let in meets a 404, who is not a 401. */
function serveNothing(options: ServedOptions = {}): Promise<Served> {
  return serve(fillOne, options)
}

const bearer = (key: string) => ({ Authorization: `Bearer ${key}` })
const basic = (pair: string) => ({
  Authorization: `Basic ${Buffer.from(pair).toString('base64')}`,
})
const textOf = (reply: Reply): string => String(jsonOf(reply)['message'])

describe('when the settings have keys,', () => {
  test('a private path accepts a key as bearer token or as Basic user name, and nothing else', async () => {
    const { get } = await serveNothing({ env: WITH_KEYS })
    const good = [bearer(KEY), bearer(OTHER), basic(`${KEY}:`), { authorization: `bEARER  ${KEY} ` }]
    for (const headers of good) for (const path of PATHS) expect((await get(path, headers)).status).toBe(404)
    const bad: Record<string, string>[] = [
      {},
      { Authorization: '' },
      bearer('wrong'),
      bearer(`${KEY}x`),
      bearer(KEY.slice(0, -1)),
      bearer(`${KEY},${OTHER}`),
      { 'api-key': KEY },
      { 'X-Forwarded-For': '127.0.0.1' },
    ]
    for (const headers of bad) {
      const reply = await get('/v1/me', headers)
      expect([headers, reply.status, jsonOf(reply)['error']]).toEqual([headers, 401, 'unauthorized'])
      expect(reply.headers['www-authenticate']).toMatch(/^Basic realm="patchmirror".*, Bearer realm=/)
      expect(reply.headers['cache-control']).toBe('no-store')
    }
  })

  test('a refusal says what is wrong and never repeats the key that was sent', async () => {
    const { get } = await serveNothing({ env: WITH_KEYS })
    expect(textOf(await get('/v1/me'))).toContain('patchmirror keys create')
    for (const [headers, text] of [
      [bearer('nonsense-key'), 'not valid here, or was revoked'],
      [basic(`${KEY}:nonsense-key`), 'the Basic password is not empty'],
      [basic('nonsense-key'), 'not base64 of "KEY:"'],
      [basic(':'), 'user name is empty'],
      [{ Authorization: 'Bearer' }, 'token is empty'],
      [{ Authorization: 'Digest nonsense-key' }, 'neither Basic nor Bearer'],
    ] as const) {
      const reply = await get('/v1/me', headers)
      expect([reply.status, textOf(reply)]).toEqual([401, expect.stringContaining(text)])
      expect(reply.body.toString()).not.toMatch(/nonsense-key|Zk3v9/)
    }
    const identity = jsonOf(await get('/v1/users'))
    expect(Object.keys(identity)).toEqual(['error', 'error_description', 'status_code'])
  })

  test('a request with two Authorization headers is refused, even if one of them is right', async () => {
    const { raw } = await serveNothing({ env: WITH_KEYS })
    const answer = await raw(
      `GET /v1/me HTTP/1.1\r\nHost: m\r\nAuthorization: Bearer ${KEY}\r\nAuthorization: Bearer x\r\nConnection: close\r\n\r\n`,
    )
    expect(answer).toMatch(/^HTTP\/1\.1 401 [^]*more than one Authorization/)
  })

  test('the public paths and the mirror’s own paths stay open, also to a wrong key', async () => {
    const { get } = await serveNothing({ env: WITH_KEYS })
    for (const path of ['/external/osv/all.json', '/-/health', '/-/status', '/'])
      for (const headers of [{}, bearer('wrong')])
        expect([path, (await get(path, headers)).status]).toEqual([path, 200])
  })

  test('the eleventh wrong key of a minute is answered 429 with Retry-After, a right key is still accepted', async () => {
    let now = Date.UTC(2026, 6, 1)
    const { get, told } = await serveNothing({ env: WITH_KEYS, now: () => now })
    const attempt = () => get('/v1/me', bearer('wrong'))
    for (let count = 0; count < 10; count++) expect((await attempt()).status).toBe(401)
    now += 20_500
    const reply = await attempt()
    expect([reply.status, jsonOf(reply)['error']]).toEqual([429, 'too_many_requests'])
    expect(reply.headers).toMatchObject({
      'retry-after': '40',
      'x-ratelimit-limit': '10',
      'x-ratelimit-remaining': '0',
    })
    expect((await get('/v1/me', bearer(KEY))).status).toBe(404)
    expect((await get('/v1/me')).status).toBe(401)
    expect((await attempt()).status).toBe(429)
    expect(told.filter((line) => line.includes('too many wrong keys'))).toHaveLength(1)
    now += 40_000
    expect((await attempt()).status).toBe(401)
  })

  test('failures behind a trusted proxy count for the client, not for the proxy', async () => {
    const env = { ...WITH_KEYS, PATCHMIRROR_SERVER_TRUST_PROXY: '127.0.0.1' }
    const { get } = await serveNothing({ env })
    const from = async (client: string) =>
      (await get('/v1/me', { ...bearer('wrong'), 'X-Forwarded-For': client })).status
    for (let count = 0; count < 10; count++) await from('2001:db8::1')
    expect(await from('2001:db8::ffff')).toBe(429)
    expect(await from('2001:db8:0:1::1')).toBe(401)
    expect(await from('198.51.100.1')).toBe(401)
  })

  test('no key is in the log or in an object that can be inspected', async () => {
    const served = await serveNothing({ env: WITH_KEYS, debug: true })
    await served.get('/v1/me', bearer(KEY))
    await served.get('/v1/me', bearer('wrong-key-of-somebody'))
    await served.get('/v1/me', basic(`${OTHER}:`))
    const { told, errors, requests, server } = served
    expect(told).toContain('entry 1 of server.keys is in use, by 127.0.0.1')
    const shown = inspect([told, errors, requests, server], { depth: 20, showHidden: true })
    expect(shown).not.toMatch(/Zk3v9wq7|uH4x8Nq1|wrong-key/)
    expect(shown).not.toContain(Buffer.from(`${OTHER}:`).toString('base64'))
  })
})

describe('keys made on the command line', () => {
  test('open and close the private paths of a running mirror from the next request on', async () => {
    const { get, dir, told } = await serveNothing({ env: NO_KEYS })
    const store = openWrites(dir)
    try {
      expect((await get('/v1/me')).status).toBe(401)
      const one = store.keys.createKey('build server', 1)
      const two = store.keys.createKey('', 1)
      expect((await get('/v1/me')).status).toBe(401)
      expect((await get('/v1/me', bearer(one.key))).status).toBe(404)
      expect((await get('/v1/me', basic(`${two.key}:`))).status).toBe(404)
      store.keys.revokeKey(one.id, 2)
      expect((await get('/v1/me', bearer(one.key))).status).toBe(401)
      expect((await get('/v1/me', bearer(two.key))).status).toBe(404)
      expect(told).toContain('key 1 (build server) is in use, by 127.0.0.1')
      store.keys.revokeKey(two.id, 2)
      expect((await get('/v1/me')).status, 'the last one revoked opens nothing').toBe(401)
    } finally {
      store.close()
    }
  })

  test('are accepted beside those of the settings', async () => {
    const { get, dir } = await serveNothing({ env: WITH_KEYS })
    const store = openWrites(dir)
    const { key } = store.keys.createKey('', 1)
    store.close()
    for (const valid of [key, KEY, OTHER]) expect((await get('/v1/me', bearer(valid))).status).toBe(404)
  })

  test('that cannot be read refuse every client', async () => {
    const { get, store, errors } = await serveNothing()
    store.damage('DROP TABLE local_key')
    const reply = await get('/v1/me')
    expect(reply.status).toBe(503)
    expect(errors).toHaveLength(1)
    expect((await get('/external/osv/all.json')).status).toBe(200)
  })
})

describe('when there is no key,', () => {
  test('every client is refused, also on this machine, and the log says so at start', async () => {
    const { get, raw, told } = await serveNothing({ env: NO_KEYS })
    for (const headers of [{}, { Host: 'localhost' }, { Host: '127.0.0.1' }, bearer('service-key')])
      expect([headers, (await get('/v1/me', headers)).status]).toEqual([headers, 401])
    expect(textOf(await get('/v1/me'))).toContain('patchmirror keys create')
    for (const path of ['/-/changes?source=catalog&since=000000000000', '/-/events?source=catalog'])
      expect([path, (await get(path)).status]).toEqual([path, 401])
    expect(await raw('GET /v1/me HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1\.1 401 /)
    expect((await get('/external/osv/all.json')).status).toBe(200)
    expect(told).toContainEqual(expect.stringMatching(/no key yet: .* answer 401.*keys create/))
  })
})

describe('when server.openLoopback is set,', () => {
  test('clients on this machine need no key, whatever headers they send, and the log warns at start', async () => {
    const { get, told } = await serveNothing({ env: OPEN })
    for (const headers of [{}, bearer('service-key'), { Host: 'LOCALHOST:1' }, { Host: '[::1]' }])
      expect([headers, (await get('/v1/me', headers)).status]).toEqual([headers, 404])
    expect(told[0]).toMatch(/^server\.openLoopback: .* without a key$/)
  })

  const openOne = servedToAll(fillOne, { env: OPEN })
  const keyedOne = servedToAll(fillOne, {
    env: { ...WITH_KEYS, PATCHMIRROR_SERVER_OPEN_LOOPBACK: 'true' },
  })

  test.each([
    { 'X-Forwarded-For': '192.0.2.1' },
    { 'X-Forwarded': 'for=192.0.2.1' },
    { 'X-Real-IP': '192.0.2.1' },
    { 'X-Original-Host': 'mirror.example' },
    { Forwarded: 'for=192.0.2.1' },
    { Via: '1.1 proxy' },
    { 'CF-Ray': '1' },
    { Host: 'rebound.example' },
    { Host: '127.0.0.1.rebound.example' },
    { Host: 'rebound.example:80.localhost' },
    { Host: 'user@localhost' },
  ])('a request with %j needs a key', async (headers) => {
    const { get } = await openOne()
    const reply = await get('/v1/me', headers)
    expect([reply.status, jsonOf(reply)['error']]).toEqual([401, 'unauthorized'])
    const keyed = await keyedOne()
    expect((await keyed.get('/v1/me', { ...headers, ...bearer(KEY) })).status).toBe(404)
  })

  test.each([
    [{ PATCHMIRROR_SERVER_PUBLIC_URL: 'https://mirror.example' }, 'server.publicUrl'],
    [{ PATCHMIRROR_SERVER_TRUST_PROXY: '10.0.0.1' }, 'server.trustProxy'],
  ])('a mirror with %j still requires a key, and the log says so at start', async (env, why) => {
    const { get, told } = await serveNothing({ env: { ...OPEN, ...env } })
    for (const path of PATHS) expect((await get(path)).status).toBe(401)
    expect(told[0]).toMatch(/^server\.openLoopback has no effect/)
    expect(told[0]).toContain(why)
  })

  test.each(['0.0.0.0', '::', '192.0.2.1', null])('a server bound to %s still requires a key', async (bound) => {
    const { dir } = await serveNothing()
    const reads = openPinnedReads(dir)
    if (reads === null) throw new Error('no database')
    const told: string[] = []
    const ignore = (): void => undefined
    const log = { debug: ignore, info: ignore, error: ignore, isLevelEnabled: () => false }
    const settings = { keys: [], openLoopback: true, publicUrl: null, socket: null, trustProxy: [] }
    const access = createAccess({
      settings: { ...settings, host: '0.0.0.0' },
      trusted: createTrust([]),
      reads,
      listeningOn: () => bound,
      log: { ...log, warn: (_, message) => told.push(message) },
      now: () => 0,
    })
    access.announce()
    expect(told[0]).toContain('listens to more than this machine')
    reads.close()
  })
})

test.each([
  ['Bearer a b', { kind: 'key', key: 'a b' }],
  ['  Bearer  a  ', { kind: 'key', key: 'a' }],
  [`Basic ${Buffer.from('schlüssel:').toString('base64')}`, { kind: 'key', key: 'schlüssel' }],
  ['   ', { kind: 'none' }],
  ['Basic', { kind: 'unusable' }],
  ['Basic ***', { kind: 'unusable' }],
  [`Basic ${Buffer.from('a:b:').toString('base64')}`, { kind: 'unusable' }],
])('the Authorization header %j is read as %j', (value, credential) => {
  expect(readCredential([value])).toMatchObject(credential)
})

describe('failures of authentication', () => {
  const limits = { failures: 1, windowMs: 60_000, clients: 3 }

  test('are stored for a limited number of clients: the oldest is forgotten', () => {
    const { fail } = createAttempts(limits, () => 0)
    for (const client of ['a', 'b', 'c', 'd']) fail(client)
    expect(fail('b').wait).toBe(60)
    expect(fail('d').wait).toBe(60)
    expect(fail('a').wait).toBe(0)
  })

  test('are forgotten when the clock goes backwards', () => {
    let now = 1_000_000
    const { fail } = createAttempts(limits, () => now)
    fail('a')
    expect(fail('a')).toEqual({ wait: 60, first: true })
    expect(fail('a')).toEqual({ wait: 60, first: false })
    now = 0
    expect(fail('a').wait).toBe(0)
  })
})
