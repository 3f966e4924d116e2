import { Validator } from '@seriousme/openapi-schema-validator'
import { afterAll, beforeAll, expect } from 'vitest'
import { RECORD_DATES } from '../../src/base/reports/records.ts'
import { STATUS } from '../../src/base/reports/status.ts'
import { createReadRoutes } from '../../src/server/catalog/routes.ts'
import type { ReadTools } from '../../src/server/catalog/answers.ts'
import { namedEndpoint } from '../../src/config/kinds/webhooks.ts'
import { UI } from '../../src/features/pages/page.ts'
import { PAGES } from '../../src/features/pages/pages.ts'
import { READING, allKnown } from '../support/catalog/contract.ts'
import { bearer } from '../support/keys.ts'
import { type ServedContract, createBodyCheck, faultsBy, templateOf, violations } from '../support/openapi.ts'
import { type WholeMirror, openWholeMirror } from '../support/whole-mirror.ts'
import { LONG, longTest, test } from '../support/tables.ts'

let mirror: WholeMirror
let contract: ServedContract

beforeAll(async () => {
  // With the header fields that only settings add.
  mirror = await openWholeMirror({
    PATCHMIRROR_EDGE_MAX_AGE_SECONDS: '60',
    PATCHMIRROR_OSV_SCOPE: '!NONE-',
  })
  contract = (await (await mirror.get('/-/openapi.json')).json()) as ServedContract
})
afterAll(() => mirror.close())

longTest('the API document is valid OpenAPI 3.1, and describes every operation', async () => {
  const result = await new Validator().validate({ ...contract })
  expect(result).toEqual({ valid: true })
  const operations = Object.values(contract.paths).flatMap((one) => Object.values(one))
  expect(operations.filter(({ summary }) => summary === '')).toEqual([])
  const names = operations.map(({ operationId }) => operationId)
  expect(new Set(names).size).toBe(names.length)
})

test('the API document has every route of the running server, and no other', async () => {
  const { mirrored, own } = (await (await mirror.get('/')).json()) as Record<string, string[]>
  const { webhooks } = (await (await mirror.get('/-/status')).json()) as {
    webhooks: { endpoints: { path: string }[] }
  }
  const routes = [
    ...['/', ...(mirrored ?? []), ...(own ?? [])],
    ...createReadRoutes(mirror.config, { served: {} } as ReadTools).map(({ path }) => path), // none is called
    ...OF_FEATURES,
    ...webhooks.endpoints.map(({ path }) => path),
  ]
  expect(routes.length).toBeGreaterThan(50)
  expect(Object.keys(contract.paths).sort()).toEqual(routes.sort())
  for (const page of own ?? [])
    expect(namedEndpoint().check(`page=${page}`, { cwd: '/', validateCron: () => true })).toHaveProperty('fault')
})

/** The paths that take a key or a signed link, beside the service's. */
const OF_FEATURES = [
  '/-/documents/{digest}',
  '/-/tags/changes',
  '/-/tags/findings',
  '/-/vex/{digest}',
  '/.well-known/vex-repository.json',
  '/vex/v0.1/vex-data.zip',
]

interface Asked {
  readonly path: string
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly body?: string
  readonly open?: true
}

