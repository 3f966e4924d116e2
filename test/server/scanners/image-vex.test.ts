import { join } from 'node:path'
import { expect } from 'vitest'
import { longTest, test } from '../../support/tables.ts'
import { sha256Hex } from '../../../src/base/digest.ts'
import { signedState } from '../../../src/store/catalog/signatures.ts'
import { Database } from '../../../src/store/database/sqlite.ts'
import { commandHost } from '../../support/hosted.ts'
import { catalogBench } from '../../support/catalog/mirror.ts'
import { serveFolder } from '../../features/bundles/air-gap.ts'

const run = commandHost()
const digestOf = (digit: string): string => `sha256:${digit.repeat(64)}`
const [D, INDEX, ARM] = ['1', '2', '3'].map(digestOf) as [string, string, string]
const ZLIB = 'pkg:deb/debian/zlib1g@1.2'

interface Said {
  readonly cve: string
  readonly products: readonly object[]
  readonly status: string
  readonly at?: string
}

function openVex(...statements: readonly Said[]): string {
  return JSON.stringify({
    '@context': 'https://openvex.dev/ns/v0.2.0',
    timestamp: '2026-05-01T00:00:00Z',
    statements: statements.map(({ cve, products, status, at }) => ({
      vulnerability: { name: cve },
      products,
      status,
      justification: 'component_not_present',
      ...(at !== undefined && { timestamp: at }),
    })),
  })
}

interface Statement {
  readonly vulnerability: { readonly name: string }
  readonly status: string
  readonly products: readonly {
    readonly '@id': string
    readonly subcomponents?: readonly { readonly '@id': string }[]
  }[]
}

/** A mirror whose first tag has a digest, and what answers for it. */
async function openImage(item: Record<string, unknown> = { digest: D }) {
  const bench = await catalogBench({ images: 2, tags: 4, avrs: 0, packages: 1, tickets: 1 })
  const { service } = bench.sandbox
  const withVex = service.ids('tags').filter((id) => service.documents('tag', id, 'vex').length > 0)
  const [tag = '', other = ''] = withVex
  for (const id of [tag, other]) service.rotateArtifact('tag', id, 'vex')
  service.change('tags', tag, item)
  const publish = async (documents: readonly (string | null)[]) => {
    for (const [at, content] of documents.entries())
      if (content !== null) service.writeArtifact('tag', [tag, other][at] ?? '', 'vex', content)
    await bench.run('catalog')
  }
  return { bench, tag, publish, serve: () => serveFolder(bench.dir, bench.config) }
}

const words = (statements: readonly Statement[]): string[] =>
  statements.map(({ vulnerability, status, products }) => {
    const parts = products[0]?.subcomponents?.map((one) => one['@id']).join() ?? 'all'
    return `${vulnerability.name} ${status} ${parts}`
  })

longTest('the VEX of an image is one document of what counts, and names the image alone', async () => {
  const { bench, tag, publish, serve } = await openImage()
  const part = { '@id': `pkg:oci/any@${D}`, subcomponents: [{ '@id': ZLIB }] }
  const component = { '@id': ZLIB }
  const elsewhere = { '@id': `pkg:oci/any@${ARM}` }
  await publish([
    openVex(
      { cve: 'CVE-1', products: [component], status: 'not_affected' },
      { cve: 'CVE-1', products: [part], status: 'affected', at: '2026-04-01T00:00:00Z' },
      { cve: 'CVE-2', products: [component], status: 'not_affected' },
      { cve: 'CVE-2', products: [part], status: 'under_investigation' }, // as old
      { cve: 'CVE-3', products: [elsewhere], status: 'fixed' },
    ),
    openVex(
      { cve: 'CVE-4', products: [part], status: 'fixed' },
      { cve: 'CVE-5', products: [component], status: 'fixed' },
      { cve: 'CVE-6', products: [{ '@id': `pkg:oci/x?digest=${D}` }], status: 'fixed' },
    ),
  ])
  const ask = await serve()
  const answer = await ask(`/-/vex/${D}`)
  expect(answer.status).toBe(200)
  const { statements } = JSON.parse(answer.body.toString()) as { statements: Statement[] }
  expect(words(statements)).toEqual([
    `CVE-1 not_affected ${ZLIB}`,
    `CVE-2 under_investigation ${ZLIB}`,
    `CVE-4 fixed ${ZLIB}`,
    'CVE-6 fixed all',
  ])
  const ids = new Set(statements.flatMap(({ products }) => products.map((one) => one['@id'])))
  for (const id of ids) expect(decodeURIComponent(id)).toContain(D.slice('sha256:'.length))
  expect(ids).toContain(D.slice('sha256:'.length))
  const snapshot = bench.store.snapshots.readSnapshot('catalog')?.id
  expect(answer.headers['x-mirror-snapshot']).toBe(snapshot)
  expect(answer.headers).not.toHaveProperty('x-mirror-incomplete')

  for (const form of [D.slice('sha256:'.length), encodeURIComponent(D), D.toUpperCase()])
    expect((await ask(`/-/vex/${form}`)).body.equals(answer.body)).toBe(true)
  const named = await ask(`/-/vex/${D}?name=registry.corp.example:5000/team/py:1.2,plain`)
  expect(named.body.toString()).toContain(
    `"pkg:oci/py@${encodeURIComponent(D)}?repository_url=registry.corp.example%3A5000%2Fteam%2Fpy"`,
  )
  expect(named.body.toString()).toContain(`"pkg:oci/plain@${encodeURIComponent(D)}"`)

  const env = { PATCHMIRROR_DATA_DIR: bench.dir }
  const alone = await run(['vex', D, '--components'], env, bench.dir)
  const { statements: wide } = JSON.parse(alone.out) as { statements: Statement[] }
  expect(words(wide)).toEqual(words(statements))
  expect(wide.map(({ products }) => products.at(-1)?.['@id'] === ZLIB)).toEqual([true, true, true, false])
  for (const image of [`x/y@${D}`, tag]) {
    const { code, out } = await run(['vex', image], env, bench.dir)
    expect([code, JSON.parse(out)]).toEqual([0, JSON.parse(answer.body.toString())])
  }
})

