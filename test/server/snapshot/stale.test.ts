import { once } from 'node:events'
import { existsSync, mkdtempSync } from 'node:fs'
import { type IncomingMessage, Agent, get as httpGet } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect } from 'vitest'
import { longTest, test } from '../../support/tables.ts'
import type { Config } from '../../../src/config/schema.ts'
import { performTask } from '../../../src/features/scanners/views/task.ts'
import { createWeb } from '../../../src/features/pages/web.ts'
import { catalogBench } from '../../support/catalog/mirror.ts'
import { run } from '../../support/command.ts'
import { FILLED_AT, openFilledStore } from '../../support/filled-store.ts'
import { record } from '../../features/scanners/views/fixtures.ts'
import { type Served, FEEDS, closeAll, jsonOf, serve } from '../served.ts'

afterEach(closeAll)

const HOUR_MS = 3_600_000
const RECORD = '/external/osv/ROOT-A.json'
const OSV = [
  RECORD,
  '/external/osv/none.json',
  '/external/osv/all.json',
  '/external/osv/all.zip',
  '/osv/Debian/all.zip',
  '/osv/Debian/ROOT-A.json',
  '/osv/all.zip',
  '/osv/v1/vulns/ROOT-A',
]
const LIMIT = 'older than sync.maxAgeHours (26)'

/** A mirror with records, views and feeds, and a clock that the test moves. */
async function mirror(action: string): Promise<Served & { dir: string; setAge(hours: number): void }> {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-stale-'))
  const store = openFilledStore(dir)
  store.publishOsv({ 'ROOT-A': record('ROOT-A', '2026-05-01', ['Root:Debian:12', 'curl']) })
  store.publishFeeds(FEEDS)
  store.close()
  await performTask({ dataDir: dir, kind: 'osv', vendors: ['Root'], rebuild: false })
  const clock = { now: FILLED_AT }
  const env = { PATCHMIRROR_SERVER_STALE_ACTION: `osv=${action}` }
  const people = (config: Config) => createWeb({ config, version: '1' })
  const served = await serve(() => undefined, { dir, env, now: () => clock.now, people })
  return {
    ...served,
    dir,
    setAge(hours) {
      clock.now = FILLED_AT + hours * HOUR_MS
      served.server.snapshotChanged()
    },
  }
}

/** Asks as a scanner does, over a connection that stays open: with this the fast path answers. */
async function fastly({ port }: Served): Promise<IncomingMessage> {
  const agent = new Agent({ keepAlive: true })
  const [response] = (await once(httpGet({ port, path: RECORD, agent, host: '127.0.0.1' }), 'response')) as [
    IncomingMessage,
  ]
  await once(response.resume(), 'end')
  agent.destroy()
  return response
}

longTest(
  'with the policy refuse every path of a source that is too old is a 503, and other sources are served',
  async () => {
    const served = await mirror('refuse')
    served.setAge(26)
    for (const path of OSV) expect([path, (await served.get(path)).status]).not.toEqual([path, 503])
    const { etag = '' } = (await served.get(RECORD)).headers
    served.setAge(26.001)
    for (const path of OSV)
      for (const method of ['GET', 'HEAD']) {
        const { status, headers } = await served.get(path, { 'If-None-Match': etag }, method)
        expect([path, status, headers['retry-after'], headers['x-mirror-stale']]).toEqual([path, 503, '30', LIMIT])
        expect(headers['cache-control'] ?? 'no-store').toContain('no-store')
      }
    const query = await served.get('/osv/v1/query', {}, 'POST')
    expect([query.status, query.headers['x-mirror-stale']]).toEqual([503, LIMIT])
    const browser = { accept: 'text/html', authorization: '' }
    for (const page of ['record?id=ROOT-A', 'search?q=curl', 'ecosystems', 'packages?ecosystem=Debian'])
      expect([page, (await served.get(`/-/ui/${page}`, browser)).status]).toEqual([page, 503])
    expect((await served.get('/', browser)).status).toBe(200)
    const refused = await served.get(RECORD)
    expect(jsonOf(refused)).toMatchObject({ error: 'stale' })
    expect(jsonOf(refused)['message']).toContain(LIMIT)
    expect(refused.headers).toMatchObject({ 'x-mirror-stale': LIMIT, 'x-mirror-as-of': '2026-07-01T00:00:00.000Z' })
    expect((await fastly(served)).statusCode).toBe(503)
    expect((await served.get('/external/patch_feed')).status).toBe(200)
    expect((await served.get('/-/health')).status).toBe(200)
    expect(served.errors).toEqual([])
  },
)

