import { describe, expect } from 'vitest'
import { SANDBOX_TOKEN } from './credentials.ts'
import { sandboxes } from '../fixtures.ts'
import { type Asked, asAdmin, ask, bearer } from './asking.ts'
import { longTest, test } from '../../support/tables.ts'

const open = sandboxes()

const limitsOf = ({ status, headers }: Asked) => [
  status,
  headers.get('x-ratelimit-limit'),
  headers.get('x-ratelimit-remaining'),
  headers.get('retry-after'),
]

describe('a rate limit of the remediation surface', () => {
  test('is stated in each answer, refuses requests beyond it, and starts again by the clock', async () => {
    let now = Date.UTC(2026, 5, 1)
    const sandbox = await open({
      now: () => now,
      service: { rateLimit: { requests: 3, windowSeconds: 60 } },
    })
    const me = () => asAdmin(sandbox, '/v1/me')
    expect(limitsOf(await me())).toEqual([200, '3', '2', null])
    expect(limitsOf(await ask(`${sandbox.url}/v3/settings/webhooks`))).toEqual([401, '3', '1', null])
    now += 20_500
    expect(limitsOf(await asAdmin(sandbox, '/v1/nothing'))).toEqual([404, '3', '0', null])
    const refused = await me()
    expect(limitsOf(refused)).toEqual([429, '3', '0', '40'])
    expect(Object.keys(refused.value)).toEqual(['message'])
    now += 39_500
    expect(limitsOf(await me())).toEqual([200, '3', '2', null])
  })

  test('does not apply to the feeds, the catalog, the artifacts and the identity surface', async () => {
    const sandbox = await open({ service: { rateLimit: { requests: 1, windowSeconds: 60 } } })
    await asAdmin(sandbox, '/v1/me')
    expect((await asAdmin(sandbox, '/v1/me')).status).toBe(429)
    expect((await ask(`${sandbox.url}/external/osv/all.json`)).status).toBe(200)
    expect((await ask(`${sandbox.catalogUrl}/`)).status).toBe(404)
    const headers = bearer(SANDBOX_TOKEN)
    expect((await ask(`${sandbox.identityUrl}/users`, { headers })).status).toBe(200)
  })

  test('is off by default', async () => {
    expect(limitsOf(await asAdmin(await open(), '/v1/me'))).toEqual([200, null, null, null])
  })
})

describe('a tier of the identity surface', () => {
  longTest('allows its requests per minute, and tokens beyond them', async () => {
    let now = Date.UTC(2026, 5, 1)
    const sandbox = await open({ now: () => now, service: { tier: 'free' } })
    const users = () => ask(`${sandbox.identityUrl}/users`, { headers: bearer(SANDBOX_TOKEN) })
    for (let i = 0; i < 99; i++) await users()
    expect(limitsOf(await users())).toEqual([200, '100', '0', null])
    const refused = await users()
    expect(limitsOf(refused)).toEqual([429, '100', '0', '60'])
    expect(refused.value).toMatchObject({ error: 'too_many_requests', status_code: 429 })
    const url = `${sandbox.authUrl}/oauth/token`
    expect((await ask(url, { method: 'POST', body: {} })).status).toBe(400)
    now += 60_000
    expect(limitsOf(await users())).toEqual([200, '100', '99', null])
  })

  test('allows 1,000 requests for standard and 10,000 for enterprise', async () => {
    for (const [tier, limit] of [
      ['standard', '1000'],
      ['enterprise', '10000'],
    ] as const) {
      const { identityUrl } = await open({ service: { tier } })
      const answer = await ask(`${identityUrl}/users`, { headers: bearer(SANDBOX_TOKEN) })
      expect(answer.headers.get('x-ratelimit-limit')).toBe(limit)
    }
  })
})