/** Requests for what no row of the service's tables has: scanners' views, the mirror's own pages, deliveries. */
function ownRequests(osv: string, listed: string, digests: readonly string[]): Asked[] {
  const json = (path: string, body: object): Asked => ({
    path,
    method: 'POST',
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json' },
  })
  const query = { version: '1', package: { name: 'x', ecosystem: 'npm' } }
  const paths = [
    ...['/', '/-/health', '/-/ready', '/-/leader', '/-/status', '/-/metrics', '/-/openapi.json', '/-/docs', '/-/sbom'],
    ...[
      `/-/changes?since=${listed}`,
      '/-/changes?since=none',
      '/-/changes?since=000000000000',
      '/-/changes',
      '/-/changes?since=x&source=y',
      `/-/changes?since=${listed}&tag=none`,
    ],
    ...['/-/tags/findings', '/-/tags/findings?limit=1', '/-/tags/findings?tag=none'],
    ...['/-/tags/findings?after=x', '/-/tags/changes', '/-/tags/changes?since=7d'],
    ...['/-/tags/changes?after=0', '/-/tags/changes?since=never', '/-/tags/changes?limit=0'],
    ...[`/-/records/${osv}`, '/-/records/none', '/-/records/%ff'],
    ...[...digests, 'none'].map((digest) => `/-/vex/${digest}`),
    ...['/osv/ecosystems.txt', '/osv/modified_id.csv', '/osv/all.zip', '/osv/Root/all.zip'],
    ...['/osv/Root/modified_id.csv', `/osv/Root/${osv}.json`, `/osv/v1/vulns/${osv}`],
    ...['/osv/Root/none.json', '/osv/None/all.zip', '/osv/v1/vulns/none', '/osv/v1/vulns/%ff'],
    ...['/external/osv/all.zip', '/external/osv/none.json', '/external/osv/%ff.json'],
    ...['/external/patch_feed?ecosystem=none', '/external/patch_feed?other=1', '/external/cve_feed'],
    ...['/.well-known/vex-repository.json', '/vex/v0.1/vex-data.zip', '/v0/users', '/v2-beta/users'],
  ]
  const page = { accept: 'text/html' }
  return [
    ...paths.map((path): Asked => ({ path })),
    { path: '/', headers: page },
    ...[query, {}, []].map((body) => json('/osv/v1/query', body)),
    ...[{ queries: [query] }, {}, { queries: 1 }].map((body) => json('/osv/v1/querybatch', body)),
    { ...json('/osv/v1/query', query), headers: { 'content-encoding': 'gzip' } },
    ...[{ bomFormat: 'CycloneDX', specVersion: '1.6' }, {}].map((body) => json('/-/match', body)),
    { ...json('/-/match', {}), headers: { 'content-encoding': 'gzip' } },
    json('/-/webhooks', { type: 'x' }),
    { path: '/-/webhooks', method: 'OPTIONS' },
    { path: '/-/events', method: 'HEAD' },
    { path: '/-/events?source=none', method: 'HEAD' },
    { path: '/-/events', method: 'HEAD', headers: bearer('wrong') },
  ]
}

/** The digests of the first tags, of which some have VEX. */
async function digestsListed(): Promise<string[]> {
  const answer = await mirror.get('/v1/tags/?limit=4')
  const { data } = (await answer.json()) as { data: { digest: string }[] }
  return data.map(({ digest }) => digest)
}

const VARIANTS: readonly Omit<Asked, 'path'>[] = [
  { open: true },
  { method: 'HEAD' },
  { headers: { 'if-match': '"none"' } },
  { headers: { range: 'bytes=0-0' } },
  { headers: { range: 'bytes=99999999-' } },
  { headers: { 'accept-encoding': 'identity' } },
]

/** In the fast suite every third variant for an operation, so that each is asked of a third of the operations. */
const variantsFor = (operation: number): typeof VARIANTS => VARIANTS.filter((_, at) => LONG || at % 3 === operation % 3)

/** The first and last requests of a row in the fast suite: those for what the mirror has, and for what it lacks. */
const someOf = (paths: readonly string[]): readonly string[] =>
  LONG || paths.length < 6 ? paths : [...paths.slice(0, 4), ...paths.slice(-2)]

