import { gzipSync } from 'node:zlib'
import { describe, expect } from 'vitest'
import { fetchFeed } from '../../src/upstream/feeds.ts'
import { OSV_INDEX, osvRecordPath } from '../../src/base/domain/feed-paths.ts'
import { fetchRecord } from '../../src/upstream/osv.ts'
import { createUpstream } from '../../src/upstream/surfaces.ts'
import { createOrigin } from '../support/origin.ts'
import { MAX, connect, refusal, sandbox } from './http/sessions.ts'
import { bothTest, LONG, longTest, telling, test } from '../support/tables.ts'
import type { Fault } from '../sandbox/faults/fault.ts'

const PATCH_FEED = '/external/patch_feed'

describe('a request for a document', () => {
  test('returns its bytes, gzipped or not, with its validators and its date', async () => {
    const service = await sandbox({ now: () => Date.UTC(2026, 4, 1) })
    const { session } = connect(service.url)
    const answer = await fetchFeed(session, OSV_INDEX, null, MAX)
    if (answer.status !== 200) throw new Error(String(answer.status))
    expect(answer.body.equals(service.feed.index())).toBe(true)
    expect(answer.meta).toMatchObject({ contentEncoding: 'gzip', date: Date.UTC(2026, 4, 1) })
    expect(answer.meta.etag).toMatch(/^".+"$/)
    const plain = await session.fetchDocument(OSV_INDEX, { maxBytes: MAX })
    expect(plain).toMatchObject({ status: 200, body: service.feed.index() })
    expect(plain.meta.contentEncoding).toBeNull()
  })

  test('has a user agent with its comment, and the accepted encodings', async () => {
    const service = await sandbox()
    const { session } = connect(service.url, { USER_AGENT: 'ops@example.com' })
    await fetchFeed(session, PATCH_FEED, null, MAX)
    await fetchRecord(session, service.feed.ids()[0] ?? '', MAX)
    const [feed, record] = service.requests.entries
    expect(feed?.headers).toMatchObject({
      'user-agent': 'patchmirror/1.2.3 (ops@example.com)',
      accept: 'application/json',
      'accept-encoding': 'gzip',
    })
    expect(record?.headers['accept-encoding']).toBe('identity')
  })

  test('is sent once for each record, whatever its id contains', async () => {
    const service = await sandbox({ records: 0 })
    const { session } = connect(service.url)
    for (const id of ['a b', 'ünï/cödé', '..', 'x%2fy', 'q?a=b#c', 'ROOT-APP-NPM-', '🐙']) {
      service.feed.put(id, JSON.stringify({ id }), '2026-05-01T00:00:00Z')
      const { body } = await fetchRecord(session, id, MAX)
      expect(body.toString()).toBe(JSON.stringify({ id }))
    }
    expect(osvRecordPath('a/b')).toBe('/external/osv/a%2Fb.json')
  })

  test('has the ETag or the date of the stored document, and a 304 confirms it', async () => {
    const service = await sandbox()
    const { session } = connect(service.url)
    const { meta } = await fetchFeed(session, OSV_INDEX, null, MAX)
    expect(await fetchFeed(session, OSV_INDEX, meta, MAX)).toMatchObject({ status: 304 })
    const { lastModified } = meta
    expect(await fetchFeed(session, OSV_INDEX, { etag: null, lastModified }, MAX)).toMatchObject({
      status: 304,
    })
    const [, byTag, byDate] = service.requests.entries
    expect(byTag?.headers['if-none-match']).toBe(meta.etag)
    expect(byTag?.headers['if-modified-since']).toBeUndefined()
    expect(byDate?.headers['if-modified-since']).toBe(lastModified)
    service.feed.change(1)
    expect(await fetchFeed(session, OSV_INDEX, meta, MAX)).toMatchObject({ status: 200 })
  })

  test.each([
    ['"a"', '"a"', 304],
    ['"a"', 'W/"a"', 304],
    ['"a-gzip"', '"a"', 304],
    ['"a"', undefined, 304],
    ['"a"', '"b"', 200],
  ])('asked about %s and confirmed as %s ends in %i', async (etag, confirmed, status) => {
    const { url, requests } = await createOrigin((request, response) => {
      const isAsked = request.headers['if-none-match'] !== undefined
      if (isAsked) response.writeHead(304, confirmed === undefined ? {} : { ETag: confirmed }).end()
      else response.end('[]')
    })
    const { session } = connect(url)
    expect(await fetchFeed(session, OSV_INDEX, { etag, lastModified: null }, MAX)).toMatchObject({ status })
    expect(requests).toHaveLength(status === 304 ? 1 : 2)
  })

  test('does not accept a 304 without a stored document', async () => {
    const { url, requests } = await createOrigin((_request, response) => {
      response.writeHead(304).end()
    })
    const { session } = connect(url)
    await refusal('upstream_status', fetchFeed(session, OSV_INDEX, null, MAX))
    await refusal('upstream_status', fetchFeed(session, OSV_INDEX, { etag: null, lastModified: null }, MAX))
    expect(requests.length).toBe(2)
  })

  test('does not accept an unrequested part', async () => {
    const { url } = await createOrigin((_request, response) => {
      response.writeHead(206, { 'Content-Range': 'bytes 0-1/10' }).end('[]')
    })
    await refusal('upstream_status', fetchFeed(connect(url).session, OSV_INDEX, null, MAX))
  })

  test('dates an answer without a Date header by the local clock', async () => {
    const { url } = await createOrigin((_request, response) => {
      response.sendDate = false
      response.end('[]')
    })
    const { session } = connect(url, {}, () => 1_000)
    expect((await fetchFeed(session, OSV_INDEX, null, MAX)).meta).toMatchObject({ date: 1_000, etag: null })
  })

  test('goes to the configured root of the service, its path included', async () => {
    const { url, requests } = await createOrigin((_request, response) => response.end('[]'))
    await fetchFeed(connect(`${url}/tenant/a/`).session, OSV_INDEX, null, MAX)
    expect(requests[0]?.url).toBe('/tenant/a/external/osv/all.json')
  })

  test('is refused while no service is configured', () => {
    const { settings } = connect('http://127.0.0.1:9')
    const config = { ...settings, upstream: { ...settings.upstream, apiRoot: null } }
    const service = createUpstream({ config, version: '1', now: Date.now })
    expect(() => service.client('public')).toThrow('upstream.apiRoot is not set')
  })
})