longTest('an unknown digest is 404, and VEX that is missing or cannot be read is said', async () => {
  const { bench, tag, publish, serve } = await openImage()
  const fixed = openVex({ cve: 'CVE-1', products: [{ '@id': ZLIB }], status: 'fixed' })
  bench.sandbox.faults.set(`/v1/tags/${tag}/vex`, { kind: 'status', status: 403 })
  await publish([fixed, openVex({ cve: 'CVE-2', products: [{ '@id': `pkg:oci/a@${D}` }], status: 'fixed' })])
  const ask = await serve()
  const found = await ask(`/-/vex/${D}`)
  expect([found.status, found.headers['x-mirror-incomplete']]).toEqual([
    200,
    expect.stringContaining(`/v1/tags/${tag}/vex could not be fetched`),
  ])
  const { role } = JSON.parse(found.body.toString()) as { role: string }
  expect(role).toContain(`Statements may be missing: /v1/tags/${tag}/vex could not be fetched`)
  expect((await ask('/-/vex/sha256:12')).status).toBe(400)
  expect((await ask(`/-/vex/${D}?name=${encodeURIComponent('a b')}`)).status).toBe(400)
  const unknown = await ask(`/-/vex/${digestOf('9')}`)
  expect([unknown.status, unknown.body.toString()]).toEqual([
    404,
    expect.stringContaining('no mirrored tag has the digest'),
  ])

  // What is gone since, or not believed, has no date: an answer is never the same because no document is newer.
  const db = new Database(join(bench.dir, 'mirror.db'))
  db.exec('UPDATE catalog_document SET changed = 1000')
  db.close()
  ask.look()
  const since = { 'if-modified-since': new Date(Date.now() - 60_000).toUTCString() }
  expect((await ask(`/-/vex/${D}`, since)).status).toBe(200)
  expect((await ask(`/-/vex/${D}`, { 'if-none-match': String(found.headers['etag']) })).status).toBe(304)
  await publish([null, openVex({ cve: 'CVE-2', products: [{ '@id': ZLIB }], status: 'fixed' })])
  ask.look()
  const missing = await ask(`/-/vex/${D}`)
  const tried = /could not be fetched.*; every sync tries again/
  expect([missing.status, missing.body.toString()]).toEqual([503, expect.stringMatching(tried)])
  const env = { PATCHMIRROR_DATA_DIR: bench.dir }
  expect((await run(['vex', D], env, bench.dir)).code).toBe(3)
  expect((await run(['vex', digestOf('9')], env, bench.dir)).code).toBe(1)

  // A damaged document of another tag may be the one that names it.
  const documents = bench.store.vex.listVexDocuments().map(({ digest }) => digest)
  await bench.store.exclusive(() => bench.store.catalog.invalidate({ answers: [], lists: [], documents }))
  const damaged = await run(['vex', digestOf('9')], env, bench.dir)
  expect([damaged.code, damaged.err]).toEqual([3, expect.stringContaining('which cannot be read, may name it')])
})

