import { request } from 'node:http'
import { connect } from 'node:net'
import { gunzipSync } from 'node:zlib'
import { afterEach, describe, expect } from 'vitest'
import type { QueryViews } from '../../../src/features/scanners/routes/query-routes.ts'
import { type Held, heldRecord, serveOsv, viewsOf } from './served-osv.ts'
import { longTest, test } from '../../support/tables.ts'

const RECORDS: readonly Held[] = [
  heldRecord('ROOT-APP-NPM-CVE-2024-1', 'Root:npm', '@rootio/semver', '4.2.1-root.io.1'),
  heldRecord('ROOT-OS-DEBIAN-12-CVE-2024-2', 'Root:Debian:12', 'curl', '7.88.1-10.root.io.1'),
  {
    ...heldRecord('ROOT-OS-DEBIAN-12-CVE-2024-3', 'Debian:12', 'curl', '7.88.1-11.root.io.1'),
    prefixes: ['Root'],
  },
  heldRecord('GHSA-1', 'npm', 'left-pad', '1.3.0'),
  heldRecord('GHSA-2', 'npm', 'left-pad', '1.1.0'),
  heldRecord('odd id/1', 'npm', 'odd', '1.0.0'),
]

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

async function serve(current: QueryViews | null = viewsOf(RECORDS), more = {}) {
  const state = { current }
  const served = await serveOsv(state, more)
  closers.push(served.close)
  return { ...served, state }
}

const LEFT_PAD = { package: { ecosystem: 'npm', name: 'left-pad' } }
const textOf = (id: string): string => RECORDS.find((held) => held.id === id)?.text ?? ''

describe('the OSV route POST query', () => {
  test("answers with the records' own bytes, whole and in the order of their ids", async () => {
    const { post } = await serve()
    const { status, headers, text } = await post('query', { ...LEFT_PAD, version: '1.0.0' })
    expect(status).toBe(200)
    expect(text).toBe(`{"vulns":[${textOf('GHSA-1')},${textOf('GHSA-2')}]}`)
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-type': 'application/json',
      'cache-control': 'no-store',
      vary: 'Accept-Encoding',
      'x-mirror-snapshot': 'a'.repeat(64),
      'x-mirror-as-of': '2026-01-01T00:00:00.000Z',
    })
    expect(headers.has('x-mirror-derived')).toBe(false)
  })

  test('omits records that are fixed, and answers {} without any', async () => {
    const { post } = await serve()
    expect((await post('query', { ...LEFT_PAD, version: '1.2.0' })).text).toBe(`{"vulns":[${textOf('GHSA-1')}]}`)
    for (const nothing of [
      { ...LEFT_PAD, version: '1.3.0' },
      { package: { ecosystem: 'npm', name: 'no' } },
      { package: { purl: 'pkg:yeet/x@1' } },
    ])
      expect(await post('query', nothing)).toMatchObject({ status: 200, text: '{}' })
  })

  test("keeps a vendor's ecosystem apart from the derived one, which says what it is", async () => {
    const { post } = await serve()
    const ask = (ecosystem: string) => post('query', { version: '7.88.1-10', package: { ecosystem, name: 'curl' } })
    const own = await ask('Root:Debian:12')
    expect(own.text).toContain('"ROOT-OS-DEBIAN-12-CVE-2024-2"')
    expect(own.text).not.toContain('CVE-2024-3')
    expect(own.headers.has('x-mirror-derived')).toBe(false)
    for (const ecosystem of ['Debian', 'Debian:12']) {
      const derived = await ask(ecosystem)
      expect(derived.text).toContain('"ROOT-OS-DEBIAN-12-CVE-2024-3"')
      expect(derived.text).not.toContain('CVE-2024-2')
      expect(derived.headers.get('x-mirror-derived')).toBe('Root')
    }
  })

  test('accepts a package URL', async () => {
    const { post } = await serve()
    const { text } = await post('query', { package: { purl: 'pkg:npm/left-pad@1.2.0' } })
    expect(text).toContain('GHSA-1')
    expect(text).not.toContain('GHSA-2')
  })

  test('compresses long answers for clients that accept gzip', async () => {
    const { port, post } = await serve()
    const plain = await post('query', LEFT_PAD, { 'accept-encoding': 'identity' })
    expect(plain.headers.has('content-encoding')).toBe(false)
    const many = Array.from({ length: 20 }, (_, i) => heldRecord(`A${i}`, 'npm', 'p', '1.0.0'))
    const second = await serve(viewsOf(many))
    const bytes = await raw(second.port, '{"package":{"ecosystem":"npm","name":"p"}}')
    expect(bytes.headers['content-encoding']).toBe('gzip')
    const { vulns } = JSON.parse(gunzipSync(bytes.body).toString()) as { vulns: object[] }
    expect(vulns).toHaveLength(20)
    expect(port).not.toBe(second.port)
  })

  test('gives pages of a thousand, and a token that is valid in a later snapshot', async () => {
    const records = Array.from({ length: 1001 }, (_, i) =>
      heldRecord(`R${String(i).padStart(4, '0')}`, 'npm', 'p', '1.0.0'),
    )
    const { post, state } = await serve(viewsOf(records))
    const query = { package: { ecosystem: 'npm', name: 'p' } }
    const first = JSON.parse((await post('query', query)).text) as Answer
    expect(first.vulns).toHaveLength(1000)
    state.current = viewsOf(records.slice(500), 'b'.repeat(64))
    const page_token = first.next_page_token
    const second = JSON.parse((await post('query', { ...query, page_token })).text) as Answer
    expect(second.vulns?.map(({ id }) => id)).toEqual(['R1000'])
    expect(second.next_page_token).toBeUndefined()
  })

  test('ends a page when its time is up, after at least one record', async () => {
    const records = Array.from({ length: 200 }, (_, i) =>
      heldRecord(`R${String(i).padStart(3, '0')}`, 'npm', 'p', i < 190 ? '0' : '1.0.0'),
    )
    let clock = 0
    const { post } = await serve(viewsOf(records), { now: () => (clock += 30_000) })
    const query = { package: { ecosystem: 'npm', name: 'p' }, version: '0.5.0' }
    let token = ''
    const ids: string[] = []
    let pages = 0
    do {
      const answer = JSON.parse((await post('query', { ...query, page_token: token })).text) as Answer
      ids.push(...(answer.vulns ?? []).map(({ id }) => id))
      token = answer.next_page_token ?? ''
      pages++
    } while (token !== '')
    expect(ids).toHaveLength(10)
    expect(pages).toBe(4)
  })

  test('starts again when newer views replace the ones in use', async () => {
    const old = viewsOf(RECORDS)
    const { post, state } = await serve(old)
    old.broken = true
    let asked = 0
    const newer = viewsOf(RECORDS, 'b'.repeat(64))
    Object.defineProperty(state, 'current', { get: () => (asked++ < 2 ? old : newer) })
    const { status, headers } = await post('query', LEFT_PAD)
    expect(status).toBe(200)
    expect(headers.get('x-mirror-snapshot')).toBe('b'.repeat(64))
  })
})