longTest('the answers of a mirror have the status, media type and headers of the API document', async () => {
  const known = allKnown(mirror)
  const listed = (await mirror.get('/external/osv/all.json')).headers.get('x-mirror-snapshot') ?? ''
  const asked: Asked[] = [
    ...READING.flatMap(({ requests }) => someOf(requests(known))).map((path) => ({ path })),
    ...ownRequests(known.osv[0] ?? '', listed, await digestsListed()),
  ]
  const faults: string[] = []
  const answered = new Set<string>()
  const ask = async ({ path, method = 'GET', headers = {}, body, open }: Asked) => {
    const init = { method, headers, ...(body !== undefined && { body }) }
    const answer = await (open === true ? fetch(mirror.url + path, init) : mirror.get(path, init))
    const { status } = answer
    faults.push(...violations(contract, { method, path, status, headers: answer.headers }))
    return { status, etag: answer.headers.get('etag'), text: await answer.text() }
  }
  for (const one of asked) {
    const { status, etag, text } = await ask(one)
    const name = `${one.method ?? 'GET'} ${templateOf(contract, one.path) ?? ''}`
    for (const [link] of text.matchAll(/\/-\/documents\/\w[^"]+/g))
      if (!answered.has('GET /-/documents/{digest}')) asked.push({ path: link }, { path: `${link}x` })
    if (status >= 300 || answered.has(name)) continue
    answered.add(name)
    if (one.method !== undefined) continue
    for (const variant of variantsFor(answered.size)) await ask({ ...variant, path: one.path })
    if (etag !== null) await ask({ path: one.path, headers: { 'if-none-match': etag } })
  }
  expect(faults).toEqual([])
  const operations = Object.entries(contract.paths).flatMap(([path, one]) =>
    Object.keys(one).map((method) => `${method.toUpperCase()} ${path}`),
  )
  const elsewhere = [
    'GET /external/cve_feed',
    'GET /-/sbom', // of a built program: test/server/sbom.test.ts
    'GET /-/events',
    'POST /-/webhooks',
    'GET /v0/users',
    'GET /v2-beta/users',
  ]
  const left = operations.filter((one) => !answered.has(one) && !elsewhere.includes(one))
  expect(left).toEqual([])
})

/** Follows the first link to a page from another page. */
async function follow(from: string, to: string): Promise<string> {
  const { status, html } = await pageOf(from)
  expect([from, status]).toEqual([from, 200])
  const [, href = ''] = new RegExp(`href="(/-/ui/${to}\\?[^"]*)"`).exec(html) ?? []
  return href.replaceAll('&amp;', '&')
}

async function pageOf(path: string): Promise<{ status: number; html: string }> {
  const answer = await mirror.get(path, { headers: { accept: 'text/html' } })
  return { status: answer.status, html: await answer.text() }
}

test('pages lead from images to a tag with its SBOM, VEX, provenance and AVR', async () => {
  const tag = await follow('/-/ui/images', 'tag')
  const { html } = await pageOf(tag)
  for (const text of ['SBOM', 'pkg:deb/debian/', 'VEX statements', 'builder', 'Materials']) expect(html).toContain(text)
  expect(html).toMatch(/href="\/-\/ui\/search\?q=pkg%3Adeb/)
  const [, purl = ''] = /pkg:deb\/debian\/([\w-]+)@/.exec(html) ?? []
  const fitting = (await pageOf(`${tag}&q=${purl.toUpperCase()}`)).html
  expect(fitting).toMatch(/\d+ of \d+ contain/)
  expect((await pageOf(`${tag}&q=none-of-these`)).html).toContain('No component fits')
  const [, download = ''] = /href="(\/-\/documents\/[^"]+)"/.exec(html) ?? []
  expect((await fetch(mirror.url + download.replaceAll('&amp;', '&'))).status).toBe(200)
  expect((await pageOf(await follow(tag, 'avr'))).html).toContain('SBOM')
  expect([(await pageOf('/-/ui/tag?id=none')).status, (await pageOf('/-/ui/avr?id=none')).status]).toEqual([404, 404])
  expect((await fetch(mirror.url + tag, { headers: { accept: 'text/html' } })).status).toBe(401)
})

test('a search finds a tag by its name, its digest and a reference to it', async () => {
  const tag = await follow('/-/ui/images', 'tag')
  const { html } = await pageOf(tag)
  const [, name = ''] = /<h1><bdi>([^<]*)</.exec(html) ?? []
  const [digest = ''] = /sha256:[0-9a-f]{64}/.exec(html) ?? []
  for (const q of [digest, name, name.split(':')[1] ?? '', `cr.example.com/${name}`, `${name}@${digest}`])
    expect([q, await follow(`/-/ui/search?q=${q}`, 'tag')]).toEqual([q, tag])
})

/** Names of the parameters that the document has for a path. */
function parametersOf(path: string, method = 'get'): (string | undefined)[] {
  const { components } = contract as unknown as { components: { parameters: Record<string, { name: string }> } }
  const { parameters = [] } = (contract.paths[path]?.[method] ?? {}) as {
    parameters?: { name?: string; $ref?: string }[]
  }
  return parameters.map(({ name, $ref = '' }) => name ?? components.parameters[$ref.split('/').at(-1) ?? '']?.name)
}

longTest('links and forms of pages have only parameters that the page they lead to takes', async () => {
  const waiting = ['/-/ui/', '/-/ui/search?q=CVE']
  const seen = new Set<string>()
  for (const path of waiting) {
    const [page = '', search = ''] = path.split('?')
    if (seen.has(page)) continue
    seen.add(page)
    const query = [...new URLSearchParams(search).keys()]
    const { parameters = {} } = PAGES.find(({ path: one }) => UI + one === page) ?? {}
    expect([page, query.filter((one) => !(one in parameters))]).toEqual([page, []])
    const { html } = await pageOf(path)
    for (const [, href = ''] of html.matchAll(/href="(\/-\/ui\/[^".]*)"/g)) waiting.push(href.replaceAll('&amp;', '&'))
    for (const [, action = '', fields = ''] of html.matchAll(/<form[^>]*action="([^"]*)"(.*?)<\/form>/gs))
      for (const [, name = ''] of fields.matchAll(/name="([^"]*)"/g)) waiting.push(`${action}?${name}=`)
  }
  expect(seen.size).toBeGreaterThan(12)
})

test("the mirror's own paths refuse a parameter that they do not take, and one that is given twice", async () => {
  const unchecked = ['/-/health', '/-/ready', '/-/leader', '/-/documents/{digest}', '/-/webhooks']
  const own = Object.entries(contract.paths).filter(([path]) => path.startsWith('/-/') && !unchecked.includes(path))
  expect(own.length).toBeGreaterThan(10)
  for (const [path, operations] of own)
    for (const method of Object.keys(operations)) {
      const ask = async (query: string) => {
        const answer = await mirror.get(`${path.replace('{id}', 'x')}?${query}`, { method: method.toUpperCase() })
        return [path, answer.status, await answer.text()]
      }
      const known = parametersOf(path, method).filter(
        (name = '') => /^[a-z_]+$/.test(name) && !path.includes(`{${name}}`),
      )
      expect(await ask('sinc=x')).toEqual([path, 400, expect.stringMatching(/sinc/)])
      for (const name of known)
        expect(await ask(`${name ?? ''}=1&${name ?? ''}=1`)).toEqual([
          path,
          400,
          expect.stringContaining('given 2 times'),
        ])
    }
  const { message } = (await (await mirror.get('/-/changes?sinc=7d')).json()) as { message: string }
  expect(message).toBe(
    'unknown query parameter "sinc": /-/changes takes since, source, detail, ecosystem, purl, tag, limit, after; ' +
      'leave it out, or set server.strictParameters to false to have it ignored',
  )
  expect((await mirror.get('/-/health?at=1')).status).toBe(200)
  expect((await mirror.get('/-/records/x?foo')).status).toBe(400)
  expect((await mirror.get('/-/tags/find%69ngs?tga=x')).status).toBe(400)
  expect((await mirror.get('/%2d/status?x=1')).status).toBe(400)
  const refused = await fetch(`${mirror.url}/-/status?x=1`, { method: 'PUT' })
  expect(refused.status).toBe(405)
})

test('the reference page shows every operation of the API document, and is revalidated by its tag', async () => {
  const answer = await fetch(`${mirror.url}/-/docs`)
  const html = await answer.text()
  expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8')
  expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'")
  expect(html).not.toMatch(/<script|undefined|\[object|\$ref/)
  const missing = Object.entries(contract.paths).flatMap(([path, operations]) =>
    Object.entries(operations).flatMap(([method, { operationId, responses }]) => {
      const [, shown = ''] = html.split(`<article class="operation" id="${operationId}">`)
      const [own = ''] = shown.split('</article>')
      const wanted = [`${method.toUpperCase()} ${path}<`, ...parametersOf(path, method), ...Object.keys(responses)]
      return wanted.filter((text) => !own.includes(`>${text ?? ''}`)).map((text) => `${path}: ${text ?? ''}`)
    }),
  )
  expect(missing).toEqual([])
  const places = Object.entries(contract.paths).flatMap(([path, operations]) =>
    Object.values(operations).map(({ operationId, tags }) => ({
      path,
      tag: tags[0],
      at: html.indexOf(`id="${operationId}"`),
    })),
  )
  for (const part of Map.groupBy(places, ({ tag }) => tag).values()) {
    const shown = part.toSorted((one, other) => one.at - other.at).map(({ path }) => path)
    expect(shown).toEqual(shown.toSorted())
  }
  const headers = { 'if-none-match': answer.headers.get('etag') ?? '' }
  expect((await fetch(`${mirror.url}/-/docs`, { headers })).status).toBe(304)
  expect((await pageOf('/-/ui/')).html).toContain('href="/-/docs"')
})

longTest('the status of a mirror of everything has what is described of it, and nothing else', async () => {
  const status = (await (await mirror.get('/-/status')).json()) as Record<string, unknown>
  expect(Object.keys(status)).toEqual(expect.arrayContaining(['webhooks', 'views', 'findings']))
  expect(faultsBy(STATUS, status)).toEqual([])
  const faultsIn = createBodyCheck(contract)
  expect(faultsIn('Status', status)).toEqual([])
  expect(faultsIn('Readiness', await (await mirror.get('/-/ready')).json())).toEqual([])
  const [id = ''] = allKnown(mirror).osv
  expect(faultsBy(RECORD_DATES, await (await mirror.get(`/-/records/${id}`)).json())).toEqual([])
})

test('the API document needs no key, has an ETag, and names nothing of the catalog', async () => {
  const answer = await fetch(`${mirror.url}/-/openapi.json`)
  const text = await answer.text()
  expect(answer.headers.get('content-encoding')).toBe('gzip')
  expect(Number(answer.headers.get('content-length'))).toBeLessThan(15_000)
  const headers = { 'if-none-match': answer.headers.get('etag') ?? '' }
  expect((await fetch(`${mirror.url}/-/openapi.json`, { headers })).status).toBe(304)
  const { tags, images, repos, packages, avrs } = allKnown(mirror)
  for (const secret of [...tags, ...images, ...repos, ...packages, ...avrs]) expect(text).not.toContain(`${secret}"`)
  const refused = await fetch(`${mirror.url}/-/openapi.json`, { method: 'POST', body: '{}' })
  expect({ status: refused.status, allow: refused.headers.get('allow') }).toEqual({
    status: 405,
    allow: 'GET, HEAD',
  })
})

test('a record names the mirrored tags with it to clients with a key alone', async () => {
  await expect.poll(async () => (await mirror.get('/-/tags/findings')).status).toBe(200)
  type Answer = { listed: { id: string }[] | null; count: number }
  const ask = async (id: string) => ((await (await mirror.get(`/-/records/${id}`)).json()) as { tags: Answer }).tags
  let found = null as Answer | null
  let record = ''
  for (const id of allKnown(mirror).osv) {
    const answer = await ask(id)
    if (answer.count === 0) continue
    found = answer
    record = id
    break
  }
  const [tag] = found?.listed ?? []
  expect(tag).toMatchObject({
    id: expect.any(String) as string,
    package: expect.any(String) as string,
    version: expect.any(String) as string,
  })
  const open = await fetch(`${mirror.url}/-/records/${record}`)
  expect(await open.json()).toMatchObject({
    tags: { listed: null, count: null, notShown: expect.stringContaining('local key') as string },
  })
  expect((await fetch(`${mirror.url}/-/records/${record}`, { headers: bearer('wrong') })).status).toBe(401)
  const title = 'Mirrored tags with it'
  const { html } = await pageOf(`${UI}record?id=${record}`)
  expect([html.includes(title), html.includes(`tag-findings?id=${tag?.id ?? ''}`)]).toEqual([true, true])
  const openPage = await fetch(`${mirror.url}${UI}record?id=${record}`, { headers: { accept: 'text/html' } })
  expect([openPage.status, (await openPage.text()).includes(title)]).toEqual([200, false])
})

test('a position in the changes of tags that is of another log, or beyond its end, is not complete', async () => {
  const ask = async (query: string) => {
    const answer = await mirror.get(`/-/tags/changes${query}`)
    return [answer.status, (await answer.json()) as Record<string, unknown>] as const
  }
  await expect.poll(async () => (await ask(''))[0]).toBe(200)
  const [, all] = await ask('')
  const position = String(all['position'])
  expect(all).toMatchObject({ complete: true, next: null })
  const [log = '', seq = ''] = position.split('-')
  expect((await ask(`?after=${position}`))[1]).toMatchObject({ complete: true, position })
  const other = log === '00000000' ? '11111111' : '00000000'
  for (const after of [`${other}-${seq}`, `${log}-${Number(seq) + 1}`])
    expect((await ask(`?after=${after}`))[1]).toMatchObject({ complete: false, position })
  for (const after of ['0', seq, `${log}-`, `${log}-x`, `${position}&since=7d`])
    expect((await ask(`?after=${after}`))[0]).toBe(400)
})
