import { gzipSync } from 'node:zlib'
import { expect } from 'vitest'
import { longTest, test } from '../../support/tables.ts'
import { readMirroredSboms, sbomDigestsOf } from '../../../src/documents/sboms/mirrored.ts'
import { openReader } from '../../../src/store/database/open.ts'
import { createReads } from '../../../src/store/reads.ts'
import { type PlainBench, type Said, type Saying, plainBench } from '../../support/catalog/plain-service.ts'
import { type Origin, createOrigin } from '../../support/origin.ts'
import { countCatalog } from '../../support/stored-counts.ts'

const STRANGER = 'http://127.0.0.1:9/'
const SBOM = {
  bomFormat: 'CycloneDX',
  specVersion: '1.5',
  externalReferences: [{ type: 'website', url: `${STRANGER}within-a-document` }],
}
const SPDX = { spdxVersion: 'SPDX-2.3', documentNamespace: `${STRANGER}namespace` }
const VEX = { '@context': 'https://openvex.dev/ns/v0.2.0', '@id': `${STRANGER}vex`, statements: [] }
const CSAF = { document: { category: 'csaf_vex', publisher: { namespace: STRANGER } } }
const STATEMENT = { _type: 'https://in-toto.io/Statement/v1', predicateType: `${STRANGER}type` }
const PATCH = '--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n'

/** A store of documents that takes no credential; its documents are at `/KIND/…`. */
async function createStore(): Promise<Origin> {
  const store = await createOrigin((request, response) => {
    const [, kind = ''] = (request.url ?? '').split('/')
    const found = { sbom: SBOM, vex: VEX, provenance: STATEMENT }[kind]
    if (request.headers.authorization !== undefined) response.writeHead(400).end()
    else if (found === undefined) response.writeHead(404).end()
    else response.end(JSON.stringify(found))
  })
  return store
}

type Form = readonly [kind: 'sbom' | 'vex' | 'provenance', said: Said]

/** A mirror of a service with one tag for each form, whose artifact of the kind has it; the names are the ids of the tags. */
async function benchOf(forms: Readonly<Record<string, Form>>, env = {}): Promise<PlainBench> {
  const ids = Object.keys(forms)
  const paths: Record<string, Saying> = {
    '/v1/tags/': () => ({ body: { data: ids.map((id) => ({ id })), cursor: { after: null } } }),
  }
  for (const [id, [kind, said]] of Object.entries(forms)) {
    paths[`/v1/tags/${id}`] = () => ({ body: { id } })
    paths[`/v1/tags/${id}/${kind}`] = () => said
  }
  return plainBench(paths, { LIMIT_UPSTREAM_RETRIES: '0', ...env })
}

function bytesOf({ body }: Said): Buffer {
  if (Buffer.isBuffer(body)) return body
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
}

longTest(
  'a document in an answer is found wherever it stands, served as it came, and nothing in it is requested',
  async () => {
    const linesOf = (...values: unknown[]): string => values.map((one) => JSON.stringify(one)).join('\n')
    const forms: Record<string, Form> = {
      'json-api': ['sbom', { body: { data: { id: '1', attributes: { document: SBOM } } } }],
      deep: ['sbom', { body: { a: { b: { c: { d: { e: { f: { g: { h: { i: { j: SPDX } } } } } } } } } } }],
      list: ['sbom', { body: [SBOM, SPDX] }],
      'list-within': ['sbom', { body: { sboms: [{ sbom: SBOM }, { sbom: SPDX }] } }],
      lines: ['sbom', { body: linesOf(SBOM, SPDX) }],
      'later-line': ['vex', { body: linesOf({ total: 2 }, VEX) }],
      text: ['sbom', { body: { content: JSON.stringify(SBOM), format: 'cyclonedx' } }],
      base64: ['sbom', { body: { content: btoa(JSON.stringify(SBOM)), encoding: 'base64' } }],
      gzip: ['sbom', { body: gzipSync(JSON.stringify(SBOM)) }],
      vex: ['vex', { body: { result: { vex: VEX, url: `${STRANGER}beside` } } }],
      csaf: ['vex', { body: { data: CSAF } }],
      provenance: ['provenance', { body: { data: [{ attributes: { statement: STATEMENT } }] } }],
      bundle: ['provenance', { body: { attestations: [{ bundle: { dsseEnvelope: {} }, url: STRANGER }] } }],
    }
    const made = await benchOf(forms)
    const report = await made.run('catalog')
    expect([report.state, report.facts['lackingIds']]).toEqual(['complete', undefined])
    for (const [id, [kind, said]] of Object.entries(forms)) {
      const answer = await made.ask(`/v1/tags/${id}/${kind}`)
      const body = Buffer.from(await answer.arrayBuffer())
      expect([id, answer.status, body.toString('latin1')]).toEqual([id, 200, bytesOf(said).toString('latin1')])
    }
    const { documents } = countCatalog(made.dir)
    expect(documents).toBe(9) // each once, whatever is around it
    expect(await made.run('catalog')).toMatchObject({ state: 'complete', facts: { fetched: 0 } })
    const db = openReader(made.dir)
    if (db === null) throw new Error('no database')
    const { catalog } = createReads(db)
    for (const id of ['json-api', 'list', 'text', 'base64', 'gzip']) {
      const [digest = ''] = sbomDigestsOf({ catalog }, id)
      expect([id, readMirroredSboms({ catalog }, digest, id)]).toMatchObject([id, [{ components: [] }]])
    }
    db.close()
  },
)