test('a query of a client that has left ends, and other clients are answered meanwhile', async () => {
  const records = Array.from({ length: 5000 }, (_, i) => heldRecord(`R${String(i).padStart(4, '0')}`, 'npm', 'p', '0'))
  const views = viewsOf(records)
  const { port, url } = await serve(views)
  const body = JSON.stringify({ version: '1.0.0', package: { ecosystem: 'npm', name: 'p' } })
  const sent = request({ port, host: '127.0.0.1', path: '/osv/v1/query', method: 'POST' })
  sent.on('error', () => undefined).end(body)
  await expect.poll(() => views.looks, { interval: 1 }).toBeGreaterThan(2)
  expect((await fetch(`${url}vulns/R0001`)).status).toBe(200)
  expect(views.looks).toBeLessThan(70)
  sent.destroy()
  let before = -1
  const isStill = (): boolean => {
    const still = views.looks === before
    before = views.looks
    return still
  }
  await expect.poll(isStill, { interval: 30 }).toBe(true)
  expect(views.looks).toBeLessThan(70)
})

interface Answer {
  vulns?: { id: string }[]
  next_page_token?: string
}

describe('the OSV route POST querybatch', () => {
  test('answers each query with ids and dates, in their order', async () => {
    const { post } = await serve()
    const queries = [
      { ...LEFT_PAD, version: '1.2.0' },
      { ...LEFT_PAD, version: '9.0.0' },
      { package: { purl: 'pkg:npm/left-pad@1.0.0' } },
    ]
    const modified = '2026-01-02T03:04:05.678Z'
    const { status, text } = await post('querybatch', { queries })
    expect(status).toBe(200)
    expect(JSON.parse(text)).toEqual({
      results: [
        { vulns: [{ id: 'GHSA-1', modified }] },
        {},
        {
          vulns: [
            { id: 'GHSA-1', modified },
            { id: 'GHSA-2', modified },
          ],
        },
      ],
    })
    expect((await post('querybatch', {})).text).toBe('{}')
  })

  test('gives dates in a form that protobuf reads, or omits them', async () => {
    const stamps = ['2026-01-02T03:04:05Z', '2026-01-02', '2026-01-02T03:04:05+02:00', 'soon']
    const records = stamps.map((stamp, i) => {
      const held = heldRecord(`R${i}`, 'npm', 'p', '1.0.0')
      return { ...held, text: held.text.replace('2026-01-02T03:04:05.678Z', stamp) }
    })
    const { post } = await serve(viewsOf(records))
    const queries = [{ package: { ecosystem: 'npm', name: 'p' } }]
    const { results } = JSON.parse((await post('querybatch', { queries })).text) as {
      results: { vulns: { modified?: string }[] }[]
    }
    expect(results[0]?.vulns.map(({ modified }) => modified)).toEqual([
      '2026-01-02T03:04:05Z',
      '2026-01-02T00:00:00.000Z',
      '2026-01-02T01:04:05.000Z',
      undefined,
    ])
  })

  longTest('gives shorter pages after many records, each with its own token', async () => {
    const records = Array.from({ length: 1100 }, (_, i) =>
      heldRecord(`R${String(i).padStart(4, '0')}`, 'npm', 'p', '1.0.0'),
    )
    const { post } = await serve(viewsOf(records))
    const query = { package: { ecosystem: 'npm', name: 'p' } }
    const { text } = await post('querybatch', { queries: Array(5).fill(query) })
    const { results } = JSON.parse(text) as { results: Answer[] }
    expect(results.map(({ vulns }) => vulns?.length)).toEqual([1000, 1000, 1000, 1000, 5])
    const page_token = results[4]?.next_page_token
    const next = await post('querybatch', { queries: [{ ...query, page_token }] })
    const second = JSON.parse(next.text) as { results: Answer[] }
    expect(second.results[0]?.vulns?.[0]?.id).toBe('R0005')
  })

  test('is refused as a whole for one malformed query, which it names', async () => {
    const views = viewsOf(RECORDS)
    const { post } = await serve(views)
    const bad = { commit: 'a'.repeat(40) }
    const commit = await post('querybatch', { queries: [LEFT_PAD, bad] })
    expect(commit.status).toBe(400)
    expect(JSON.parse(commit.text)).toMatchObject({
      code: 3,
      message: /not supported.* at index: 1/,
    })
    const token = await post('querybatch', { queries: [{ ...LEFT_PAD, page_token: 'x' }] })
    expect(JSON.parse(token.text)).toEqual({ code: 3, message: 'Invalid page token at index: 0.' })
    expect(views.looks).toBe(0)
    const many = await post('querybatch', { queries: Array(1001).fill(LEFT_PAD) })
    expect(JSON.parse(many.text)).toEqual({ code: 3, message: 'Too many queries.' })
    expect((await post('querybatch', { queries: 'all' })).status).toBe(400)
  })
})

