import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import { SANDBOX_CLIENT, SANDBOX_KEYS, SANDBOX_TOKEN } from '../../sandbox/service/credentials.ts'
import { basicKey, bearer } from '../../../src/upstream/http/credentials.ts'
import { createOrigin } from '../../support/origin.ts'
import { refusal, sandbox, scratch } from './sessions.ts'
import { get, session, upstreamOf } from '../fixtures.ts'

describe('a credential', () => {
  test('of each kind is sent to its surface', async () => {
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
    expect([sent[0], sent[2], sent[4]]).toEqual([basic, `Bearer ${SANDBOX_TOKEN}`, `Bearer ${SANDBOX_KEYS.admin}`])
  })

  test('is sent neither to the public feeds nor, by default, to the package catalog', async () => {
    const { url, requests } = await createOrigin((_request, response) => response.end('[]'))
    const named = { UPSTREAM_API_ROOT: url, UPSTREAM_CATALOG_URL: url, UPSTREAM_API_KEY: 'k1234' }
    const upstream = upstreamOf(named)
    await get(session(upstream, 'public'), '/external/x')
    await get(session(upstream, 'catalog'), '/packages/x')
    const told = upstreamOf({ ...named, CATALOG_SEND_CREDENTIAL: 'true' })
    await get(session(told, 'catalog'), '/packages/x')
    expect(requests.map(({ headers }) => typeof headers.authorization)).toEqual(['undefined', 'undefined', 'string'])
  })

  test('that is missing is reported by the name of its setting', () => {
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
    const made = session(upstreamOf({ UPSTREAM_API_ROOT: url, UPSTREAM_TOKEN: 't1234' }), 'settings')
    for (let i = 0; i < 3; i++) await get(made, '/settings/webhooks')
    expect(requests.length).toBe(4)
    expect(requests[3]?.headers.authorization).toBe(`Basic ${Buffer.from('t1234:').toString('base64')}`)
  })
})

