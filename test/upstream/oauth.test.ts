import { describe, expect, test } from 'vitest'
import { SANDBOX_CLIENT } from '../sandbox/service/credentials.ts'
import { type Answer, createOrigin } from '../support/origin.ts'
import { refusal, sandbox } from './http/sessions.ts'
import { get, session, upstreamOf } from './fixtures.ts'

const named = (service: { url: string; identityUrl: string; authUrl: string }) => ({
  UPSTREAM_API_ROOT: service.url,
  OAUTH_CLIENT_ID: SANDBOX_CLIENT.id,
  OAUTH_CLIENT_SECRET: SANDBOX_CLIENT.secret,
  OAUTH_AUTH_URL: service.authUrl,
  OAUTH_AUDIENCE: service.url,
})

describe('a token of client credentials', () => {
  test('is requested once for all concurrent requests, and kept', async () => {
    const service = await sandbox()
    const made = session(upstreamOf(named(service)))
    await Promise.all(Array.from({ length: 8 }, () => get(made, '/me')))
    await get(made, '/me')
    expect(service.requests.count('/oauth/token')).toBe(1)
    expect(service.requests.count('/v1/me')).toBe(9)
  })

  test('is renewed shortly before it expires', async () => {
    let now = Date.UTC(2026, 5, 1)
    const service = await sandbox({ now: () => now, service: { tokenSeconds: 600 } })
    const upstream = upstreamOf(named(service), { now: () => now })
    const made = session(upstream)
    await get(made, '/me')
    now += 539_000
    await get(made, '/me')
    expect(service.requests.count('/oauth/token')).toBe(1)
    now += 2000
    await get(made, '/me')
    expect(service.requests.count('/oauth/token')).toBe(2)
  })

  test('is renewed once when several requests are refused together', async () => {
    const service = await sandbox()
    const made = session(upstreamOf(named(service)))
    await get(made, '/me')
    const header = service.requests.entries.at(-1)?.headers['authorization'] ?? ''
    service.service.revoke(header.replace('Bearer ', ''))
    await Promise.all(Array.from({ length: 6 }, () => get(made, '/orgs/')))
    expect(service.requests.count('/oauth/token')).toBe(2)
  })

  test('for the identity surface has that surface as its audience', async () => {
    const service = await sandbox()
    const upstream = upstreamOf({
      IDENTITY_API_URL: service.identityUrl,
      OAUTH_CLIENT_ID: SANDBOX_CLIENT.id,
      OAUTH_CLIENT_SECRET: SANDBOX_CLIENT.secret,
      OAUTH_AUTH_URL: service.authUrl,
    })
    expect(await get(session(upstream, 'identity'), '/users')).toMatchObject({ status: 200 })
  })
})

describe('client credentials', () => {
  test('that are wrong are reported without the secret, after one request', async () => {
    const service = await sandbox()
    const wrong = { ...named(service), OAUTH_CLIENT_SECRET: 'hunter2-secret' }
    const made = session(upstreamOf(wrong))
    const results = await Promise.allSettled(Array.from({ length: 5 }, () => get(made, '/me')))
    for (const result of results) expect(result.status).toBe('rejected')
    const { message } = await refusal('upstream_auth', get(made, '/me'))
    expect(message).toContain('oauth.clientId with oauth.clientSecret got no token at oauth.authUrl')
    expect(message).not.toContain('hunter2')
    expect(service.requests.count('/oauth/token')).toBe(1)
    expect(service.requests.count('/v1/me')).toBe(0)
  })

  test('whose fresh token is refused too stop the run', async () => {
    const { url, requests } = await createOrigin((request, response) => {
      if (request.url !== '/oauth/token') return response.writeHead(401).end()
      return response.end('{"access_token":"hunter2-token","token_type":"bearer","expires_in":"60"}')
    })
    const made = session(upstreamOf(named({ url, authUrl: url, identityUrl: url })))
    const { message } = await refusal('upstream_auth', get(made, '/me'))
    expect(message).not.toContain('hunter2')
    await refusal('upstream_auth', get(made, '/me'))
    expect(requests.map(({ url: path }) => path)).toEqual(['/oauth/token', '/v1/me', '/oauth/token', '/v1/me'])
  })

  test.each(['null', undefined, '0', '-1', '"soon"', '""', 'true', '[]', '{}', '[60]'])(
    'with the expires_in %s are used until they are refused, and then renewed once',
    async (expiresIn) => {
      let tokens = 0
      const { url, requests } = await createOrigin((request, response) => {
        const isRefused = request.headers.authorization === 'Bearer t1' && requests.length > 4
        if (request.url !== '/oauth/token') return response.writeHead(isRefused ? 401 : 200).end('{}')
        tokens++
        const rest = expiresIn === undefined ? '' : `,"expires_in":${expiresIn}`
        return response.end(`{"access_token":"t${tokens}","token_type":"Bearer"${rest}}`)
      })
      let now = Date.UTC(2026, 5, 1)
      const settings = named({ url, authUrl: url, identityUrl: url })
      const made = session(upstreamOf(settings, { now: () => now }))
      for (let i = 0; i < 5; i++) {
        await get(made, '/me')
        now += 3_600_000
      }
      expect(tokens).toBe(2)
    },
  )

  test.each([
    ['<html>', 'an HTML page came instead of JSON'],
    ['oops', 'is not JSON; check that oauth.authUrl'],
    ['[]', 'has no usable access_token'],
    ['{}', 'has no usable access_token'],
    ['{"access_token":5}', 'has no usable access_token'],
    ['{"access_token":"a b"}', 'has no usable access_token'],
    ['{"access_token":"hunter2","token_type":"mac"}', 'another type of token'],
    ['"hunter2"', 'is not a JSON object'],
  ])('answered by %s are reported as an error', async (body, fault) => {
    const answer: Answer = (_request, response) => response.end(body)
    const { url } = await createOrigin(answer)
    const made = session(upstreamOf(named({ url, authUrl: url, identityUrl: url })))
    const { message } = await refusal('upstream_shape', get(made, '/me'))
    expect(message).toContain(fault)
    expect(message).not.toContain('hunter2')
  })

  test('never follow a redirect to another host', async () => {
    const other = await createOrigin((_request, response) => response.end('{}'))
    const { url } = await createOrigin((_request, response) => {
      response.writeHead(307, { Location: `${other.url}/oauth/token` }).end()
    })
    const made = session(upstreamOf(named({ url, authUrl: url, identityUrl: url })))
    const { message } = await refusal('upstream_status', get(made, '/me'))
    expect(message).toContain('oauth.authUrl')
    expect(other.requests.length).toBe(0)
  })

  test('are tried again after a short outage of the token endpoint', async () => {
    const service = await sandbox()
    service.faults.set('/oauth/token', { kind: 'status', status: 503 }, { times: 2 })
    expect(await get(session(upstreamOf(named(service))), '/me')).toMatchObject({ status: 200 })
  })

  test('do not delay the end of a stopped run', async () => {
    const { url } = await createOrigin(() => undefined)
    const upstream = upstreamOf(named({ url, authUrl: url, identityUrl: url }))
    const stop = new AbortController()
    const work = get(upstream.client('remediation').open(stop.signal), '/me')
    stop.abort()
    await expect(work).rejects.toMatchObject({ name: 'AbortError' })
  })
})