describe('the retry rule', () => {
  bothTest.each(LONG ? [429, 500, 502, 503, 504, 520] : [429, 503])(
    'tries again after %i and succeeds',
    async (status) => {
      const service = await sandbox()
      const fault = service.faults.set(OSV_INDEX, { kind: 'status', status }, { times: 2 })
      const { session } = connect(service.url)
      expect(await fetchFeed(session, OSV_INDEX, null, MAX)).toMatchObject({ status: 200 })
      expect(fault.hits()).toBe(2)
      expect(session.cost).toMatchObject({ requests: 3, retries: 2 })
    },
  )

  const FINAL = [
    [400, 'upstream_status'],
    [401, 'upstream_auth'],
    [404, 'upstream_not_found'],
    [204, 'upstream_status'],
    [403, 'upstream_auth'],
    [410, 'upstream_not_found'],
    [416, 'upstream_status'],
    [451, 'upstream_status'],
  ] as const
  bothTest.each(LONG ? FINAL : FINAL.slice(0, 4))('never tries again after %i', async (status, code) => {
    const service = await sandbox()
    service.faults.set(OSV_INDEX, { kind: 'status', status })
    const { session } = connect(service.url)
    const { message } = await refusal(code, fetchFeed(session, OSV_INDEX, null, MAX))
    const isMissing = code === 'upstream_not_found'
    const hint = isMissing ? `; is upstream.apiRoot (${service.url}) the root of the service?` : ''
    expect(message).toBe(`${OSV_INDEX}: upstream answered ${status}${hint}`)
    expect(session.cost).toMatchObject({ requests: 1, retries: 0 })
  })

  test.each([
    { kind: 'reset' },
    { kind: 'reset', bytes: 10 },
    { kind: 'truncate' },
    { kind: 'truncate', bytes: 0 },
    { kind: 'wrongLength', by: 100 },
  ] as const)('tries again after a fault of the network: %o', async (fault) => {
    const service = await sandbox()
    service.faults.set(OSV_INDEX, fault, { times: 1 })
    const { session } = connect(service.url)
    const answer = await session.fetchDocument(OSV_INDEX, { maxBytes: MAX })
    expect(answer).toMatchObject({ status: 200, body: service.feed.index() })
    expect(session.cost).toMatchObject({ requests: 2, retries: 1 })
  })

  test('gives up after the attempts that the settings allow, with the last reason', async () => {
    const service = await sandbox()
    service.faults.set(OSV_INDEX, { kind: 'status', status: 503 })
    const { session } = connect(service.url, { RETRIES: '3' })
    await refusal('upstream_status', fetchFeed(session, OSV_INDEX, null, MAX))
    expect(session.cost).toMatchObject({ requests: 4, retries: 3 })
    const never = connect(service.url, { RETRIES: '0' })
    await refusal('upstream_status', fetchFeed(never.session, OSV_INDEX, null, MAX))
    expect(never.session.cost).toMatchObject({ requests: 1, retries: 0 })
  })

  test('names an unreachable service without its credentials', async () => {
    const service = await sandbox()
    await service.close()
    const { session } = connect(service.url)
    const { message } = await refusal('upstream_unreachable', fetchFeed(session, OSV_INDEX, null, MAX))
    expect(message).toContain(`${service.url}${OSV_INDEX}`)
    expect(message).toContain('ECONNREFUSED')
    expect(session.cost).toMatchObject({ requests: 3, bytes: 0, retries: 2 })
  })

  test('counts attempts per document, and all of them in the cost', async () => {
    const service = await sandbox()
    service.faults.set(OSV_INDEX, { kind: 'status', status: 500 }, { times: 2 })
    service.faults.set(PATCH_FEED, { kind: 'status', status: 500 }, { times: 2 })
    const { session } = connect(service.url)
    await fetchFeed(session, OSV_INDEX, null, MAX)
    await fetchFeed(session, PATCH_FEED, null, MAX)
    expect(session.cost).toMatchObject({ requests: 6, retries: 4 })
    const bodies = service.requests.entries.filter(({ status }) => status === 200)
    expect(session.cost.bytes).toBe(bodies.reduce((sum, { bytes }) => sum + bytes, 0))
  })
})