longTest('a document of another tag that was not believed when it was first read counts once it is', async () => {
  const { bench, tag, publish, serve } = await openImage()
  const named = openVex({ cve: 'CVE-2', products: [{ '@id': `pkg:oci/a@${D}` }], status: 'fixed' })
  await publish([openVex({ cve: 'CVE-1', products: [{ '@id': ZLIB }], status: 'fixed' }), named])
  const ask = await serve()
  const { store } = bench
  const path = store.vex
    .listVexDocuments()
    .flatMap(({ tags = [] }) => tags.map((id) => `/v1/tags/${id}/vex`))
    .find(
      (one) =>
        !one.includes(tag) && store.catalog.readAnswer(one)?.links.some(({ digest }) => digest === sha256Hex(named)),
    )
  const answer = store.catalog.readAnswer(path ?? '') ?? expect.fail('no answer')
  const said = async (state: 'verified' | 'failed') => {
    const result = { state, signer: null, reason: null, subject: D, isEnforced: true, path: path ?? '', basis: '' }
    await store.exclusive(() => store.catalog.putSignature({ ...result, answer: signedState(answer) ?? '' }, false))
    ask.look()
    const { statements } = JSON.parse((await ask(`/-/vex/${D}`)).body.toString()) as { statements: Statement[] }
    return statements.map(({ vulnerability }) => vulnerability.name)
  }
  expect(await said('failed')).toEqual(['CVE-1'])
  expect(await said('verified')).toEqual(['CVE-1', 'CVE-2'])
})

longTest('of a tag that is not in scope it is not said that a sync tries to get its VEX', async () => {
  const bench = await catalogBench(
    { images: 2, tags: 4, avrs: 0, packages: 1, tickets: 1 },
    { env: { PATCHMIRROR_CATALOG_SCOPE: 'subscribed', PATCHMIRROR_CATALOG_PATTERNS: '!image:*' } },
  )
  const [tag = ''] = bench.sandbox.service.ids('tags')
  bench.sandbox.service.change('tags', tag, { digest: D })
  await bench.run('catalog')
  const { code, err } = await run(['vex', D], { PATCHMIRROR_DATA_DIR: bench.dir }, bench.dir)
  expect([code, err]).toEqual([3, expect.stringContaining('it is not in scope (catalog.scope), or no sync has asked')])
  expect(err).not.toContain('tries again')
})

test('the digest of an index leads to its platforms, each under its own digest, and a platform to its index', async () => {
  const item = {
    digest: INDEX,
    platforms: [
      { digest: D, arch: 'amd64' },
      { digest: ARM, arch: 'arm64' },
    ],
  }
  const { publish, serve } = await openImage(item)
  await publish([
    openVex(
      { cve: 'CVE-1', products: [{ '@id': `pkg:oci/a@${D}` }], status: 'fixed' },
      { cve: 'CVE-2', products: [{ '@id': `pkg:oci/a@${INDEX}` }], status: 'fixed' },
      { cve: 'CVE-3', products: [{ '@id': `pkg:oci/a@${ARM}` }], status: 'fixed' },
    ),
  ])
  const ask = await serve()
  const said = async (digest: string) => {
    const answer = await ask(`/-/vex/${digest}`)
    const { statements } = JSON.parse(answer.body.toString()) as { statements: Statement[] }
    return statements.map(({ vulnerability, products }) => {
      const ids = products.map((one) => decodeURIComponent(one['@id']))
      return [
        vulnerability.name,
        ids.find((id) => /^[\da-f]{64}$/.test(id))?.[0],
        ids.some((id) => id.endsWith(`@${INDEX}?arch=amd64`)),
      ]
    })
  }
  expect(await said(INDEX)).toEqual([
    ['CVE-1', '1', true],
    ['CVE-2', '2', false],
    ['CVE-3', '3', false],
  ])
  expect(await said(D)).toEqual([
    ['CVE-1', '1', false],
    ['CVE-2', '1', false],
  ])
})

longTest('the VEX of an image counts the documents of all tags with its digest, however many there are', async () => {
  const service = { images: 1, tags: 130, avrs: 0, packages: 1, tickets: 1 }
  const bench = await catalogBench(service, { env: { PATCHMIRROR_CATALOG_SCOPE: 'all' } })
  const made = bench.sandbox.service
  const tags = made.ids('tags')
  for (const id of tags) made.change('tags', id, { digest: D })
  const last = tags.findLast((id) => made.documents('tag', id, 'vex').length > 0) ?? ''
  const said = { cve: 'CVE-1', products: [{ '@id': ZLIB }], status: 'affected' }
  made.writeArtifact('tag', last, 'vex', openVex(said))
  await bench.run('catalog')
  const get = await serveFolder(bench.dir, bench.config)
  const { statements } = JSON.parse((await get(`/-/vex/${D}`)).body.toString()) as { statements: Statement[] }
  expect(words(statements).filter((one) => one.startsWith('CVE-1 '))).toEqual([`CVE-1 affected ${ZLIB}`])
})