test('with the policy refuse a newer snapshot is served at once', async () => {
  const served = await mirror('refuse')
  served.setAge(30)
  expect((await served.get(RECORD)).status).toBe(503)
  served.store.publishOsv({ 'ROOT-A': '{"id":"ROOT-A"}' }, FILLED_AT + 29 * HOUR_MS)
  served.server.snapshotChanged()
  const { status, headers } = await served.get(RECORD)
  expect([status, headers['x-mirror-stale']]).toEqual([200, undefined])
})

longTest(
  'with the policy warn answers that are too old have X-Mirror-Stale, on the fast path, archives, views and 304 too',
  async () => {
    const served = await mirror('warn')
    served.setAge(26)
    const { headers } = await served.get(RECORD)
    expect(headers['x-mirror-stale']).toBeUndefined()
    served.setAge(27)
    for (const path of OSV) {
      const reply = await served.get(path)
      const status = path.endsWith('none.json') ? 404 : 200
      expect([path, reply.status, reply.headers['x-mirror-stale']]).toEqual([path, status, LIMIT])
    }
    const unchanged = await served.get(RECORD, { 'If-None-Match': headers.etag ?? '' })
    expect([unchanged.status, unchanged.headers['x-mirror-stale']]).toEqual([304, LIMIT])
    expect((await fastly(served)).headers).toMatchObject({ 'x-mirror-stale': LIMIT })
    expect((await served.get('/external/patch_feed')).headers['x-mirror-stale']).toBeUndefined()
  },
)

test('with the default policy serve an old answer is unchanged', async () => {
  const served = await mirror('serve')
  served.setAge(1000)
  const { status, headers } = await served.get(RECORD)
  expect([status, headers['x-mirror-stale']]).toEqual([200, undefined])
})

test('with the policy refuse private items, lists and documents are refused in the form of their surface, to clients with a key', async () => {
  const clock = { skew: 0 }
  const bench = await catalogBench(
    { images: 1, tags: 2, packages: 1, tickets: 1 },
    {
      now: () => Date.now() + clock.skew,
      env: {
        PATCHMIRROR_SERVER_STALE_ACTION: 'catalog=refuse,identity=refuse',
        PATCHMIRROR_CATALOG_PERSONAL_DATA: 'users',
        PATCHMIRROR_CATALOG_SCOPE: 'all',
      },
    },
  )
  expect((await bench.run('catalog')).state).toBe('complete')
  expect((await bench.run('identity')).state).toBe('complete')
  const list = (await (await bench.ask('/v1/tags/')).json()) as { data?: { id: string }[] }
  const id = list.data?.[0]?.id ?? ''
  const paths = ['/v1/tags/', '/v1/images/', `/v1/tags/${id}/sbom`, '/v1/me', '/v1/users/']
  const answered = await Promise.all(paths.map(async (path) => (await bench.ask(path)).status))
  expect(answered).not.toContain(503)
  clock.skew = 27 * HOUR_MS
  for (const path of paths) {
    const reply = await bench.ask(path)
    expect([path, reply.status, reply.headers.get('retry-after')]).toEqual([path, 503, '30'])
    expect(reply.headers.get('x-mirror-stale')).toMatch(/^older than sync\.maxAgeHours/)
  }
  expect(await (await bench.ask('/v1/users/')).json()).toMatchObject({ status_code: 503, error: 'stale' })
})

longTest('with the policy refuse export-db writes no database of records that are too old', async () => {
  const { dir } = await mirror('refuse')
  const target = join(dir, 'scanner')
  const env = { PATCHMIRROR_DATA_DIR: dir, PATCHMIRROR_SERVER_STALE_ACTION: 'osv=refuse' }
  const { code, err } = await run(['export-db', 'osv-scanner', target], env, dir)
  expect(err).toContain(LIMIT)
  expect(code).not.toBe(0)
  expect(existsSync(target)).toBe(false)
})
