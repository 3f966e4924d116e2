import type { IncomingMessage } from 'node:http'
import { describe, expect, test } from 'vitest'
import { sha256Of } from '../../../src/base/digest.ts'
import { type Saying, plainBench } from '../../support/catalog/plain-service.ts'

const SBOM = { bomFormat: 'CycloneDX', specVersion: '1.5' }
const VEX = { '@context': 'https://openvex.dev/ns/v0.2.0', statements: [] }
const listOf =
  (...data: unknown[]): Saying =>
  () => ({ body: { data, cursor: { after: null } } })

test('artifacts are read as a bare string, behind a redirect to another host, and when missing', async () => {
  const made = await plainBench({
    '/v1/tags/': listOf({ id: 't' }),
    '/v1/tags/t': () => ({ body: { id: 't' } }),
    '/v1/tags/t/sbom': (url) => ({ body: JSON.stringify(`${url.origin}/documents/sbom?sig=1`) }),
    '/v1/tags/t/vex': (url) => ({
      status: 302,
      headers: { location: `http://localhost:${url.port}/documents/vex?sig=1` },
    }),
    '/v1/tags/t/provenance': () => ({ status: 204 }),
    '/documents/sbom': () => ({ body: SBOM }),
    '/documents/vex': () => ({ body: VEX }),
  })
  expect(await made.run('catalog')).toMatchObject({ state: 'complete', code: null })
  const link = (await (await made.ask('/v1/tags/t/sbom')).json()) as string
  expect(new URL(link).pathname).toMatch(/^\/-\/documents\//)
  expect(await (await fetch(link)).json()).toEqual(SBOM)
  expect(await (await made.ask('/v1/tags/t/vex')).json()).toEqual(VEX)
  const none = await made.ask('/v1/tags/t/provenance')
  expect([none.status, await none.text(), none.headers.get('content-type')]).toEqual([204, '', null])
  // No credential left the service's own host.
  const left = made.origin.requests.filter(({ headers }) => headers.host?.startsWith('localhost'))
  expect(left.map(({ headers }) => headers.authorization)).toEqual([undefined])
  expect(await made.run('catalog')).toMatchObject({ state: 'complete', facts: { fetched: 0 } })
  expect(made.asked('/v1/tags/t/provenance')).toHaveLength(1)
})

test('lists, items and artifacts that begin with a byte order mark are read, and items served as they are', async () => {
  const marked = (value: unknown) => ({
    body: `\ufeff${JSON.stringify(value)}`,
    headers: { 'content-type': 'application/json' },
  })
  const made = await plainBench({
    '/v1/tags/': () => marked({ data: [{ id: 't' }], cursor: { after: null } }),
    '/v1/tags/t': () => marked({ id: 't' }),
    '/v1/tags/t/sbom': (url) => marked({ url: `${url.origin}/documents/sbom?sig=1` }),
    '/v1/tags/t/vex': () => marked(VEX),
    '/documents/sbom': () => marked(SBOM),
  })
  expect(await made.run('catalog')).toMatchObject({ state: 'complete', code: null })
  const textOf = async (path: string): Promise<string> =>
    Buffer.from(await (await made.ask(path)).arrayBuffer()).toString()
  expect(await textOf('/v1/tags/t')).toBe('\ufeff{"id":"t"}')
  const { url } = JSON.parse((await textOf('/v1/tags/t/sbom')).slice(1)) as { url: string }
  const document = Buffer.from(await (await fetch(url)).arrayBuffer()).toString()
  expect(document).toBe(`\ufeff${JSON.stringify(SBOM)}`)
})

test('an artifact that upstream is still making is pending, not stored, and requested again', async () => {
  const tag = { '/v1/tags/': listOf({ id: 't' }), '/v1/tags/t': () => ({ body: { id: 't' } }) }
  const made = await plainBench({
    ...tag,
    '/v1/tags/t/sbom': () => ({ status: 202, headers: { 'retry-after': '60' }, body: SBOM }),
  })
  const report = await made.run('catalog')
  expect(report).toMatchObject({ state: 'partial', facts: { lacking: 1, pending: 1 } })
  expect(report.message).toContain('1 of them still being built by the service')
  expect(String(report.facts['lackingIds'])).toContain('asked to wait 60 s')
  const refused = await made.ask('/v1/tags/t/sbom')
  expect([refused.status, await refused.text()]).toEqual([503, expect.stringContaining('asked to wait 60 s')])
  made.say({ '/v1/tags/t/sbom': () => ({ body: SBOM }) })
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  expect(await (await made.ask('/v1/tags/t/sbom')).json()).toEqual(SBOM)
})

test('an item that is no object, or whose id has a line break, is reported and skipped; the rest is mirrored', async () => {
  const made = await plainBench({
    '/v1/patches': listOf({ ticket_id: 'a' }, 7, { ticket_id: 'b\nc' }, null, { ticket_id: 'd' }),
  })
  const report = await made.run('catalog')
  expect(report).toMatchObject({ state: 'partial', code: null, facts: { incomplete: 1 } })
  expect(report.message).toContain('3 of its items were skipped, the first: item 2 of page 1')
  const served = (await (await made.ask('/v1/patches')).json()) as { data: unknown[] }
  expect(served.data).toEqual([{ ticket_id: 'a' }, { ticket_id: 'd' }])
  expect(await made.run('catalog')).toMatchObject({ state: 'partial', facts: { incomplete: 1, lists: 0 } })
})

test('two patches of one ticket are both mirrored, and of two tags of one id the second is reported', async () => {
  const patches = [
    { ticket_id: 'a', cve_id: 'CVE-2026-1' },
    { ticket_id: 'a', cve_id: 'CVE-2026-2' },
  ]
  const made = await plainBench({
    '/v1/patches': listOf(...patches),
    '/v1/tags/': listOf({ id: 't', arch: 'amd64' }, { id: 't', arch: 'arm64' }, { id: 't', arch: 'amd64' }),
    '/v1/tags/t': () => ({ body: { id: 't' } }),
  })
  const report = await made.run('catalog')
  expect(report).toMatchObject({ state: 'partial', facts: { incomplete: 1 } })
  expect(report.message).toContain('item 2 of page 1: another item of the page has its id, t')
  expect((await (await made.ask('/v1/patches')).json()) as object).toMatchObject({ data: patches })
  const found = await (await made.ask('/v1/patches?cve_id=CVE-2026-2')).json()
  expect(found).toMatchObject({ data: patches.slice(1) })
})

describe('items of one id on different pages', () => {
  /** Pages of two items each, which name the next one and are confirmed while they are the same. */
  const pagesOf = (all: () => object[]) => (url: URL, request: IncomingMessage) => {
    const start = Number(url.searchParams.get('after') ?? 0)
    const after = start + 2 < all().length ? String(start + 2) : null
    const body = JSON.stringify({ data: all().slice(start, start + 2), cursor: { after } })
    const etag = `"${sha256Of(Buffer.from(body)).toString('hex')}"`
    const isSame = request.headers['if-none-match'] === etag
    const headers = { etag, 'content-type': 'application/json' }
    return isSame ? { status: 304, headers } : { body, headers }
  }

  test('that are patches of one ticket are all mirrored, and stay so when one page changes', async () => {
    const patch = (ticket_id: string, cve_id: string) => ({ ticket_id, cve_id })
    let all = [patch('a', '1'), patch('b', '2'), patch('b', '3'), patch('c', '4'), patch('c', '5'), patch('d', '6')]
    const made = await plainBench({ '/v1/patches': pagesOf(() => all) })
    const served = async () => (await (await made.ask('/v1/patches')).json()) as object
    const check = async (): Promise<void> => {
      expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
      expect(await served()).toMatchObject({ data: all })
    }
    await check()
    await check()
    all = [...all.slice(0, 2), patch('a', '7'), ...all.slice(3)]
    await check()
    all = [patch('c', '8'), ...all.slice(1)]
    await check()
    await check()
  })

  test('and only of earlier ids are named, and mirrored where their page is the last', async () => {
    let all: object[] = [{ ticket_id: 'a' }, { ticket_id: 'b' }, { ticket_id: 'b', n: 2 }]
    const made = await plainBench({ '/v1/patches': pagesOf(() => all) })
    const served = async () => (await (await made.ask('/v1/patches')).json()) as object
    for (let turn = 0; turn < 2; turn++) {
      expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
      expect(await served()).toMatchObject({ data: all })
    }
    all = [...all, { ticket_id: 'a', n: 2 }, { ticket_id: 'c' }]
    const report = await made.run('catalog')
    expect(report).toMatchObject({ state: 'partial', facts: { incomplete: 1 } })
    expect(report.message).toContain('page 2 has ids of earlier pages alone, with other content')
  })

  test('that lead to a path are reported', async () => {
    const all = [{ id: 't', arch: 'amd64' }, { id: 'u' }, { id: 't', arch: 'arm64' }, { id: 'v' }]
    const made = await plainBench({
      '/v1/tags/': pagesOf(() => all),
      ...Object.fromEntries(all.map(({ id }) => [`/v1/tags/${id}`, () => ({ body: { id } })])),
    })
    const report = await made.run('catalog')
    expect(report).toMatchObject({ state: 'partial', facts: { incomplete: 1 } })
    expect(report.message).toContain('item 1 of page 2: another item of an earlier page has its id, t')
  })
})

test('ids that are numbers of any size stay different, and are asked for as they are', async () => {
  const ids = ['9007199254740992', '9007199254740993', '123456789012345678901']
  const tags = `{"data":[${ids.map((id) => `{"id":${id},"name":"1"}`).join(',')}]}`
  const made = await plainBench({
    '/v1/tags/': () => ({ body: tags, headers: { 'content-type': 'application/json' } }),
    ...Object.fromEntries(ids.map((id) => [`/v1/tags/${id}`, () => ({ body: { id } })])),
  })
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  for (const id of ids) expect((await made.ask(`/v1/tags/${id}`)).status, id).toBe(200)
  expect(await (await made.ask('/v1/tags/')).text()).toContain(`"id":${ids[1] ?? ''}`)
})

test('a scoped package is found by its plain and its percent-encoded name', async () => {
  const item = { id: 'p', ecosystem: 'npm', name: '@scope/name', version: '1.0', arch: 'noarch' }
  const at = '/packages/ecosystems/npm/packages/%40scope%2Fname/versions'
  const made = await plainBench({
    '/v1/packages/': listOf(item),
    '/v1/packages/p/': () => ({ body: item }),
    [at]: () => ({ body: { versions: ['1.0'] } }),
  })
  await made.run('catalog')
  for (const name of ['@scope/name', '@scope%2Fname', '%40scope%2fname']) {
    const answer = await made.ask(`/packages/ecosystems/npm/packages/${name}/versions`)
    expect([name, answer.status]).toEqual([name, 200])
  }
})

test('a path whose document is replaced, and comes back while another path has it, never has an earlier date', async () => {
  const state = { round: 0, shown: 1 }
  const moved = (url: URL, number: number) => ({
    status: 302,
    headers: { location: `http://localhost:${url.port}/documents/${number}?sig=1` },
  })
  const made = await plainBench({
    '/v1/tags/': (...asked) => listOf({ id: 'a', round: state.round }, { id: 'b' })(...asked),
    '/v1/tags/a': () => ({ body: { id: 'a' } }),
    '/v1/tags/b': () => ({ body: { id: 'b' } }),
    '/v1/tags/a/vex': (url) => moved(url, state.shown),
    '/v1/tags/b/vex': (url) => moved(url, 1),
    '/documents/1': () => ({ body: { ...VEX, number: 1 } }),
    '/documents/2': () => ({ body: { ...VEX, number: 2 } }),
  })
  let last = 0
  for (const shown of [1, 2, 1]) {
    state.shown = shown
    state.round++
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    const reply = await made.ask('/v1/tags/a/vex')
    expect(await reply.json()).toMatchObject({ number: shown })
    const date = Date.parse(reply.headers.get('last-modified') ?? '')
    expect(date).toBeGreaterThan(last)
    last = date
  }
})