describe('the OSV route GET vulns', () => {
  test("gives upstream's bytes, with validators", async () => {
    const { url } = await serve()
    const id = 'ROOT-APP-NPM-CVE-2024-1'
    const response = await fetch(`${url}vulns/${id}`)
    expect(await response.text()).toBe(textOf(id))
    const etag = response.headers.get('etag') ?? ''
    const again = await fetch(`${url}vulns/${id}`, { headers: { 'if-none-match': etag } })
    expect(again.status).toBe(304)
    const plain = await fetch(`${url}vulns/${id}`, {
      method: 'HEAD',
      headers: { 'accept-encoding': 'identity' },
    })
    expect(plain.headers.get('content-length')).toBe(String(textOf(id).length))
    expect((await fetch(`${url}vulns/${encodeURIComponent('odd id/1')}`)).status).toBe(200)
  })

  test('names the records that have an id among their other ones', async () => {
    const held = { id: 'GHSA-3', text: '{"id":"GHSA-3","upstream":["CVE-3"]}', packages: [] }
    const { url } = await serve(viewsOf([...RECORDS, held]))
    const response = await fetch(`${url}vulns/CVE-3`)
    expect(response.status).toBe(404)
    expect(await response.json()).toEqual({ code: 5, message: 'Bug not found, but these records name it: GHSA-3.' })
  })

  test('answers 404 for an id that is not stored, and never shows a derived form', async () => {
    const { url } = await serve()
    for (const id of ['CVE-1', 'ROOT-OS-DEBIAN-12-CVE-2024-3']) {
      const response = await fetch(`${url}vulns/${id}`)
      expect(response.status).toBe(404)
      expect(await response.json()).toEqual({ code: 5, message: 'Bug not found.' })
    }
    const missing = (id: string) =>
      id === 'CVE-1' ? ({ kind: 'failed', message: 'upstream answered 500' } as const) : null
    const partial = await serve(viewsOf(RECORDS), { missing })
    const refused = await fetch(`${partial.url}vulns/CVE-1`)
    expect([refused.status, await refused.json()]).toEqual([503, { code: 14, message: 'upstream answered 500' }])
    expect((await fetch(`${partial.url}vulns/CVE-2`)).status).toBe(404)
    const long = await fetch(`${url}vulns/${'x'.repeat(101)}`)
    expect(await long.json()).toEqual({ code: 3, message: 'ID too long' })
  })
})

