import { expect, test } from 'vitest'
import { OSV_ARCHIVE, OSV_INDEX } from '../../src/base/domain/feed-paths.ts'
import { type Saying, plainBench } from '../support/catalog/plain-service.ts'

const page: Saying = () => ({
  body: '<!doctype html><title>Sign in</title>',
  headers: { 'content-type': 'text/html' },
})
const record = { id: 'CVE-2024-1', modified: '2024-01-01T00:00:00Z' }

test('a page of HTML is named with the path as requested, in every source', async () => {
  const made = await plainBench(
    {
      '/v1/me': page,
      '/v1/images/': page,
      '/v1/tags/': () => ({ body: { data: [{ id: 't' }], cursor: { after: null } } }),
      '/v1/tags/t': page,
      '/v1/tags/t/sbom': ({ origin }) => ({ body: { url: `${origin}/files/sbom` } }),
      '/v1/tags/t/vex': page,
      '/files/sbom': page,
      '/v1/users': page,
      '/external/patch_feed': page,
      [OSV_INDEX]: page,
    },
    (origin) => ({
      PATCHMIRROR_IDENTITY_API_URL: `${origin}/v1`,
      PATCHMIRROR_CATALOG_PERSONAL_DATA: 'users',
    }),
  )
  const said = async (source: 'catalog' | 'identity' | 'feeds' | 'osv'): Promise<string> => {
    const { message, facts } = await made.run(source)
    return `${message} ${JSON.stringify(facts)}`
  }
  const named = 'an HTML page came instead of JSON (a sign-in page or a proxy?)'
  const catalog = await said('catalog')
  for (const path of ['/v1/me', '/v1/images/', '/v1/tags/t', '/files/sbom'])
    expect(catalog).toContain(`${path}: ${named}`)
  expect(catalog).toMatch(/\/v1\/tags\/t\/vex: .*HTML page.*a sign-in page or a proxy/)
  expect(await said('identity')).toContain(`/v1/users: ${named}`)
  expect(await said('feeds')).toContain(`/external/patch_feed: ${named}`)
  expect(await said('osv')).toContain(`${OSV_INDEX}: ${named}`)
  made.say({ [OSV_INDEX]: () => ({ body: [record] }), [OSV_ARCHIVE]: page })
  const { store } = made
  expect(store.snapshots.readSnapshot('osv')).toBeNull()
  expect(await said('osv')).toContain(`${OSV_ARCHIVE}: an HTML page came instead of an archive`)
})