describe('a refused credential', () => {
  test('is reported with its setting, its surface and what to check, and ends the requests of its run', async () => {
    const service = await sandbox()
    const named = { UPSTREAM_API_ROOT: service.url, UPSTREAM_API_KEY: 'wrong-hunter2' }
    const upstream = upstreamOf(named)
    const made = session(upstream)
    const { message } = await refusal('upstream_auth', get(made, '/me'))
    expect(message).toContain(`upstream.apiKey was refused by the remediation surface at ${service.url}`)
    expect(message).toContain('(GET /v1/me): 401')
    expect(message).toContain('patchmirror config')
    for (let i = 0; i < 5; i++) await refusal('upstream_auth', get(made, `/tags/${i}`))
    expect(service.requests.count()).toBe(1)
    await refusal('upstream_auth', get(session(upstream), '/me'))
    expect(service.requests.count()).toBe(2)
  })

  test('in the middle of a walk stops the remaining requests', async () => {
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

  test('without a right is distinguished from a wrong one, with the message of the service', async () => {
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
    expect(message).toContain('Reason given: the credential may only read')
    expect(message).toContain('Check the role')
  })

  test('is in no message, even when the service returns it', async () => {
    const { url } = await createOrigin(({ headers }, response) => {
      const message = `no such key: ${headers.authorization ?? ''} hunter2-key`
      response.writeHead(401, { 'Content-Type': 'application/json' }).end(JSON.stringify({ message }))
    })
    const upstream = upstreamOf({ UPSTREAM_API_ROOT: url, UPSTREAM_API_KEY: 'hunter2-key' })
    const { message } = await refusal('upstream_auth', get(session(upstream), '/me'))
    expect(message).toContain('no such key: ******** ********')
    expect(message).not.toContain('hunter2')
  })
})

describe('a redirect', () => {
  test('to another host or port never gets the credential', async () => {
    const other = await createOrigin((_request, response) => response.end('{}'))
    const { url } = await createOrigin((_request, response) => {
      response.writeHead(307, { Location: `${other.url}/v1/me` }).end()
    })
    const upstream = upstreamOf({ UPSTREAM_API_ROOT: url, UPSTREAM_API_KEY: 'k1234' })
    await refusal('upstream_status', get(session(upstream), '/me'))
    expect(other.requests.length).toBe(0)
  })

  test('within the host gets the credential; one that would turn a POST into a GET is refused', async () => {
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

describe('a credential file', () => {
  /** A service that takes one key at a time, and a mirror whose key is in a file. */
  const rotating = async () => {
    const state = { key: 'first-key', onRefused: (): void => undefined }
    const { url, requests } = await createOrigin((request, response) => {
      const basic = `Basic ${Buffer.from(`${state.key}:`).toString('base64')}`
      const isRight = [basic, `Bearer ${state.key}`].includes(request.headers.authorization ?? '')
      if (!isRight) state.onRefused()
      response.writeHead(isRight ? 200 : 401).end('{}')
    })
    const file = join(scratch(), 'key')
    writeFileSync(file, 'first-key\n')
    const warnings: string[] = []
    const named = { UPSTREAM_API_ROOT: url, UPSTREAM_API_KEY_FILE: file }
    const upstream = upstreamOf(named, { warn: (text) => warnings.push(text) })
    return { state, requests, file, warnings, upstream }
  }

  test('is read again after a 401, and the request sent once more, only if it changed', async () => {
    const { state, requests, file, upstream } = await rotating()
    const made = session(upstream)
    await get(made, '/me')
    state.key = 'second-key'
    state.onRefused = () => writeFileSync(file, 'second-key\n') // after the request was sent
    expect((await get(made, '/me')).status).toBe(200)
    expect(requests).toHaveLength(3)
    state.key = 'third-key'
    await refusal('upstream_auth', get(session(upstream), '/me'))
    expect(requests).toHaveLength(4)
  })

  test('that is briefly missing, empty or malformed changes nothing and is logged once', async () => {
    const { requests, file, warnings, upstream } = await rotating()
    const made = session(upstream)
    await get(made, '/me')
    for (const spoil of [
      () => rmSync(file),
      () => writeFileSync(file, '\n'),
      () => writeFileSync(file, 'two words\n'),
    ]) {
      spoil()
      expect((await get(made, '/me')).status).toBe(200)
      expect((await get(made, '/me')).status).toBe(200)
    }
    expect(warnings).toEqual([
      expect.stringMatching(
        /^upstream\.apiKey: the file .+ cannot be read \(there is no such file: check the path\); the value/,
      ),
      expect.stringContaining('is empty'),
      expect.stringContaining('contains a value that contains spaces'),
    ])
    expect(warnings.join()).not.toContain('two words')
    expect(requests).toHaveLength(7)
  })

  test('that is replaced is read again without a 401', async () => {
    const { state, requests, file, upstream } = await rotating()
    const made = session(upstream)
    await get(made, '/me')
    state.key = 'a-much-longer-key'
    writeFileSync(`${file}.new`, 'a-much-longer-key')
    renameSync(`${file}.new`, file)
    expect((await get(made, '/me')).status).toBe(200)
    expect(requests).toHaveLength(2)
  })

  test('of a client secret is read again when the token endpoint refuses the old one', async () => {
    const service = await sandbox()
    const file = join(scratch(), 'secret')
    writeFileSync(file, 'an-older-secret')
    const upstream = upstreamOf({
      IDENTITY_API_URL: service.identityUrl,
      OAUTH_CLIENT_ID: SANDBOX_CLIENT.id,
      OAUTH_CLIENT_SECRET_FILE: file,
      OAUTH_AUTH_URL: service.authUrl,
    })
    const users = () => get(session(upstream, 'identity'), '/users')
    await refusal('upstream_auth', users())
    expect(service.requests.count('/oauth/token')).toBe(1)
    // The file changes while the token is asked for: the old secret may have been read already.
    service.faults.set('/oauth/token', { kind: 'status', status: 503 }, { times: 1 })
    const asked = users()
    writeFileSync(file, SANDBOX_CLIENT.secret)
    expect((await asked).status).toBe(200)
  })
})

test('no object with a credential shows it when it is dumped', () => {
  const upstream = upstreamOf({
    UPSTREAM_API_ROOT: 'http://127.0.0.1:9',
    UPSTREAM_API_KEY: 'hunter2',
  })
  const made = session(upstream)
  const secret = { current: () => 'hunter2', reload: () => false }
  for (const thing of [upstream, made, basicKey('n', secret), bearer('n', secret)]) {
    const shown = inspect(thing, { depth: 20, showHidden: true })
    expect(shown).not.toContain('hunter2')
    expect(JSON.stringify(thing)).not.toContain('hunter2')
  }
})