describe('a query that cannot be answered', () => {
  test('gets 405 with the allowed methods', async () => {
    const { url } = await serve()
    const post = await fetch(`${url}vulns/X`, { method: 'POST', body: '{}' })
    expect([post.status, post.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
    for (const path of ['query', 'querybatch']) {
      const get = await fetch(url + path)
      expect([get.status, get.headers.get('allow')]).toEqual([405, 'POST'])
      expect(await get.json()).toMatchObject({ code: 12 })
    }
  })

  test('gets 404 in JSON for another path', async () => {
    const { url } = await serve()
    for (const path of ['', 'vulns', 'vulns/', 'determineversion', 'query/x']) {
      const response = await fetch(url + path)
      expect(response.status).toBe(404)
      expect(await response.json()).toMatchObject({ code: 5 })
    }
  })

  test('gets 404 when the settings switch the API off', async () => {
    const served = await serveOsv({ current: viewsOf(RECORDS), enabled: false })
    closers.push(served.close)
    const { status, text } = await served.post('query', LEFT_PAD)
    expect(status).toBe(404)
    expect(text).toContain('views.serve has no query')
  })

  test('gets 503 before there are views', async () => {
    const { post, url } = await serve(null)
    for (const response of [await post('query', LEFT_PAD), await fetch(`${url}vulns/X`)]) {
      expect(response.status).toBe(503)
      expect(response.headers.get('retry-after')).toBe('30')
    }
  })

  test('gets 500 without details for a fault of the views', async () => {
    const views = viewsOf(RECORDS)
    views.broken = true
    const { post } = await serve(views)
    const { status, text } = await post('query', LEFT_PAD)
    expect(status).toBe(500)
    expect(JSON.parse(text)).toMatchObject({ code: 13 })
    expect(text).not.toContain('database')
  })

  test('gets 400 for a body that is not JSON', async () => {
    const { post } = await serve()
    for (const body of ['{', '[]', '"x"', 'null', '1']) expect((await post('query', body)).status).toBe(400)
    expect(JSON.parse((await post('query', '')).text)).toEqual({
      code: 3,
      message: 'Invalid query.',
    })
    expect((await fetch(`${(await serve()).url}%ff`)).status).toBe(400)
  })

  test('gets 400 for a body with so many values that parsing it would delay other clients', async () => {
    const { post } = await serve(viewsOf(RECORDS))
    const refused = async (body: string): Promise<unknown[]> => {
      const { status, text } = await post('querybatch', body)
      return [status, (JSON.parse(text) as { message: string }).message]
    }
    const reason = 'Invalid JSON payload received: more than 200000 values.'
    for (const body of ['['.repeat(200_001), `{"queries":[${'{},'.repeat(100_000)}{}]}`])
      expect(await refused(body)).toEqual([400, reason])
    expect(await refused(`{"queries":[${'{},'.repeat(99_000)}{}]}`)).toEqual([400, 'Too many queries.'])
  })

  test('gets 413 for a body that is too large, announced or not, and 415 for a compressed one', async () => {
    const { post, port } = await serve()
    const large = 'x'.repeat(4 * 1024 * 1024 + 1)
    expect((await post('query', large)).status).toBe(413)
    const untold = await raw(port, large, { 'transfer-encoding': 'chunked' })
    expect(untold.status).toBe(413)
    expect((await post('query', '{}', { 'content-encoding': 'gzip' })).status).toBe(415)
  })

  test('gets 408 when its body does not arrive', async () => {
    const { port } = await serve(viewsOf(RECORDS), { bodyTimeOf: () => 50 })
    const text = await new Promise<string>((resolve, reject) => {
      let received = ''
      const socket = connect(port, '127.0.0.1', () =>
        socket.write('POST /osv/v1/query HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{'),
      )
      socket.on('data', (chunk) => (received += chunk.toString())).once('error', reject)
      socket.once('close', () => resolve(received))
    })
    expect(text).toMatch(/^HTTP\/1.1 408 [^]*"code":4/)
  })
})

/** A POST to `query` whose answer is not decoded; an answer that comes before all is sent counts. */
function raw(port: number, body: string, headers: Record<string, string> = {}) {
  return new Promise<{ status: number; headers: Record<string, unknown>; body: Buffer }>((resolve, reject) => {
    const sent = request({
      port,
      host: '127.0.0.1',
      path: '/osv/v1/query',
      method: 'POST',
      headers: { 'accept-encoding': 'gzip', ...headers },
    })
    let answered = false
    sent.once('error', (error) => answered || reject(error))
    sent.once('response', (response) => {
      answered = true
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk)).once('error', reject)
      response.once('end', () => {
        const { statusCode = 0, headers } = response
        resolve({ status: statusCode, headers, body: Buffer.concat(chunks) })
      })
    })
    sent.end(body)
  })
}
