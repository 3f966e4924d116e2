import { describe, expect, test } from 'vitest'
import { SANDBOX_KEYS } from '../../sandbox/service/credentials.ts'
import { type Answer, createOrigin } from '../../support/origin.ts'
import { refusal, sandbox } from './sessions.ts'
import { get, session, upstreamOf } from '../fixtures.ts'

const against = (url: string) => session(upstreamOf({ UPSTREAM_API_ROOT: url, UPSTREAM_API_KEY: 'k1234' }))

const CHANGE = { method: 'POST', path: '/x', json: { a: 'é' }, maxBytes: 1000 } as const
const REMOVAL = { method: 'DELETE', path: '/x', maxBytes: 1000 } as const

/** Answers with these in turn, and with the last one from then on; 0 cuts the connection. */
function inTurn(...statuses: readonly number[]): Answer {
  let at = 0
  return (request, response) => {
    const status = statuses[Math.min(at++, statuses.length - 1)] ?? 200
    if (status === 0) request.socket.destroy()
    else response.writeHead(status, status === 429 ? { 'Retry-After': '3' } : {}).end('{}')
  }
}

describe('a write request', () => {
  test('is sent as JSON', async () => {
    let body = ''
    const { url, requests } = await createOrigin((request, response) => {
      request.on('data', (chunk: Buffer) => (body += chunk.toString()))
      request.on('end', () => response.writeHead(201).end('{"id":1}'))
    })
    const answer = await against(url).request(CHANGE)
    expect(answer).toMatchObject({ status: 201, body: Buffer.from('{"id":1}') })
    expect(JSON.parse(body)).toEqual({ a: 'é' })
    expect(requests[0]?.headers['content-type']).toBe('application/json')
  })

  test.each([500, 502, 503])('is never repeated after %i', async (status) => {
    const { url, requests } = await createOrigin(inTurn(status, 200))
    await refusal('upstream_status', against(url).request(CHANGE))
    expect(requests.length).toBe(1)
  })

  test('whose response is lost is not repeated and is reported as uncertain', async () => {
    const { url, requests } = await createOrigin(inTurn(0, 200))
    const { message } = await refusal('upstream_unreachable', against(url).request(CHANGE))
    expect(message).toContain('it is not known whether the change was made')
    expect(requests.length).toBe(1)
  })

  test('is repeated after 429 on request', async () => {
    const { url, requests } = await createOrigin(inTurn(429, 200))
    const waits: number[] = []
    let now = 0
    const upstream = upstreamOf(
      { UPSTREAM_API_ROOT: url, UPSTREAM_API_KEY: 'k1234' },
      {
        now: () => now,
        delay: (ms) => {
          waits.push(ms)
          now += ms
          return Promise.resolve()
        },
      },
    )
    expect(await session(upstream).request(CHANGE)).toMatchObject({ status: 200 })
    expect(requests.length).toBe(2)
    expect(waits[0]).toBeGreaterThanOrEqual(3000)
  })

  test('is tried again while the service is unreachable', async () => {
    const service = await sandbox()
    await service.close()
    const made = against(service.url)
    const { message } = await refusal('upstream_unreachable', made.request(CHANGE))
    expect(made.cost.retries).toBe(2)
    expect(message).not.toContain('not known')
  })

  test('that is refused is reported with the reason', async () => {
    const { url } = await createOrigin((_request, response) => {
      response.writeHead(422).end(JSON.stringify({ error: { message: 'no\u001b[31m such\nevent' } }))
    })
    const { message } = await refusal('upstream_status', against(url).request(CHANGE))
    expect(message).toBe('/v1/x: upstream answered 422 (no [31m such event)')
  })

  test.each([
    ['a list of errors', '{"errors":[{"status":"422","detail":"no such event"}]}', ' (no such event)'],
    ['a plain text', ' no such\n event\n', ' (no such event)'],
    ['a page', '<html><body>no such event</body></html>', ''],
    ['JSON that is cut', '{"message":"no such', ''],
    ['nothing', '', ''],
  ])('that is refused with %s has the reason that is in it', async (_what, body, reason) => {
    const { url } = await createOrigin((_request, response) => response.writeHead(422).end(body))
    const { message } = await refusal('upstream_status', against(url).request(CHANGE))
    expect(message).toBe(`/v1/x: upstream answered 422${reason}`)
  })
})

