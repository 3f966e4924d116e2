import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import { SANDBOX_KEYS, SANDBOX_TOKEN } from '../../src/sandbox/service/credentials.ts'
import { basicKey, bearer } from '../../src/upstream/auth.ts'
import { createOrigin } from '../support/origin.ts'
import { refusal, sandbox } from './sessions.ts'
import { get, session, upstreamOf } from './surfaces.ts'

describe('a credential', () => {
  test('of each kind opens the surface it is for', async () => {
    const service = await sandbox()
    const remediation = { UPSTREAM_API_ROOT: service.url }
    const byKey = upstreamOf({ ...remediation, UPSTREAM_API_KEY: SANDBOX_KEYS.readonly })
    const byToken = upstreamOf({ ...remediation, UPSTREAM_TOKEN: SANDBOX_TOKEN })
    for (const upstream of [byKey, byToken]) {
      expect(await get(session(upstream), '/me')).toMatchObject({ status: 200 })
      expect(await get(session(upstream, 'settings'), '/settings/webhooks')).toMatchObject({
        status: 200,
      })
      expect(upstream.has('identity')).toBe(false)
    }
    const identity = { IDENTITY_API_URL: service.identityUrl }
    const users = upstreamOf({ ...identity, IDENTITY_API_KEY: SANDBOX_KEYS.admin })
    expect(await get(session(users, 'identity'), '/users')).toMatchObject({ status: 200 })
    const sent = service.requests.entries.map(({ headers }) => headers['authorization'])
    const basic = `Basic ${Buffer.from(`${SANDBOX_KEYS.readonly}:`).toString('base64')}`
    expect([sent[0], sent[2], sent[4]]).toEqual([
      basic,
      `Bearer ${SANDBOX_TOKEN}`,
      `Bearer ${SANDBOX_KEYS.admin}`,
    ])
  })

  test('goes neither to the public feeds nor, unless told so, to the catalog', async () => {
    const { url, requests } = await createOrigin((_request, response) => response.end('[]'))
    const named = { UPSTREAM_API_ROOT: url, UPSTREAM_CATALOG_URL: url, UPSTREAM_API_KEY: 'k1234' }
    const upstream = upstreamOf(named)
    await get(session(upstream, 'public'), '/external/x')
    await get(session(upstream, 'catalog'), '/packages/x')
    const told = upstreamOf({ ...named, CATALOG_SEND_CREDENTIAL: 'true' })
    await get(session(told, 'catalog'), '/packages/x')
    expect(requests.map(({ headers }) => typeof headers.authorization)).toEqual([
      'undefined',
      'undefined',
      'string',
    ])
  })

  test('that is not set is asked for by name', () => {
    const none = upstreamOf({ UPSTREAM_API_ROOT: 'http://127.0.0.1:9' })
    expect(none.has('remediation')).toBe(false)
    expect(() => none.client('remediation')).toThrow(
      /remediation surface needs a credential.+upstream\.apiKey \(PATCHMIRROR_UPSTREAM_API_KEY/,
    )
    expect(() => none.client('settings')).toThrow('the webhook settings need a credential')
    expect(() => none.client('identity')).toThrow('identity.apiUrl is not set')
    expect(() => none.client('catalog')).toThrow('upstream.catalogUrl is not set')
  })

  test('of a token is tried as Basic where the webhook settings refuse it as Bearer, and kept so', async () => {
    const { url, requests } = await createOrigin(({ headers }, response) => {
      response.writeHead(headers.authorization?.startsWith('Basic ') === true ? 200 : 401).end('[]')
    })
    const made = session(
      upstreamOf({ UPSTREAM_API_ROOT: url, UPSTREAM_TOKEN: 't1234' }),
      'settings',
    )
    for (let i = 0; i < 3; i++) await get(made, '/settings/webhooks')
    expect(requests.length).toBe(4)
    expect(requests[3]?.headers.authorization).toBe(
      `Basic ${Buffer.from('t1234:').toString('base64')}`,
    )
  })
})

describe('a refused credential', () => {
  test('is named with its setting, its surface and what to check, and sends nothing more in its run', async () => {
    const service = await sandbox()
    const named = { UPSTREAM_API_ROOT: service.url, UPSTREAM_API_KEY: 'wrong-hunter2' }
    const upstream = upstreamOf(named)
    const made = session(upstream)
    const { message } = await refusal('upstream_auth', get(made, '/me'))
    expect(message).toContain(
      `upstream.apiKey was refused by the remediation surface at ${service.url}`,
    )
    expect(message).toContain('(GET /v1/me): 401')
    expect(message).toContain('patchmirror config')
    for (let i = 0; i < 5; i++) await refusal('upstream_auth', get(made, `/tags/${i}`))
    expect(service.requests.count()).toBe(1)
    await refusal('upstream_auth', get(session(upstream), '/me'))
    expect(service.requests.count()).toBe(2)
  })

  test('in the middle of a walk stops what is still to come', async () => {
    const service = await sandbox()
    const upstream = upstreamOf({
      UPSTREAM_API_ROOT: service.url,
      UPSTREAM_API_KEY: SANDBOX_KEYS.admin,
    })
    const made = session(upstream)
    await get(made, '/me')
    service.service.revoke(SANDBOX_KEYS.admin)
    await refusal('upstream_auth', get(made, '/tags/'))
    await refusal('upstream_auth', get(made, '/images/'))
    expect(service.requests.count()).toBe(2)
  })

  test('that may not do this is told from one that is wrong, with what the service says', async () => {
    const service = await sandbox()
    const upstream = upstreamOf({
      UPSTREAM_API_ROOT: service.url,
      UPSTREAM_API_KEY: SANDBOX_KEYS.readonly,
    })
    const work = session(upstream).request({
      method: 'POST',
      path: '/api_keys/',
      json: { name: 'x' },
      maxBytes: 1000,
    })
    const { message } = await refusal('upstream_auth', work)
    expect(message).toContain('upstream.apiKey is not allowed this')
    expect(message).toContain('It said: the credential may only read')
    expect(message).toContain('Check the role')
  })

  test('shows in no message, even when the service echoes it', async () => {
    const { url } = await createOrigin(({ headers }, response) => {
      const message = `no such key: ${headers.authorization ?? ''} hunter2-key`
      response
        .writeHead(401, { 'Content-Type': 'application/json' })
        .end(JSON.stringify({ message }))
    })
    const upstream = upstreamOf({ UPSTREAM_API_ROOT: url, UPSTREAM_API_KEY: 'hunter2-key' })
    const { message } = await refusal('upstream_auth', get(session(upstream), '/me'))
    expect(message).toContain('no such key: ******** ********')
    expect(message).not.toContain('hunter2')
  })
})

describe('a redirect', () => {
  test('to another host or port never sees the credential', async () => {
    const other = await createOrigin((_request, response) => response.end('{}'))
    const { url } = await createOrigin((_request, response) => {
      response.writeHead(307, { Location: `${other.url}/v1/me` }).end()
    })
    const upstream = upstreamOf({ UPSTREAM_API_ROOT: url, UPSTREAM_API_KEY: 'k1234' })
    await refusal('upstream_status', get(session(upstream), '/me'))
    expect(other.requests.length).toBe(0)
  })

  test('within the host keeps it; one that would turn a POST into a GET is refused', async () => {
    const { url, requests } = await createOrigin((request, response) => {
      if (request.url === '/v1/new') return response.end('{}')
      const status = request.url === '/v1/moved' ? 301 : 307
      return response.writeHead(status, { Location: '/v1/new' }).end()
    })
    const made = session(upstreamOf({ UPSTREAM_API_ROOT: url, UPSTREAM_API_KEY: 'k1234' }))
    const post = { method: 'POST', json: { a: 1 }, maxBytes: 1000 } as const
    await made.request({ ...post, path: '/old' })
    expect(requests.map(({ method, headers }) => [method, typeof headers.authorization])).toEqual([
      ['POST', 'string'],
      ['POST', 'string'],
    ])
    await refusal('upstream_status', made.request({ ...post, path: '/moved' }))
  })
})

test('nothing that holds a credential shows it when it is dumped', () => {
  const upstream = upstreamOf({
    UPSTREAM_API_ROOT: 'http://127.0.0.1:9',
    UPSTREAM_API_KEY: 'hunter2',
  })
  const made = session(upstream)
  for (const thing of [upstream, made, basicKey('n', 'hunter2'), bearer('n', 'hunter2')]) {
    const shown = inspect(thing, { depth: 20, showHidden: true })
    expect(shown).not.toContain('hunter2')
    expect(JSON.stringify(thing)).not.toContain('hunter2')
  }
})