longTest(
  'a document of another kind is named, and nothing in it is requested, not even at the service itself',
  async () => {
    const store = await createOrigin((_request, response) => response.end(JSON.stringify(SBOM)))
    const url = `${store.url}/sbom`
    const many = Array.from({ length: 300 }, (_, at) => ({ name: `n${at}`, version: '1' }))
    const others: Record<string, unknown> = {
      openvex: { '@context': url, '@id': url, author: 'a', statements: [{ url }] },
      csaf: {
        document: { category: 'csaf_vex', publisher: { namespace: url }, references: [{ url }] },
      },
      predicate: { subject: [], predicate: { url }, predicateType: url },
      syft: { artifacts: [{ licenses: [{ url }] }], descriptor: { name: 'syft' }, schema: { url } },
      nameless: { specVersion: '1.5', components: [{ url }], metadata: { tools: [{ url }] } },
      osv: { id: 'CVE-2026-1', modified: '2026-01-01', affected: [], references: [{ url }] },
      rolie: {
        feed: { id: 'f', link: [{ rel: 'self', href: url }], entry: [{ content: { src: url } }] },
      },
      sarif: { version: '2.1.0', runs: [{ tool: { url } }] },
      unknown: { entries: many, url },
      wrapped: { data: { '@context': url, '@id': url, statements: [{ url }] } },
      own: { specVersion: '1.5', components: [{ url: '/files/sbom' }] },
      error: { error: { code: 'E1', doc_url: url } },
    }
    const forms = Object.fromEntries(
      Object.entries(others).map(([id, body]): [string, Form] => [id, ['sbom', { body }]]),
    )
    forms['spdx'] = ['vex', { body: { ...SPDX, files: [{ url }] } }]
    forms['feed'] = ['vex', { body: others['rolie'] }]
    const made = await benchOf(forms)
    made.say({ '/files/sbom': () => ({ body: SBOM }) })
    const report = await made.run('catalog')
    const lacking = Object.keys(forms).length
    expect(report).toMatchObject({ state: 'partial', facts: { lacking } })
    expect([store.requests.length, made.asked('/files/sbom')]).toEqual([0, []])
    const told = (report.facts['lackingIds'] as string[]).filter((one) => one.includes('another kind of document'))
    expect(told.length).toBeGreaterThan(5)
    expect((await made.ask('/v1/tags/openvex/sbom')).status).toBe(503)
    made.say({ '/v1/tags/openvex/sbom': () => ({ body: SBOM }) })
    expect(await made.run('catalog')).toMatchObject({ facts: { lacking: lacking - 1 } })
    expect((await made.ask('/v1/tags/openvex/sbom')).status).toBe(200)
  },
)

