import { beforeAll, describe, expect, test } from 'vitest'
import type { Sandbox } from '../server.ts'
import { SANDBOX_CLIENT, SANDBOX_KEYS, SANDBOX_TOKEN } from './credentials.ts'
import { sandboxes } from '../fixtures.ts'
import { type Asked, type Json, ask, basic, bearer } from './asking.ts'

const open = sandboxes()
let now = Date.UTC(2026, 5, 1)
let sandbox: Sandbox
beforeAll(async () => {
  sandbox = await open({ now: () => now, service: { tokenSeconds: 120, users: 7 } })
})

const users = (headers: Record<string, string>) => ask(`${sandbox.identityUrl}/users`, { headers })

const request = (changes: Json = {}): Json => ({
  client_id: SANDBOX_CLIENT.id,
  client_secret: SANDBOX_CLIENT.secret,
  audience: sandbox.identityUrl,
  grant_type: 'client_credentials',
  ...changes,
})

const token = (body: unknown): Promise<Asked> => ask(`${sandbox.authUrl}/oauth/token`, { method: 'POST', body })

/** What an error says, once its form is checked. */
function errorOf({ status, value }: Asked): unknown[] {
  expect(Object.keys(value)).toEqual(['error', 'error_description', 'status_code'])
  expect(value['status_code']).toBe(status)
  return [status, value['error']]
}

describe('the users', () => {
  test('are listed for a key or a token sent as bearer, page by page', async () => {
    for (const secret of [SANDBOX_KEYS.admin, SANDBOX_KEYS.readonly, SANDBOX_TOKEN]) {
      const { status, value } = await users(bearer(secret))
      expect([status, (value['data'] as Json[]).length]).toEqual([200, 7])
    }
    const url = `${sandbox.identityUrl}/users?limit=5`
    const headers = bearer(SANDBOX_TOKEN)
    const { after } = (await ask(url, { headers })).value['cursor'] as { after: string }
    expect((await ask(`${url}&after=${after}`, { headers })).value['data']).toHaveLength(2)
  })

  test('are listed under the beta and the legacy version too', async () => {
    for (const version of ['v1', 'v2-beta', 'v0']) {
      const { status } = await ask(`${sandbox.authUrl}/${version}/users`, {
        headers: bearer(SANDBOX_TOKEN),
      })
      expect(status).toBe(200)
    }
  })

  test('are refused without a bearer, for a wrong one, and for a key of the other surface', async () => {
    expect(errorOf(await users({}))).toEqual([401, 'invalid_token'])
    expect(errorOf(await users(basic(SANDBOX_KEYS.admin)))).toEqual([401, 'invalid_token'])
    expect(errorOf(await users(bearer('nothing')))).toEqual([401, 'invalid_token'])
    const other = await users(bearer(SANDBOX_KEYS.remediationOnly))
    expect(errorOf(other)).toEqual([403, 'insufficient_scope'])
  })

  test('have the surface’s error form for every other path', async () => {
    const headers = bearer(SANDBOX_TOKEN)
    const error = async (path: string, method = 'GET') =>
      errorOf(await ask(sandbox.authUrl + path, { headers, method }))
    expect(await error('/v1/users/')).toEqual([404, 'not_found'])
    expect(await error('/v1/roles')).toEqual([404, 'not_found'])
    expect(await error('/v1/users', 'DELETE')).toEqual([405, 'method_not_allowed'])
    expect(await error('/v1/users?limit=5000')).toEqual([400, 'invalid_request'])
  })
})

describe('the token endpoint', () => {
  test('issues a token for the identity surface until it expires', async () => {
    const { status, value, headers } = await token(request())
    expect([status, headers.get('cache-control')]).toEqual([200, 'no-store'])
    expect(value).toMatchObject({ token_type: 'Bearer', expires_in: 120 })
    const secret = String(value['access_token'])
    expect((await users(bearer(secret))).status).toBe(200)
    now += 119_000
    expect((await users(bearer(secret))).status).toBe(200)
    now += 1000
    expect((await users(bearer(secret))).status).toBe(401)
  })

  test('issues a new token each time, valid only for its audience', async () => {
    const first = String((await token(request())).value['access_token'])
    const second = String((await token(request({ audience: sandbox.url }))).value['access_token'])
    expect(first).not.toBe(second)
    const me = async (secret: string) => (await ask(`${sandbox.url}/v1/me`, { headers: bearer(secret) })).status
    expect([await me(first), await me(second)]).toEqual([403, 200])
    expect(errorOf(await users(bearer(second)))).toEqual([403, 'insufficient_scope'])
  })

  test('names the missing or wrong parameter', async () => {
    for (const name of ['client_id', 'client_secret', 'audience', 'grant_type']) {
      const answer = await token({ ...request(), [name]: undefined })
      expect(errorOf(answer)).toEqual([400, 'invalid_request'])
      expect(answer.value['error_description']).toContain(name)
    }
    expect(errorOf(await token([]))).toEqual([400, 'invalid_request'])
    const grant = await token(request({ grant_type: 'password' }))
    expect(errorOf(grant)).toEqual([400, 'unsupported_grant_type'])
    expect(errorOf(await token(request({ client_secret: 'x' })))).toEqual([401, 'invalid_client'])
    const audience = await token(request({ audience: 'https://elsewhere.example.com' }))
    expect(errorOf(audience)).toEqual([403, 'access_denied'])
  })

  test('accepts only JSON and POST', async () => {
    const url = `${sandbox.authUrl}/oauth/token`
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    const posted = await ask(url, { method: 'POST', headers: form, body: request() })
    expect(errorOf(posted)).toEqual([400, 'invalid_request'])
    expect(errorOf(await ask(url))).toEqual([405, 'method_not_allowed'])
  })

  test('issues a token without access to a client without the identity scope', async () => {
    const own = await open({ service: { clients: [{ id: 'a', secret: 'b', identity: false }] } })
    const body = {
      client_id: 'a',
      client_secret: 'b',
      audience: own.identityUrl,
      grant_type: 'client_credentials',
    }
    const { value } = await ask(`${own.authUrl}/oauth/token`, { method: 'POST', body })
    const headers = bearer(String(value['access_token']))
    expect((await ask(`${own.identityUrl}/users`, { headers })).status).toBe(403)
  })
})