describe('Retry-After', () => {
  const waitAsked = (after: string) => ({
    kind: 'status' as const,
    status: 503,
    headers: { 'Retry-After': after },
  })

  test('in seconds and as a date is waited for', async () => {
    const service = await sandbox()
    const { session } = connect(service.url)
    const soon = new Date(Date.now() - 1000).toUTCString()
    for (const after of ['0', soon]) {
      service.faults.set(OSV_INDEX, waitAsked(after), { times: 1 })
      expect(await fetchFeed(session, OSV_INDEX, null, MAX)).toMatchObject({ status: 200 })
    }
    expect(session.cost.retries).toBe(2)
  })

  test.each([
    ['301', 301],
    [new Date(Date.UTC(2026, 4, 1, 2)).toUTCString(), 7200],
    ['9'.repeat(400), Infinity],
  ])('beyond the ceiling ends the run at once: %s', async (after, seconds) => {
    const service = await sandbox()
    service.faults.set(OSV_INDEX, waitAsked(after))
    const { session } = connect(service.url, {}, () => Date.UTC(2026, 4, 1))
    const { message } = await refusal('upstream_status', fetchFeed(session, OSV_INDEX, null, MAX))
    expect(message).toContain(`asked to wait ${seconds} s`)
    expect(session.cost).toMatchObject({ requests: 1, retries: 0 })
  })

  longTest('delays the next attempt by its full time when it is below the ceiling', async () => {
    const service = await sandbox()
    service.faults.set(OSV_INDEX, waitAsked('1'), { times: 1 })
    const { session } = connect(service.url)
    const before = performance.now()
    await fetchFeed(session, OSV_INDEX, null, MAX)
    expect(performance.now() - before).toBeGreaterThanOrEqual(999) // a lower bound only: never a race
  })

  test('with an invalid value is ignored', async () => {
    const service = await sandbox()
    service.faults.set(OSV_INDEX, waitAsked('in a while'), { times: 1 })
    const { session } = connect(service.url)
    expect(await fetchFeed(session, OSV_INDEX, null, MAX)).toMatchObject({ status: 200 })
  })
})

