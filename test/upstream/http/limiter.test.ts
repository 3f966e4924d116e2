import { describe, expect, test } from 'vitest'
import { type HostLimiter, createLimiter } from '../../../src/upstream/http/limiter.ts'
import type { Priority } from '../../../src/upstream/http/quota.ts'
import { refusal } from './sessions.ts'

const START = Date.UTC(2026, 4, 1)
const forever = new AbortController().signal

interface Bench {
  limiter: HostLimiter
  /** Sends one request that is answered at once; gives the milliseconds that it had to wait. */
  send(headers?: Record<string, string>, status?: number, priority?: Priority): Promise<number>
  /** Milliseconds since the start. */
  time(): number
  pass(ms: number): void
  /** Sets the time of day; the time that elapses stays. */
  set(by: number): void
}

/** A limiter in a time of its own: a delay passes it, and nothing else does. */
function bench(perMinute: number | null = null): Bench {
  let now = START
  let ahead = 0
  const limiter = createLimiter({
    host: 'api.example.com',
    perMinute,
    maxWaitMs: 60_000,
    maxRetryAfterMs: 60_000,
    now: () => now + ahead,
    elapsed: () => now,
    delay: (ms) => {
      now += ms
      return Promise.resolve()
    },
  })
  return {
    limiter,
    async send(headers = {}, status = 200, priority = 'crawl') {
      const before = now
      const turn = await limiter.acquire(forever, priority)
      turn.answered({ status, headers })
      return now - before
    },
    time: () => now - START,
    pass: (ms) => void (now += ms),
    set: (by) => void (ahead += by),
  }
}

const told = (limit: number, left: number, more: Record<string, string> = {}) => ({
  'x-ratelimit-limit': String(limit),
  'x-ratelimit-remaining': String(left),
  ...more,
})

/** A service with fixed windows, as the contract has it; gives when each request was sent, and counts the refusals. */
async function crawl(made: Bench, limit: number, windowMs: number, requests: number) {
  const sent: number[] = []
  const counts = new Map<number, number>()
  let refused = 0
  for (let i = 0; i < requests; i++) {
    const turn = await made.limiter.acquire(forever, 'crawl')
    const window = Math.floor(made.time() / windowMs)
    const used = (counts.get(window) ?? 0) + 1
    counts.set(window, used)
    sent.push(made.time())
    const wait = Math.ceil(((window + 1) * windowMs - made.time()) / 1000)
    if (used > limit) {
      refused++
      turn.answered({ status: 429, headers: told(limit, 0, { 'retry-after': String(wait) }) })
    } else turn.answered({ status: 200, headers: told(limit, limit - used) })
  }
  return { sent, refused, most: Math.max(...counts.values()) }
}

describe('without a known rate limit', () => {
  test('waits no longer when the clock is set back meanwhile, by Retry-After, by a window or by its tier', async () => {
    const blocked = bench()
    await blocked.send({ 'retry-after': '30' }, 429)
    blocked.set(-2 * 3_600_000)
    expect(await blocked.send()).toBe(30_000)
    const used = bench()
    const resetAt = { 'x-ratelimit-reset': String((START + 40_000) / 1000) }
    await used.send(told(10, 0, resetAt))
    used.set(-2 * 3_600_000)
    expect(await used.send()).toBe(40_000)
    const paced = bench(60)
    for (let n = 0; n < 10; n++) await paced.send()
    paced.set(-2 * 3_600_000)
    expect(await paced.send()).toBeLessThan(2000)
  })

  test('no request is delayed', async () => {
    const made = bench()
    for (let i = 0; i < 1000; i++) expect(await made.send()).toBe(0)
  })

  test('a 429 without Retry-After does not delay other requests', async () => {
    const made = bench()
    await made.send({}, 429)
    expect(await made.send()).toBe(0)
  })
})