describe('a removal', () => {
  test('is repeated, and counts as done when an earlier attempt removed the item', async () => {
    for (const first of [0, 503]) {
      const { url, requests } = await createOrigin(inTurn(first, 404))
      expect(await against(url).request(REMOVAL)).toMatchObject({ status: 404 })
      expect(requests.length).toBe(2)
    }
  })

  test('of an unknown item is an error, also after a 429', async () => {
    for (const statuses of [[404], [429, 404]]) {
      const { url } = await createOrigin(inTurn(...statuses))
      let now = 0
      const clock = { now: () => now, delay: (ms: number) => Promise.resolve(void (now += ms)) }
      const upstream = upstreamOf({ UPSTREAM_API_ROOT: url, UPSTREAM_API_KEY: 'k1234' }, clock)
      await refusal('upstream_not_found', session(upstream).request(REMOVAL))
    }
  })
})

describe('a rate limit', () => {
  test('is observed by all requests of a host together, without one 429', async () => {
    let now = Date.UTC(2026, 5, 1)
    const service = await sandbox({
      now: () => now,
      service: { rateLimit: { requests: 20, windowSeconds: 60 } },
    })
    const clock = { now: () => now, delay: (ms: number) => Promise.resolve(void (now += ms)) }
    const upstream = upstreamOf({ UPSTREAM_API_ROOT: service.url, UPSTREAM_API_KEY: SANDBOX_KEYS.admin }, clock)
    const one = session(upstream)
    const two = session(upstream, 'settings')
    for (let i = 0; i < 50; i++) {
      await get(one, '/me')
      await get(two, '/settings/webhooks')
    }
    expect(service.requests.entries.filter(({ status }) => status === 429)).toEqual([])
    expect(service.requests.count()).toBe(100)
  })

  test.each(['0', '1.5', '-3', '"2"', 'soon', 'Thu, 01 Jan 1970 00:00:00 GMT'])(
    'with the Retry-After %s is asked again no sooner than after the own, growing pauses',
    async (after) => {
      let now = Date.UTC(2026, 5, 1)
      const sent: number[] = []
      const { url } = await createOrigin((_request, response) => {
        sent.push(now)
        response.writeHead(sent.length < 5 ? 429 : 200, { 'Retry-After': after }).end('{}')
      })
      const clock = { now: () => now, delay: (ms: number) => Promise.resolve(void (now += ms)) }
      const named = {
        UPSTREAM_API_ROOT: url,
        UPSTREAM_API_KEY: 'k1234',
        UPSTREAM_RETRIES: '4',
        UPSTREAM_RETRY_MAX_MS: '60000',
      }
      await get(session(upstreamOf(named, clock)), '/me')
      const waits = sent.slice(1).map((at, i) => at - (sent[i] ?? 0))
      expect(waits.map((ms, at) => ms >= 250 * 2 ** at)).toEqual([true, true, true, true])
    },
  )

  test('with a Retry-After beyond the ceiling ends the run, for all of its requests', async () => {
    const { url, requests } = await createOrigin((_request, response) => {
      response.writeHead(429, { 'Retry-After': '9999' }).end()
    })
    const made = against(url)
    for (let i = 0; i < 3; i++) await refusal('upstream_status', get(made, '/me'))
    expect(requests.length).toBe(1)
  })

  test('of the private surfaces does not slow the public feeds', async () => {
    const { url } = await createOrigin((request, response) => {
      const left = { 'X-RateLimit-Limit': '100', 'X-RateLimit-Remaining': '0' }
      response.writeHead(200, request.url?.startsWith('/v1') === true ? left : {}).end('[]')
    })
    const clock = { delay: () => Promise.reject(new Error('waited')) }
    const upstream = upstreamOf({ UPSTREAM_API_ROOT: url, UPSTREAM_API_KEY: 'k1234' }, clock)
    await get(session(upstream), '/me')
    await get(session(upstream, 'public'), '/external/x')
    await expect(get(session(upstream), '/me')).rejects.toThrow('waited')
  })
})