describe('the deadline', () => {
  const ENDLESS: Fault[] = [
    { kind: 'stall', at: 'body', bytes: 10 },
    { kind: 'stall' },
    { kind: 'slow', bytesPerSecond: 10 },
  ]
  bothTest.each(LONG ? ENDLESS : ENDLESS.slice(0, 1))('ends an answer that does not end: %o', async (fault) => {
    const service = await sandbox()
    service.faults.set(OSV_INDEX, fault)
    const { session } = connect(service.url, {
      REQUEST_TIMEOUT_MS: '150',
      LOW_SPEED_SECONDS: '30',
      RETRIES: '1',
    })
    const { message } = await refusal('upstream_unreachable', fetchFeed(session, OSV_INDEX, null, MAX))
    expect(message).toContain('no complete answer within 150 ms')
    expect(session.cost.requests).toBe(2)
  })

  longTest('covers all redirects of a request', async () => {
    const { url } = await createOrigin((request, response) => {
      const later = setTimeout(() => {
        response.writeHead(302, { Location: `${request.url ?? ''}x` }).end()
      }, 150)
      response.on('close', () => clearTimeout(later))
    })
    const { session } = connect(url, { REQUEST_TIMEOUT_MS: '400', RETRIES: '0' })
    await refusal('upstream_unreachable', fetchFeed(session, OSV_INDEX, null, MAX)) // six hops would end otherwise
  })
})

describe('the size cap', () => {
  test('refuses a larger Content-Length before the body, without another attempt', async () => {
    const service = await sandbox()
    const { session } = connect(service.url)
    const size = service.feed.index().length
    const { message } = await refusal('upstream_too_large', session.fetchDocument(OSV_INDEX, { maxBytes: size - 1 }))
    expect(message).toContain(`${size} bytes or more, the cap is ${size - 1}`)
    expect(session.cost).toMatchObject({ requests: 1, bytes: 0, retries: 0 })
    expect(await session.fetchDocument(OSV_INDEX, { maxBytes: size })).toMatchObject({
      status: 200,
    })
  })

  test('stops a chunked body as soon as it is larger', async () => {
    const { url } = await createOrigin((_request, response) => {
      const more = (): void => {
        while (!response.destroyed && response.write(Buffer.alloc(50_000))) continue
      }
      response.on('drain', more)
      more()
    })
    const { session } = connect(url)
    await refusal('upstream_too_large', session.fetchDocument('/endless', { maxBytes: 1_000_000 }))
    expect(session.cost.bytes).toBeLessThan(3_000_000)
    expect(session.cost.requests).toBe(1)
  })

  longTest('applies to the inflated size of gzip', async () => {
    const service = await sandbox()
    service.faults.set(OSV_INDEX, { kind: 'gzipBomb', bytes: 100_000_000 })
    const { session } = connect(service.url)
    const { message } = await refusal('upstream_too_large', fetchFeed(session, OSV_INDEX, null, 1_000_000))
    expect(message).toContain('inflates to more than 1000000 bytes')
    expect(session.cost.requests).toBe(1)
  })
})

describe('the content encoding', () => {
  const encoded = (encoding: string, body: Buffer) =>
    createOrigin((_request, response) => {
      response.writeHead(200, { 'Content-Encoding': encoding }).end(body)
    })

  test('gzip is decompressed, in one member or several, also where it was not requested', async () => {
    const body = Buffer.concat([gzipSync('[{"id":'), gzipSync('"a"}]')])
    for (const name of [' GZIP ', 'x-gzip']) {
      const { url } = await encoded(name, body)
      const answer = await connect(url).session.fetchDocument('/x', { maxBytes: MAX })
      expect(answer).toMatchObject({ body: Buffer.from('[{"id":"a"}]') })
    }
  })

  bothTest.each(telling(['br', 'deflate', 'gzip, gzip', 'zstd'], 'br', 'gzip, gzip'))(
    '%s is refused',
    async (encoding) => {
      const { url, requests } = await encoded(encoding, gzipSync('[]'))
      const { message } = await refusal('upstream_shape', fetchFeed(connect(url).session, OSV_INDEX, null, MAX))
      expect(message).toContain(`content encoding ${encoding}`)
      expect(requests.length).toBe(1)
    },
  )

  test('gzip that is damaged or cut short is refused', async () => {
    const sound = gzipSync('[]'.repeat(1000))
    const turned = Buffer.from(sound)
    turned[20] = (turned[20] ?? 0) ^ 0xff
    for (const body of [turned, sound.subarray(0, -1), sound.subarray(0, 12), Buffer.from('[]')]) {
      const { url } = await encoded('gzip', body)
      const { message } = await refusal('upstream_shape', fetchFeed(connect(url).session, OSV_INDEX, null, MAX))
      expect(message).toContain('the gzip body is damaged')
    }
  })
})