describe('a rate limit stated by answers', () => {
  test('allows half of a window at once, spreads the rest, and reserves a tenth', async () => {
    const made = bench()
    const { sent, refused, most } = await crawl(made, 100, 60_000, 95)
    expect(sent.filter((at) => at === 0)).toHaveLength(50)
    const gaps = sent.slice(51, 90).map((at, i) => at - (sent[50 + i] ?? 0))
    expect(Math.max(...gaps) - Math.min(...gaps)).toBeLessThan(200)
    expect(most).toBeGreaterThan(87)
    expect(most).toBeLessThanOrEqual(90)
    expect(refused).toBe(0)
    expect(sent.at(-1)).toBeGreaterThanOrEqual(60_000)
  })

  test('is never exceeded by a crawl of any length', async () => {
    const made = bench()
    const { refused, sent } = await crawl(made, 30, 60_000, 300)
    expect(refused).toBe(0)
    expect(sent.at(-1)).toBeLessThan(12 * 60_000)
  })

  test('leaves the reserve to interactive requests, which are not delayed while it lasts', async () => {
    const made = bench()
    await made.send(told(100, 5))
    expect(await made.send(told(100, 4), 200, 'ops')).toBe(0)
    expect(await made.send(told(100, 3))).toBe(60_000)
  })

  test('shared with other clients is what the answers state, not the number of own requests', async () => {
    const made = bench()
    await made.send(told(100, 99))
    await made.send(told(100, 12))
    expect(await made.send(told(100, 9))).toBeGreaterThan(20_000)
    expect(await made.send(told(100, 99))).toBeGreaterThan(20_000)
  })

  test('restarts at X-RateLimit-Reset in each of its forms', async () => {
    const seconds = String(START / 1000 + 7)
    for (const reset of ['7', seconds, `${seconds}000`]) {
      const made = bench()
      await made.send(told(100, 0, { 'x-ratelimit-reset': reset }))
      expect(await made.send(told(100, 99)), reset).toBe(7000)
    }
  })

  test('with a longer window than assumed is corrected by its end', async () => {
    const made = bench()
    const { refused } = await crawl(made, 20, 180_000, 200)
    expect(refused).toBeLessThanOrEqual(20)
  })

  test('with invalid values is ignored', async () => {
    const made = bench()
    for (const headers of [
      { 'x-ratelimit-limit': 'many', 'x-ratelimit-remaining': '0' },
      { 'x-ratelimit-limit': '0', 'x-ratelimit-remaining': '0' },
      { 'x-ratelimit-remaining': '0' },
      { 'x-ratelimit-limit': '100', 'x-ratelimit-remaining': '99', 'x-ratelimit-reset': '-5' },
    ])
      expect(await made.send(headers)).toBe(0)
    expect(await made.send()).toBe(0)
  })
})

describe('Retry-After', () => {
  test('of one request delays all others of the host, interactive ones too', async () => {
    const made = bench()
    await made.send({ 'retry-after': '20' }, 429)
    expect(await made.send({}, 200, 'ops')).toBe(20_000)
  })

  test('as a date is applied too, and only with a 429', async () => {
    const made = bench()
    await made.send({ 'retry-after': '20' }, 503)
    expect(await made.send({ 'retry-after': new Date(START + 9000).toUTCString() }, 429)).toBe(0)
    expect(await made.send()).toBe(9000)
  })

  test('beyond the ceiling affects only the run that got it', async () => {
    const made = bench()
    await made.send({ 'retry-after': '3600' }, 429)
    expect(await made.send()).toBe(0)
  })
})

describe('the request rate of a tier', () => {
  test.each([100, 1000, 10_000])('of %i per minute is not exceeded without rate limit headers', async (perMinute) => {
    const made = bench(perMinute)
    const sent: number[] = []
    for (let i = 0; i < 3 * perMinute; i++) {
      await made.send()
      sent.push(made.time())
    }
    const most = perMinute * 0.9 + 1
    const spans = sent.slice(most).map((at, i) => at - (sent[i] ?? 0))
    expect(Math.min(...spans)).toBeGreaterThanOrEqual(60_000)
    expect(made.time()).toBeLessThan(4 * 60_000)
  })

  test('does not delay a few interactive requests', async () => {
    const made = bench(100)
    for (let i = 0; i < 60; i++) await made.send()
    expect(await made.send({}, 200, 'ops')).toBe(0)
  })

  test('bounds interactive requests too', async () => {
    const made = bench(100)
    const sent: number[] = []
    for (let i = 0; i < 300; i++) {
      await made.send({}, 200, 'ops')
      sent.push(made.time())
    }
    const spans = sent.slice(100).map((at, i) => at - (sent[i] ?? 0))
    expect(Math.min(...spans)).toBeGreaterThanOrEqual(60_000)
  })
})

describe('a delay by a rate limit', () => {
  test('longer than the deadline fails at once without a request', async () => {
    const made = bench()
    await made.send(told(100, 0, { 'x-ratelimit-reset': '3000' }))
    const { message } = await refusal('upstream_status', made.send())
    expect(message).toBe('api.example.com: its rate limit is used up for another 3000 s, and nothing was sent')
    expect(made.time()).toBe(0)
  })

  test('ends with the run', async () => {
    const made = bench()
    const stop = new AbortController()
    stop.abort()
    await expect(made.limiter.acquire(stop.signal, 'crawl')).rejects.toThrow('aborted')
  })

  test('counts requests in flight as used', async () => {
    const made = bench()
    await made.send(told(10, 9))
    const turns = await Promise.all(Array.from({ length: 5 }, () => made.limiter.acquire(forever, 'ops')))
    turns[0]?.answered({ status: 200, headers: told(10, 8) })
    for (const turn of turns.slice(1)) turn.failed()
    expect(await made.send()).toBeGreaterThan(0)
  })
})
