import { expect, test } from 'vitest'
import { type ShapeChanges, type ShapeName, shaped } from '../../sandbox/service/shapes/shape.ts'
import { type CatalogBench, catalogBench } from '../../support/catalog/mirror.ts'

const SERVICE = { images: 1, tags: 3, packages: 3, tickets: 1, avrs: 1, users: 1, subscriptions: 1 }
const ENV = { PATCHMIRROR_CATALOG_SCOPE: 'all', LIMIT_UPSTREAM_RETRIES: '0' }

function benchOf(shape: ShapeName, changes: ShapeChanges): Promise<CatalogBench> {
  return catalogBench({ ...SERVICE, shape: shaped(shape, changes) }, { env: ENV })
}

/** Every artifact of the service: its path, and the bytes of its documents. */
function artifactsOf({ sandbox: { service } }: CatalogBench): [path: string, files: Buffer[]][] {
  return [
    ...service
      .ids('tags')
      .flatMap((id) =>
        (['sbom', 'vex', 'provenance'] as const).map((kind): [string, Buffer[]] => [
          `/v1/tags/${id}/${kind}`,
          service.documents('tag', id, kind),
        ]),
      ),
    ...service
      .ids('packages')
      .map((id): [string, Buffer[]] => [
        `/v1/packages/${id}/artifacts/patches`,
        service.documents('package', id, 'patches'),
      ]),
  ].filter(([, files]) => files.length > 0)
}

const LINK = /http:[^"]*\/-\/documents\/[^"]*/g

/** Returns the paths whose documents are neither what the answer is, nor in it as upstream has them, nor behind its links. */
async function wrongOf(made: CatalogBench): Promise<string[]> {
  const wrong: string[] = []
  for (const [path, files] of artifactsOf(made)) {
    const answer = await made.ask(path)
    const body = Buffer.from(await answer.arrayBuffer())
    const links = body.toString('latin1').match(LINK) ?? []
    const found = await Promise.all(links.map(async (url) => Buffer.from(await (await fetch(url)).arrayBuffer())))
    const upstream = Buffer.from(await (await made.askUpstream(path)).arrayBuffer())
    const isBehind = files.every((file) => found.some((one) => one.equals(file)))
    const isWhole = links.length === 0 && [upstream, ...files].some((one) => one.equals(body))
    if (answer.status !== 200 || !(isBehind || isWhole)) wrong.push(path)
  }
  return wrong
}

const FORMS: [string, ShapeName, ShapeChanges][] = [
  ['in an envelope', 'items', { artifacts: { around: 'json-api' } }],
  ['as a list', 'items', { artifacts: { around: 'list' } }],
  ['as JSON lines', 'items', { artifacts: { around: 'lines' } }],
  ['as a text', 'items', { artifacts: { around: 'text' } }],
  ['in Base64', 'items', { artifacts: { around: 'base64' } }],
  ['as gzip files', 'items', { artifacts: { gzipFiles: true } }],
  ['as gzip files behind links', 'wire', { artifacts: { gzipFiles: true } }],
  ['as gzip files behind redirects', 'camel', { artifacts: { gzipFiles: true } }],
  ['beside a link back to the service', 'wire', { artifacts: { links: 'hal' } }],
  ['beside a link to a page that is not there', 'wire', { artifacts: { links: 'documented' } }],
  ['behind paths of the service', 'wire', { artifacts: { links: 'relative' } }],
  ['in the Location of a 200', 'wire', { artifacts: { links: 'location' } }],
]

test.each(FORMS)('documents are mirrored when they come %s', async (_how, shape, changes) => {
  const made = await benchOf(shape, changes)
  const report = await made.run('catalog')
  expect([report.state, report.facts['lackingIds']]).toEqual(['complete', undefined])
  expect(await wrongOf(made)).toEqual([])
  expect(artifactsOf(made).length).toBeGreaterThan(5)
  expect(await made.run('catalog')).toMatchObject({ state: 'complete', facts: { fetched: 0 } })
})

const UNFINISHED = ['processing', 'empty', 'null', 'blank', 'spaces', 'network'] as const

test.each(UNFINISHED)(
  'documents that are %s at first are not there until the next run, and then they are',
  async (unfinished) => {
    const made = await benchOf('wire', { artifacts: { pending: 1, unfinished } })
    const [tag = ''] = made.sandbox.service.ids('tags')
    expect(await made.run('catalog')).toMatchObject({ state: 'partial', code: null })
    expect((await made.ask(`/v1/tags/${tag}/sbom`)).status).toBe(503)
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    expect(await wrongOf(made)).toEqual([])
  },
)

const REFUSED: [string, string, string][] = [
  ['the account', '/v1/me', '/v1/me'],
  ['the SBOMs', '/v1/tags/{tagID}/sbom', ''],
  ['a list', '/v1/patches', '/v1/patches'],
]

test.each(REFUSED)('a service that refuses %s has a mirror of all the rest', async (_what, form, path) => {
  const made = await benchOf('wire', { http: { refused: [form] } })
  const [tag = ''] = made.sandbox.service.ids('tags')
  expect(await made.run('catalog')).toMatchObject({ state: 'partial', code: null })
  const refused = await made.ask(path === '' ? `/v1/tags/${tag}/sbom` : path)
  expect([refused.status, await refused.text()]).toEqual([403, expect.stringContaining('this key has no right to it')])
  expect((await made.ask(`/v1/tags/${tag}/vex`)).status).toBe(200)
})

test('a list that is an object keyed by id costs itself alone', async () => {
  const made = await benchOf('wire', { http: { keyed: ['/v1/subscriptions/'] } })
  const [tag = ''] = made.sandbox.service.ids('tags')
  const { message, ...report } = await made.run('catalog')
  expect([report.code, message]).toEqual([null, expect.any(String)])
  expect((await made.ask(`/v1/tags/${tag}/sbom`)).status).toBe(200)
})