describe('a redirect', () => {
  bothTest.each(LONG ? ([301, 302, 303, 307, 308] as const) : ([302, 308] as const))(
    '%i is followed within the host',
    async (status) => {
      const service = await sandbox()
      const id = service.feed.ids()[0] ?? ''
      const location = osvRecordPath(id)
      service.faults.set(OSV_INDEX, { kind: 'redirect', location, status }, { times: 1 })
      const { session } = connect(service.url)
      const answer = await session.fetchDocument(OSV_INDEX, { maxBytes: MAX })
      expect(answer).toMatchObject({ body: service.feed.record(id) })
      expect(session.cost).toMatchObject({ requests: 2, retries: 0 })
    },
  )

  test('to another host or port is refused, and that host gets no request', async () => {
    const service = await sandbox()
    const other = await createOrigin((_request, response) => response.end('[]'))
    const elsewhere = [other.url, `//127.0.0.1:${other.port}/x`, 'http://[', 'ftp://127.0.0.1/x']
    for (const location of elsewhere) {
      service.faults.set(OSV_INDEX, { kind: 'redirect', location }, { times: 1 })
      const { message } = await refusal(
        'upstream_status',
        fetchFeed(connect(service.url).session, OSV_INDEX, null, MAX),
      )
      expect(message).toContain('only redirects within')
      expect(message).toContain('set upstream.apiRoot')
    }
    expect(other.requests).toEqual([])
  })

  test('in a circle ends after five hops', async () => {
    const service = await sandbox()
    const fault = service.faults.set(OSV_INDEX, { kind: 'redirect', location: OSV_INDEX })
    const { session } = connect(service.url)
    const { message } = await refusal('upstream_status', fetchFeed(session, OSV_INDEX, null, MAX))
    expect(message).toContain('too many redirects')
    expect(fault.hits()).toBe(6)
    expect(session.cost).toMatchObject({ requests: 6, retries: 0 })
  })

  test('without a location is reported as an error of its status', async () => {
    const { url } = await createOrigin((_request, response) => response.writeHead(302).end())
    const { message } = await refusal('upstream_status', fetchFeed(connect(url).session, OSV_INDEX, null, MAX))
    expect(message).toContain('answered 302')
  })
})

describe('the abort signal', () => {
  test('ends a request in flight, at headers and at body, and nothing is tried again', async () => {
    for (const at of ['headers', 'body'] as const) {
      const service = await sandbox()
      service.faults.set(OSV_INDEX, { kind: 'stall', at, bytes: 5 })
      const { session, stop } = connect(service.url, { REQUEST_TIMEOUT_MS: '20000' })
      const asked = fetchFeed(session, OSV_INDEX, null, MAX)
      while (service.requests.count() === 0) await new Promise(setImmediate)
      stop.abort(new Error('shutting down'))
      await expect(asked).rejects.toThrow('shutting down')
      expect(session.cost).toMatchObject({ requests: 1, retries: 0 })
    }
  })

  test('ends a pause between two attempts', async () => {
    const service = await sandbox()
    service.faults.set(OSV_INDEX, { kind: 'status', status: 503, headers: { 'Retry-After': '60' } })
    const { session, stop } = connect(service.url)
    const asked = fetchFeed(session, OSV_INDEX, null, MAX)
    while (session.cost.retries === 0) await new Promise(setImmediate)
    stop.abort()
    await expect(asked).rejects.toMatchObject({ name: 'AbortError' })
    expect(session.cost.requests).toBe(1)
  })

  test('that is aborted before the first request prevents it', async () => {
    const service = await sandbox()
    const { session, stop } = connect(service.url)
    stop.abort()
    await expect(fetchFeed(session, OSV_INDEX, null, MAX)).rejects.toMatchObject({ name: 'AbortError' })
    expect(service.requests.count()).toBe(0)
  })
})

describe('two sessions of one client', () => {
  test('count their own costs and stop on their own signals', async () => {
    const service = await sandbox()
    const { settings } = connect(service.url)
    const upstream = createUpstream({ config: settings, version: '1', now: Date.now })
    const client = upstream.client('public')
    const stop = new AbortController()
    const one = client.open(stop.signal)
    const two = client.open(new AbortController().signal)
    await fetchFeed(one, OSV_INDEX, null, MAX)
    stop.abort()
    await expect(fetchFeed(one, OSV_INDEX, null, MAX)).rejects.toMatchObject({ name: 'AbortError' })
    await fetchFeed(two, OSV_INDEX, null, MAX)
    expect(two.cost.requests).toBe(1)
    await upstream.close()
    await refusal('upstream_unreachable', fetchFeed(two, OSV_INDEX, null, MAX))
  })
})