test('the link that gives a document counts; links that give none, and links to the service, stay as they are', async () => {
  const { url: store } = await createStore()
  const docs = await createOrigin((_request, response) => response.writeHead(404).end())
  const forms = (root: string): Record<string, Form> => ({
    documentation: ['sbom', { body: { documentation: `${docs.url}/sbom`, url: `${store}/sbom/1` } }],
    closed: ['sbom', { body: { help: 'http://127.0.0.1:9/', url: `${store}/sbom/2` } }],
    image: ['sbom', { body: { image: 'oci://registry/x:1', url: `${store}/sbom/3` } }],
    hal: [
      'vex',
      {
        body: {
          _links: { self: { href: `${root}/v1/tags/hal/vex` }, tag: { href: `${root}/v1/tags/hal` } },
          download: { href: `${store}/vex/1` },
        },
      },
    ],
    wrapped: ['vex', { body: { document: { url: `${store}/vex/2` } } }],
    attestations: ['provenance', { body: { attestations: [{ url: `${store}/provenance/1` }] } }],
  })
  const made = await benchOf({})
  const said = forms(made.origin.url)
  const ids = Object.keys(said)
  made.say({
    '/v1/tags/': () => ({ body: { data: ids.map((id) => ({ id })), cursor: { after: null } } }),
    ...Object.fromEntries(ids.map((id) => [`/v1/tags/${id}`, () => ({ body: { id } })])),
    ...Object.fromEntries(Object.entries(said).map(([id, [kind, one]]) => [`/v1/tags/${id}/${kind}`, () => one])),
  })
  const report = await made.run('catalog')
  expect([report.state, report.facts['lackingIds']]).toEqual(['complete', undefined])
  expect(report.facts['linksLeft']).toBe(3)
  expect(String(report.facts['linksLeftIds'])).toContain('/v1/tags/documentation/sbom: ')
  for (const [id, [kind, one]] of Object.entries(said)) {
    const text = await (await made.ask(`/v1/tags/${id}/${kind}`)).text()
    const [link = ''] = /http[^"]*\/-\/documents\/[^"]*/.exec(text) ?? []
    expect([id, text.replace(link, '')]).toEqual([
      id,
      bytesOf(one)
        .toString()
        .replace(new RegExp(`${store}/[a-z]+/\\d`), ''),
    ])
    expect([id, (await fetch(link)).status]).toEqual([id, 200])
  }
  // The service's own paths were asked as paths of the contract alone.
  expect(made.asked('/v1/tags/hal/vex')).toHaveLength(1)
})

test('a host that gives one document and a page in place of another is asked again; what it does not have stays a link', async () => {
  let page: Said = { body: '<html>' }
  const store = await createOrigin((request, response) => {
    if (request.url === '/sbom') response.end(JSON.stringify(SBOM))
    else response.writeHead(page.status ?? 200).end(page.body)
  })
  const body = { url: `${store.url}/sbom`, second: `${store.url}/second` }
  const made = await benchOf({ two: ['sbom', { body }] })
  expect(await made.run('catalog')).toMatchObject({ state: 'partial', facts: { lacking: 1 } })
  page = { status: 404 }
  expect(await made.run('catalog')).toMatchObject({ state: 'complete', facts: { linksLeft: 1 } })
  expect(await (await made.ask('/v1/tags/two/sbom')).json()).toMatchObject({ second: body.second })
})

test('a link to another path of the service is asked with the credential, as a relative one and a Location are', async () => {
  const made = await benchOf({})
  const { url } = made.origin
  const said: Record<string, Said> = {
    absolute: { body: { url: `${url}/files/sbom?sig=1` } },
    relative: { body: { url: '/files/sbom?sig=2' } },
    dotted: { body: { links: { download: '../../../files/sbom?sig=3' } } },
    bare: { body: JSON.stringify('/files/sbom?sig=4') },
    location: { body: { status: 'ready' }, headers: { location: '/files/sbom?sig=5' } },
  }
  const ids = Object.keys(said)
  made.say({
    '/v1/tags/': () => ({ body: { data: ids.map((id) => ({ id })), cursor: { after: null } } }),
    ...Object.fromEntries(ids.map((id) => [`/v1/tags/${id}`, () => ({ body: { id } })])),
    ...Object.fromEntries(Object.entries(said).map(([id, one]) => [`/v1/tags/${id}/sbom`, () => one])),
    '/files/sbom': (_url, { headers }) => (headers.authorization === undefined ? { status: 401 } : { body: SBOM }),
  })
  const report = await made.run('catalog')
  expect([report.state, report.facts['lackingIds']]).toEqual(['complete', undefined])
  expect(made.asked('/files/sbom')).toHaveLength(ids.length)
  for (const id of ids) {
    const text = await (await made.ask(`/v1/tags/${id}/sbom`)).text()
    const [link] = /http[^"]*\/-\/documents\/[^"]*/.exec(text) ?? []
    const document = link === undefined ? text : await (await fetch(link)).text()
    expect([id, document]).toEqual([id, JSON.stringify(SBOM)])
  }
})

