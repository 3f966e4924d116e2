import { describe, expect } from 'vitest'
import type { Run } from '../../../src/store/runs/runs.ts'
import { type CatalogBench, catalogBench } from '../../support/catalog/mirror.ts'
import { bothTest, LONG, longTest, telling, test } from '../../support/tables.ts'

const SERVICE = { images: 2, tags: 2, packages: 2, tickets: 2, avrs: 0, users: 1, subscriptions: 1 }

/** A mirror of a service one of whose lists is this text. */
async function mirrored(path: string, body: string): Promise<CatalogBench & { report: Run }> {
  const made = await catalogBench(SERVICE, { env: { PATCHMIRROR_CATALOG_SCOPE: 'all' } })
  made.sandbox.faults.set(path, { kind: 'body', body })
  return { ...made, report: await made.run('catalog') }
}

/** A list in upstream's form. */
const listOf = (items: string, more = ''): string => `{"data":[${items}]${more}}`
const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth)

describe('a malformed list of upstream does not affect the other lists:', () => {
  const ways: [string, string, string][] = [
    ['two images with one repository', '/v1/images/', listOf('{"id":"a","name":"r"},{"id":"b","name":"r"}')],
    ['half a surrogate pair as a repository', '/v1/images/', listOf('{"id":"a","name":"x\\ud800"}')],
    ['half a surrogate pair as a package', '/v1/packages/', listOf('{"id":"a","ecosystem":"npm","name":"\\udfff"}')],
    ['half a surrogate pair as a cursor', '/v1/tags/', listOf('{"id":"a"}', ',"cursor":{"after":"\\ud800"}')],
    ['an envelope that is nested deep', '/v1/tags/', listOf('{"id":"a"}', `,"x":${nested(400_000)}`)],
    ['an envelope that is large', '/v1/tags/', listOf('{"id":"a"}', `,"x":"${'x'.repeat(70_000)}"`)],
  ]
  bothTest.each(telling(ways, 'half a surrogate pair as a cursor', 'an envelope that is nested deep'))(
    '%s',
    async (_way, path, body) => {
      const made = await mirrored(path, body)
      const { report, store } = made
      expect(['complete', 'partial']).toContain(report.state)
      expect(report.code).toBeNull()
      expect(store.catalog.readList('/v1/patches')?.entries).toBe(2)
      expect((await made.ask('/v1/me')).status).toBe(200)
    },
  )
})

longTest('an item that is nested too deeply for SQLite is ordered as one without the field', async () => {
  const made = await mirrored('/v1/patches', listOf(`{"id":"a","foo":1,"x":${nested(2000)}},{"id":"b","foo":2}`))
  const page = (await (await made.ask('/v1/patches?order=foo:asc')).json()) as {
    data: { id: string }[]
  }
  expect(page.data.map(({ id }) => id)).toEqual(['a', 'b'])
  expect((await made.ask('/v1/patches?order=nothing:asc')).status).toBe(501)
})

longTest('an envelope of a list is served without key material, and with all other members', async () => {
  const more = ',"webhook_secret":"s3cret","api_key":"k3y","note":"\\u0000items\\u0000"'
  const made = await mirrored('/v1/subscriptions/', listOf('{"id":"a","token":"t0ken"}', more))
  expect(await (await made.ask('/v1/subscriptions/')).json()).toEqual({
    data: [{ id: 'a' }],
    note: '\0items\0',
  })
})

test('a document in XML cannot run a script with the origin of the mirror', async () => {
  const made = await catalogBench(SERVICE, { env: { PATCHMIRROR_CATALOG_SCOPE: 'all' } })
  const body = '<bom xmlns="http://cyclonedx.org/schema/bom/1.5"><script xmlns="http://www.w3.org/1999/xhtml"/></bom>'
  made.sandbox.faults.set(/\/sbom$/, { kind: 'body', body })
  await made.run('catalog')
  const [tag = ''] = made.sandbox.service.ids('tags')
  const { headers } = await made.ask(`/v1/tags/${tag}/sbom`)
  expect(headers.get('content-type')).toBe('application/vnd.cyclonedx+xml')
  expect(headers.get('content-security-policy')).toBe("sandbox; default-src 'none'")
})

longTest('the public status names no private path, the run log does', async () => {
  const made = await mirrored('/v1/images/', listOf('{"id":"a","name":"acme/hidden"}'))
  expect(JSON.stringify(made.report.facts['lackingIds'])).toContain('acme/hidden')
  const status = await (await made.ask('/-/status')).text()
  expect(status).not.toContain('hidden')
  expect(status).not.toContain('lackingIds')
})

interface Told {
  readonly message: string
}

bothTest.each(LONG ? [401, 403, 500] : [403])(
  'the public status does not repeat the text of upstream’s %i, the run log does',
  async (status) => {
    const env = { PATCHMIRROR_CATALOG_SCOPE: 'all', LIMIT_UPSTREAM_RETRIES: '0' }
    const made = await catalogBench(SERVICE, { env })
    const body = '{"message":"ada@acme.example has no grant; 2 images of acme-hidden are not hers"}'
    made.sandbox.faults.set(/^\/v1\/images/, { kind: 'status', status, body })
    const { message, facts } = await made.run('catalog')
    expect(`${message} ${JSON.stringify(facts)}`).toContain('acme-hidden')
    const text = await (await made.ask('/-/status')).text()
    expect(text).not.toMatch(/acme/)
    const { sources } = JSON.parse(text) as { sources: { name: string; lastRun: Told }[] }
    const told = sources.find(({ name }) => name === 'catalog')?.lastRun
    expect(told?.message).toMatch(/^(\d+ lists? changed, )?\d+ answers? fetched|"patchmirror runs 1"/)
    expect(told).toMatchObject({ facts: { requests: expect.any(Number) as number } })
  },
)

test('the public status has the numbers of a successful run', async () => {
  const made = await catalogBench(SERVICE, { env: { PATCHMIRROR_CATALOG_SCOPE: 'all' } })
  const { message } = await made.run('catalog')
  expect(message).toMatch(/^\d+ lists? changed, \d+ answers? fetched, 0 removed$/)
  expect(await (await made.ask('/-/status')).json()).toMatchObject({
    sources: expect.arrayContaining([
      expect.objectContaining({ lastRun: expect.objectContaining({ message }) as object }),
    ]) as object[],
  })
})

longTest('a run says what it removed by kind, and names it where names may be shown', async () => {
  const made = await catalogBench(SERVICE, { env: { PATCHMIRROR_CATALOG_SCOPE: 'all' } })
  await made.run('catalog')
  const { service } = made.sandbox
  const [gone = ''] = service.ids('tags')
  service.remove('tags', gone)
  const { message, facts } = await made.run('catalog')
  expect(message).toMatch(/ fetched, \d+ answers of 1 tag( and 1 artifact set)?, 2 items of 2 lists removed$/)
  expect(facts['removedIds']).toContain(`/v1/tags/${gone}`)
  expect((facts['removedIds'] as string[]).length).toBe(facts['removed'])
  const text = await (await made.ask('/-/status')).text()
  expect(text).toContain(JSON.stringify(message))
  expect(text).not.toContain(gone)
})
