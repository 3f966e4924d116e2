import { once } from 'node:events'
import { mkdtempSync } from 'node:fs'
import { type IncomingMessage, Agent, get as httpGet } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect } from 'vitest'
import { openFilledStore } from '../../support/filled-store.ts'
import { performTask } from '../../../src/features/scanners/views/task.ts'
import { record } from '../../features/scanners/views/fixtures.ts'
import { FEEDS, FILLED_AT, closeAll, serve } from '../served.ts'
import { bothTest, telling, test } from '../../support/tables.ts'

afterEach(closeAll)

const RECORD = '/external/osv/ROOT-A.json'
const OSV = [RECORD, '/external/osv/all.json', '/external/osv/all.zip']
const VIEWS = ['/osv/all.zip', '/osv/Debian/all.zip', '/osv/modified_id.csv', '/osv/Debian/ROOT-A.json']
const NEVER = ['/-/status', '/-/openapi.json', '/osv/v1/vulns/ROOT-A', '/external/osv/none.json']
const FIELDS = ['cdn-cache-control', 'cache-groups', 'xkey', 'cache-tag', 'surrogate-key']

/** A mirror with records, views and feeds; `more`: settings. */
async function mirror(more: Record<string, string>) {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-edge-'))
  const store = openFilledStore(dir)
  store.publishOsv({ 'ROOT-A': record('ROOT-A', '2026-05-01', ['Root:Debian:12', 'curl']) })
  store.publishFeeds(FEEDS)
  store.close()
  await performTask({ dataDir: dir, kind: 'osv', vendors: ['Root'], rebuild: false })
  return serve(() => undefined, { dir, env: more, now: () => FILLED_AT })
}

/** Asks over a connection that stays open, as a scanner does: the fast path answers. */
async function fastly(port: number): Promise<IncomingMessage> {
  const agent = new Agent({ keepAlive: true })
  const sent = httpGet({ port, path: RECORD, agent, host: '127.0.0.1' })
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  await once(response.resume(), 'end')
  agent.destroy()
  return response
}

test('without the setting no answer has a header for shared caches', async () => {
  const { get, port } = await mirror({})
  for (const path of [...OSV, ...VIEWS, ...NEVER, '/external/patch_feed']) {
    const names = Object.keys((await get(path)).headers)
    expect([path, names.filter((name) => FIELDS.includes(name))]).toEqual([path, []])
  }
  expect((await fastly(port)).headers['cdn-cache-control']).toBeUndefined()
})

const TAGGED: [name: string, both: string | undefined][] = [
  ['xkey', 'pm-osv pm-views'],
  ['Surrogate-Key', 'pm-osv pm-views'],
  ['Cache-Tag', 'pm-osv,pm-views'],
  ['none', undefined],
]
bothTest.each(telling(TAGGED, 'Cache-Tag', 'none'))(
  'public answers have their age, groups and tags in %s, and others have none',
  async (name, both) => {
    const { get, port } = await mirror({
      PATCHMIRROR_EDGE_MAX_AGE_SECONDS: '600',
      PATCHMIRROR_EDGE_TAG_HEADER: name,
    })
    const tagsOf = ({ headers }: { headers: IncomingMessage['headers'] }) => [
      ...[headers['cdn-cache-control'], headers['cache-groups'], headers[name.toLowerCase()]],
    ]
    const age = 'max-age=600, must-revalidate'
    const one = (tag: string) => [age, `"${tag}"`, both && tag]
    for (const path of OSV) {
      const reply = await get(path)
      expect([path, ...tagsOf(reply)]).toEqual([path, ...one('pm-osv')])
      expect(reply.headers['cache-control']).toBe('public, max-age=0, must-revalidate')
      const unchanged = await get(path, { 'If-None-Match': reply.headers.etag ?? '' })
      expect([unchanged.status, ...tagsOf(unchanged)]).toEqual([304, ...one('pm-osv')])
    }
    expect(tagsOf(await fastly(port))).toEqual(one('pm-osv'))
    expect(tagsOf(await get('/external/patch_feed?ecosystem=alpine'))).toEqual(one('pm-feeds'))
    for (const path of VIEWS)
      expect([path, ...tagsOf(await get(path))]).toEqual([path, age, '"pm-osv", "pm-views"', both])
    for (const path of NEVER)
      expect([path, ...tagsOf(await get(path))]).toEqual([path, undefined, undefined, undefined])
  },
)