longTest(
  'an answer with neither a document nor a link is not there yet: it is named, answered with 503, and asked again',
  async () => {
    const bodies: Record<string, unknown> = {
      processing: { status: 'processing' },
      nothing: {},
      null: null,
      'null-url': { url: null },
      'empty-url': { sbom_file_url: '' },
      spaces: { url: 'http://127.0.0.1:9/an sbom.json' },
      network: { url: '//127.0.0.1:9/sbom.json' },
      self: { _links: { self: { href: '/v1/tags/self/sbom' } } },
      word: JSON.stringify('processing'),
    }
    const forms = Object.fromEntries(
      Object.entries(bodies).map(([id, body]): [string, Form] => [id, ['sbom', { body }]]),
    )
    const made = await benchOf(forms)
    const ids = Object.keys(forms)
    for (const run of [1, 2]) {
      const report = await made.run('catalog')
      expect(report).toMatchObject({ state: 'partial', facts: { lacking: ids.length } })
      expect(String(report.facts['lackingIds'])).toContain('not there yet')
      for (const id of ids) expect(made.asked(`/v1/tags/${id}/sbom`)).toHaveLength(run)
    }
    for (const id of ids) {
      const answer = await made.ask(`/v1/tags/${id}/sbom`)
      expect([id, answer.status, await answer.text()]).toEqual([id, 503, expect.stringContaining('not there yet')])
    }
    made.say(Object.fromEntries(ids.map((id) => [`/v1/tags/${id}/sbom`, () => ({ body: SBOM })])))
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    // What has been mirrored stays when the service says again that it is not there.
    made.say({
      '/v1/tags/': () => ({ body: { data: ids.map((id) => ({ id, n: 2 })), cursor: { after: null } } }),
      ...Object.fromEntries(ids.map((id) => [`/v1/tags/${id}/sbom`, () => ({ body: bodies[id] })])),
    })
    expect(await made.run('catalog')).toMatchObject({ state: 'partial' })
    for (const id of ids) expect((await made.ask(`/v1/tags/${id}/sbom`)).status).toBe(200)
  },
)

test('patches are read as texts in an answer, behind links, and as a list without any', async () => {
  const store = await createOrigin((_request, response) => response.end(PATCH))
  const path = (id: string): string => `/v1/packages/${id}/artifacts/patches`
  const said: Record<string, Said> = {
    texts: { body: { patches: [{ content: PATCH, advisory: `${STRANGER}advisory` }] } },
    links: { body: { patches: [{ href: `${store.url}/1.patch` }, { href: `${STRANGER}2.patch` }] } },
    none: { body: { patches: [] } },
    making: { body: { status: 'processing' } },
  }
  const ids = Object.keys(said)
  const made = await plainBench(
    {
      '/v1/packages/': () => ({ body: { data: ids.map((id) => ({ id })), cursor: { after: null } } }),
      ...Object.fromEntries(ids.map((id) => [`/v1/packages/${id}/`, () => ({ body: { id } })])),
      ...Object.fromEntries(Object.entries(said).map(([id, one]) => [path(id), () => one])),
    },
    { LIMIT_UPSTREAM_RETRIES: '0' },
  )
  const report = await made.run('catalog')
  expect(report).toMatchObject({ state: 'partial', facts: { lacking: 1, linksLeft: 1 } })
  expect(await (await made.ask(path('texts'))).text()).toBe(bytesOf(said['texts'] ?? {}).toString())
  expect(await (await made.ask(path('none'))).text()).toBe('{"patches":[]}')
  expect((await made.ask(path('making'))).status).toBe(503)
  const { patches } = (await (await made.ask(path('links'))).json()) as { patches: { href: string }[] }
  expect(await (await fetch(patches[0]?.href ?? '')).text()).toBe(PATCH)
  expect(patches[1]?.href).toBe(`${STRANGER}2.patch`)
})

test('lists, details and answers that are JSON have the media type that the service gave them, until it gives another', async () => {
  const { url: store } = await createStore()
  const typed = (body: unknown, type: string): Said => ({ body, headers: { 'content-type': type } })
  const made = await benchOf({
    links: ['sbom', typed({ url: `${store}/sbom/1` }, 'application/hal+json')],
    inside: ['vex', typed({ data: VEX }, 'application/vnd.api+json; charset=utf-8')],
    odd: ['vex', typed({ data: VEX }, 'text/html')],
  })
  const say = (type: string): void => made.say({ '/v1/tags/links': () => typed({ id: 'links' }, type) })
  const typeAt = async (path: string): Promise<string | null> => (await made.ask(path)).headers.get('content-type')
  say('application/vnd.api+json')
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  expect(await typeAt('/v1/tags/links/sbom')).toBe('application/hal+json')
  expect(await typeAt('/v1/tags/inside/vex')).toBe('application/vnd.api+json; charset=utf-8')
  expect(await typeAt('/v1/tags/odd/vex')).toBe('application/json')
  expect(await typeAt('/v1/tags/inside')).toBe('application/json')
  expect(await typeAt('/v1/tags/links')).toBe('application/vnd.api+json')
  expect(await typeAt('/v1/tags/')).toBe('application/json')
  say('application/problem+json')
  const data = [{ id: 'links', n: 2 }, { id: 'inside' }, { id: 'odd' }]
  made.say({ '/v1/tags/': () => typed({ data, cursor: { after: null } }, 'application/hal+json') })
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  expect(await typeAt('/v1/tags/links')).toBe('application/problem+json')
  expect(await typeAt('/v1/tags/')).toBe('application/hal+json')
})
