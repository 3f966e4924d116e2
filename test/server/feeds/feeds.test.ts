import { gunzipSync } from 'node:zlib'
import fc from 'fast-check'
import { afterEach, expect } from 'vitest'
import { elementsOf, membersOf, sliceText } from '../../../src/base/json/slices.ts'
import { type PatchIndex, filterPatchFeed, indexPatchFeed } from '../../../src/server/snapshot/patch-filter.ts'
import { filterRows, indexRows, isTree } from '../../../src/server/snapshot/patch-rows.ts'
import type { Steps } from '../../../src/base/pacing.ts'
import { STEP } from '../../../src/server/snapshot/steps.ts'
import { FEEDS, FILLED_AT, PATCH_FEED, closeAll, jsonOf, serve, servedToAll } from '../served.ts'
import { longTest, test } from '../../support/tables.ts'

afterEach(closeAll)

const PATH = '/external/patch_feed'
const serveFeeds = servedToAll((store) => store.publishFeeds(FEEDS))

test('a feed without filters is served as upstream’s bytes', async () => {
  const { get } = await serveFeeds()
  for (const query of ['', '?', '?ecosystem=', '?ecosystem=&package_src_name=&x=1', '?page=2']) {
    const reply = await get(PATH + query)
    expect([reply.status, reply.body.toString()]).toEqual([200, PATCH_FEED])
  }
  const matrix = await get('/external/globals/sys_matrix?x=1')
  expect(matrix.body.toString()).toBe('{"ecosystems":{}}')
})

test('a feed path that upstream does not have is a 404 that says so', async () => {
  const { get } = await serveFeeds()
  const reply = await get('/external/cve_feed')
  expect([reply.status, jsonOf(reply)['error']]).toEqual([404, 'not_found'])
  expect(jsonOf(reply)['message']).toContain('upstream has no /external/cve_feed')
  expect(reply.headers['x-mirror-snapshot']).toBeDefined()
  expect(reply.headers['x-mirror-incomplete']).toBeUndefined()
})

test('a 404 for a feed that is not mirrored tells another mirror that it is no evidence', async () => {
  const { get } = await serveFeeds()
  const reply = await get('/external/extra')
  expect([reply.status, reply.headers['x-mirror-incomplete']]).toEqual([404, 'feeds.extraPaths'])
})

test('a feed path that is configured and not fetched yet is a 503', async () => {
  const { get } = await serve((store) => store.publishFeeds(FEEDS), {
    env: { PATCHMIRROR_FEEDS_EXTRA_PATHS: '/external/extra' },
  })
  expect((await get('/external/extra')).status).toBe(503)
  expect((await get('/external/cve_feed')).status).toBe(404)
})

test('a feed of feeds.extraPaths is served unchanged, whatever its query', async () => {
  const feeds = { ...FEEDS, '/external/extra': '["as it is"]' }
  const { get } = await serve((store) => store.publishFeeds(feeds), {
    env: { PATCHMIRROR_FEEDS_EXTRA_PATHS: '/external/extra' },
  })
  expect((await get('/external/extra?ecosystem=cobol')).body.toString()).toBe('["as it is"]')
})

const CURL = '{"pkg": {"name": "curl", "secfixes": {"8.1-r00071": ["CVE-2024-1"]}, "n": 1.0e400}}'

test.each([
  ['ecosystem=npm', '{"npm":[]}'],
  ['ecosystem=pypi', '{}'],
  ['ecosystem=debian&os_distro_major=11', '{"debian":[]}'],
  ['os_distro_major=99', '{"alpine":[],"debian":[],"npm":[]}'],
  [
    'package_src_name=openssl',
    '{"alpine":[],"debian":[{"distroversion":"12","packages":[{"pkg":{"name":"openssl","secfixes":{}}}]}],"npm":[]}',
  ],
  [
    'ecosystem=alpine&os_distro_major=3.18&package_src_name=curl',
    `{"alpine":[{"distroversion":"3.18", "archs": ["x86_64"], "packages": [${CURL}], "later": 12345678901234567890}]}`,
  ],
  [
    'ecosystem=alpine&package_src_name=ca-certs&unknown=1',
    '{"alpine":[{"distroversion":"3.18", "archs": ["x86_64"], "packages": [{"pkg": {"name": "c\\u0061-certs", "secfixes": {}, "odd": "\\"]}\\\\"}}], "later": 12345678901234567890}]}',
  ],
])('the filter ?%s returns upstream’s own text of the matching entries', async (query, expected) => {
  const { get } = await serveFeeds()
  for (let again = 0; again < 2; again++) {
    const plain = await get(`${PATH}?${query}`)
    expect(plain.body.toString()).toBe(expected)
    const packed = await get(`${PATH}?${query}`, { 'Accept-Encoding': 'gzip' })
    expect(gunzipSync(packed.body).toString()).toBe(expected)
    expect(packed.headers.etag).toBe(plain.headers.etag?.replace(/"$/, '-gzip"'))
  }
})

test('a filtered feed has its own ETag, and conditional requests use it', async () => {
  const { get, head } = await serveFeeds()
  const whole = await get(PATH)
  const part = await get(`${PATH}?ecosystem=npm`)
  expect(part.headers.etag).not.toBe(whole.headers.etag)
  expect(part.headers['last-modified']).toBe(whole.headers['last-modified'])
  const again = await get(`${PATH}?ecosystem=npm`, { 'If-None-Match': part.headers.etag ?? '' })
  expect(again.status).toBe(304)
  const headed = await head(`${PATH}?ecosystem=npm`)
  expect({ ...headed.headers, date: '' }).toEqual({ ...part.headers, date: '' })
})

test('an unknown ecosystem is a 400 that names the six known ones', async () => {
  const { get } = await serveFeeds()
  for (const name of ['rust', 'Alpine', ' npm', 'constructor']) {
    const reply = await get(`${PATH}?ecosystem=${encodeURIComponent(name)}`)
    expect([reply.status, jsonOf(reply)['error']]).toEqual([400, 'bad_request'])
    expect(jsonOf(reply)['message']).toContain('alpine, debian, ubuntu, pypi, npm, maven')
  }
})

test('a filter that is given twice is a 400 that names it', async () => {
  const { get } = await serveFeeds()
  for (const name of ['ecosystem', 'os_distro_major', 'package_src_name'])
    for (const [one, other] of [
      ['npm', 'npm'],
      ['npm', 'debian'],
      ['', 'npm'],
    ]) {
      const reply = await get(`${PATH}?${name}=${one}&unknown=1&${name}=${other}`)
      expect([name, one, reply.status]).toEqual([name, one, 400])
      expect(jsonOf(reply)['message']).toContain(`${name} is given 2 times`)
    }
  expect((await get(`${PATH}?unknown=1&unknown=2`)).status).toBe(200)
})

test('a parameter that is no filter is named in a response header', async () => {
  const { get } = await serveFeeds()
  const misspelled = await get(`${PATH}?ecosytem=npm&x%20y=1`)
  expect(misspelled.headers['x-mirror-ignored-parameters']).toBe('ecosytem, x%20y')
  const filtered = await get(`${PATH}?ecosystem=npm&v=2`)
  expect(filtered.headers['x-mirror-ignored-parameters']).toBe('v')
  const own = (await get(`${PATH}?ecosystem=npm`)).headers
  expect(own['x-mirror-ignored-parameters']).toBeUndefined()
})

test('the older CVE feed has the same shape and takes the same filters', async () => {
  const feeds = { ...FEEDS, '/external/cve_feed': '{"npm": [1], "maven": [ ]}' }
  const { get } = await serve((store) => store.publishFeeds(feeds))
  expect((await get('/external/cve_feed?ecosystem=maven')).body.toString()).toBe('{"maven":[ ]}')
})

test('a new snapshot changes the whole feed and its filtered answers', async () => {
  const served = await serve((store) => store.publishFeeds(FEEDS))
  const before = await served.get(`${PATH}?ecosystem=npm`)
  served.store.publishFeeds({ ...FEEDS, [PATH]: '{"npm":["new"]}' }, FILLED_AT + 60_000)
  served.server.snapshotChanged()
  expect((await served.get(PATH)).body.toString()).toBe('{"npm":["new"]}')
  const after = await served.get(`${PATH}?ecosystem=npm`)
  expect(after.body.toString()).toBe('{"npm":["new"]}')
  expect(after.headers['x-mirror-snapshot']).not.toBe(before.headers['x-mirror-snapshot'])
})

test('a new snapshot of the feeds does not change the records', async () => {
  const served = await serve((store) => {
    store.publishOsv({ one: '{}' })
    store.publishFeeds(FEEDS)
  })
  const before = await served.get('/external/osv/one.json')
  served.store.publishFeeds({ ...FEEDS, [PATH]: '{}' }, FILLED_AT + 60_000)
  served.server.snapshotChanged()
  const after = await served.get('/external/osv/one.json')
  expect({ ...after.headers, date: '' }).toEqual({ ...before.headers, date: '' })
})

test('the slices of a JSON object are its members, in any layout', () => {
  const layouts = fc.constantFrom(undefined, 1, '\t')
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), layouts, (value, indent) => {
      const text = Buffer.from(JSON.stringify(value, null, indent))
      const sliced = [...membersOf(text, 0)].map(({ name, value: slice }) => [
        name,
        JSON.parse(sliceText(text, slice)) as unknown,
      ])
      expect(sliced).toEqual(Object.entries(JSON.parse(text.toString()) as object))
    }),
  )
})

test('the slices of a JSON list are its elements, and text that is not JSON is refused', () => {
  fc.assert(
    fc.property(fc.array(fc.jsonValue()), (list) => {
      const text = Buffer.from(JSON.stringify(list, null, 1))
      const sliced = [...elementsOf(text, 0)].map((slice) => JSON.parse(sliceText(text, slice)) as unknown)
      expect(sliced).toEqual(JSON.parse(text.toString()))
    }),
  )
  for (const bad of ['[1 2]', '[', '["a', '[{"a":1]', '[,]'])
    expect(() => [...elementsOf(Buffer.from(bad), 0)]).toThrow('unexpected JSON')
  for (const bad of ['{"a" 1}', '{a:1}', '{"a":}', '{"a":1 "b":2}', '{'])
    expect(() => [...membersOf(Buffer.from(bad), 0)]).toThrow('unexpected JSON')
})

test('a feed of another shape is filtered as far as possible', () => {
  const text = Buffer.from('{"alpine": [], "npm": [1, {"packages": 2}, {"distroversion": 3.1}], "at": 7}')
  const index = indexOf(text)
  const narrow = (release: string | null, packageName: string | null) =>
    atOnce(filterPatchFeed(text, index, { ecosystem: null, release, packageName })).toString()
  expect(narrow('3.1', null)).toBe('{"alpine":[],"npm":[{"distroversion": 3.1}],"at":7}')
  expect(narrow(null, 'curl')).toBe('{"alpine":[],"npm":[],"at":7}')
})

function indexOf(text: Buffer): PatchIndex {
  const index = atOnce(indexPatchFeed(text))
  if (index === null || index === 'no tree') throw new Error(`the feed counts as ${index ?? 'large'}`)
  return index
}

/** Does all steps, and counts none. */
function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
  }
}

test.each([
  ['tree', (text: Buffer) => indexPatchFeed(text), '{"pkg":{"name":"a"}}', ['{"npm":[{"packages":[', ']}]}']],
  ['list of rows', (text: Buffer) => indexRows(text, 1e6), '{"name":"a"}', ['[', ']']],
] as const)(
  'a large %s is indexed in steps, so that other requests are answered meanwhile',
  (_, index, entry, [start, end]) => {
    const steps: Steps<unknown> = index(Buffer.from(start + Array(10_000).fill(entry).join(',') + end))
    let count = 0
    while (steps.next().done !== true) count++
    expect(count).toBeGreaterThanOrEqual(10_000 / STEP - 1)
  },
)

test.each([
  ['tree', indexPatchFeed, '{"npm":[{"other":', '}]}'],
  ['list of rows', (text: Buffer) => indexRows(text, 1e6), '[{"other":', '}]'],
  ['feed of unknown shape', isTree, '{"other":', '}'],
] as const)('an entry that is no package is skipped when a %s is filtered in steps', (_, index, start, end) => {
  const text = Buffer.from(`${start}[${'1,'.repeat(1e6)}1]${end}`)
  const steps: Steps<unknown> = index(text)
  let count = 0
  while (steps.next().done !== true) count++
  expect(count).toBeGreaterThan(text.length / 100_000)
})

test.each([
  ['tree', [`{"npm":[{"packages":[`, ']}]}'], '{"pkg":{"name":"a"}}'],
  ['list of rows', ['[', ']'], '{"name":"a"}'],
] as const)('a large %s is filtered in steps', (shape, [start, end], entry) => {
  const text = Buffer.from(start + Array(10_000).fill(entry).join(',') + end)
  const filter = { ecosystem: null, release: null, packageName: 'a' }
  const rows = shape === 'tree' ? null : atOnce(indexRows(text, 1e6))
  if (rows === 'too many') throw new Error('the feed counts as too large')
  const steps = rows === null ? filterPatchFeed(text, indexOf(text), filter) : filterRows(text, rows, filter)
  let count = 0
  let step = steps.next()
  for (; step.done !== true; step = steps.next()) count++
  expect(step.value.equals(text)).toBe(true)
  expect(count).toBeGreaterThanOrEqual(20_000 / STEP) // found and copied
})

const row = (ecosystem: string, release: string, name: string): object => ({
  Ecosystem: ecosystem,
  os_distro_major: release,
  packageSrcName: name,
  fixed: '1.0e400',
})
const ROWS = [row('Alpine', '3.18', 'curl'), row('alpine', '3.19', 'curl'), row('npm', '', 'c"url')]

test.each([
  ['in an array', (rows: object[]) => JSON.stringify(rows)],
  ['under data', (rows: object[]) => JSON.stringify({ data: rows, meta: { total: rows.length } })],
  ['two levels deep', (rows: object[]) => JSON.stringify({ result: { rows }, x: [1] })],
])('a feed of rows %s is served whole, and filtered by the fields that it has', async (_, feed) => {
  const whole = ` ${feed(ROWS)}\n`
  const { get } = await serve((store) => store.publishFeeds({ ...FEEDS, [PATH]: whole }))
  const body = async (query: string) => (await get(PATH + query)).body.toString()
  expect(await body('')).toBe(whole)
  const some = (...at: number[]) => ` ${feed(ROWS.filter((_, index) => at.includes(index)))}\n`
  expect(await body('?ecosystem=alpine')).toBe(some(0, 1))
  expect(await body('?ecosystem=alpine&os_distro_major=3.19')).toBe(some(1))
  expect(await body('?package_src_name=curl')).toBe(some(0, 1))
  expect(await body('?package_src_name=c%22url')).toBe(some(2))
  expect(await body('?ecosystem=debian')).toBe(some())
  expect(await body('?package_src_name=url')).toBe(some())
})

test.each([
  ['[{"a":"alpine","package":{"name":"curl"}}]', '?package_src_name=curl', 200],
  ['[{"a":"alpine","package":{"name":"curl"}}]', '?ecosystem=alpine', 501],
  ['[{"ecosystem":"7","release":"3.18"}]', '?ecosystem=alpine', 501],
  ['[{"ecosystem":"alpine"}]', '?os_distro_major=3.18', 501],
  ['{"data":{"alpine":[{}],"debian":[{}]}}', '?ecosystem=alpine', 501],
  ['{"alpine":{"3.18":{"curl":{"CVE-1":"8"}}}}', '?ecosystem=alpine', 200],
  ['{"alpine":{"3.18":{"curl":{"CVE-1":"8"}}}}', '?os_distro_major=3.18', 501],
  ['{"alpine":{"3.18":{"curl":{"CVE-1":"8"}}}}', '?package_src_name=curl', 501],
  ['{"alpine":{"3.18":{}},"rhel":{}}', '?ecosystem=alpine', 501],
  ['{"alpine":[{"packages":[{"pkg":{"name":"curl"}}]}]}', '?os_distro_major=3.18', 501],
  ['{"alpine":[{"distroversion":"3.18"}]}', '?package_src_name=curl', 501],
  ['{"alpine":[{"distro_version":"3","packages":[{"name":"curl"}]}]}', '?package_src_name=curl', 200],
  ['{"alpine":[{"distroversion":"3","packages":[{"src":"curl"}]}]}', '?package_src_name=curl', 501],
  ['[{"attributes":{"ecosystem":"alpine"},"fixed":"1"}]', '?ecosystem=alpine', 200],
  ['[{"attributes":{"name":"curl"}}]', '?package_src_name=curl', 200],
  ['[{"cve":"CVE-1","reporter":{"name":"curl"}}]', '?package_src_name=curl', 501],
  ['[{"cve":"CVE-1","reporter_name":"curl"}]', '?package_src_name=curl', 501],
  ['{"systems":[{"name":"curl"}],"fixed":{"curl":{"CVE-2026-1":"8"}}}', '?package_src_name=curl', 501],
])('for a feed of %s the filter %s is answered %i', async (feed, query, status) => {
  const { get } = await serve((store) => store.publishFeeds({ ...FEEDS, [PATH]: feed }))
  const reply = await get(PATH + query)
  expect([reply.status, (await get(PATH)).body.toString()]).toEqual([status, feed])
  if (status !== 501) return
  expect(jsonOf(reply)['error']).toBe('not_supported')
  const [name = ''] = query.slice(1).split('=')
  expect(jsonOf(reply)['message']).toContain(`no field for ${name} can be found`)
})

test('a feed that begins with a byte order mark is filtered as any other', () => {
  const filter = { ecosystem: null, release: null, packageName: 'curl' }
  const tree = Buffer.from('\ufeff{"npm":[{"packages":[{"pkg":{"name":"curl"}},{}]}]}')
  expect(atOnce(isTree(tree))).toBe(true)
  expect(atOnce(filterPatchFeed(tree, indexOf(tree), filter)).toString()).toBe(
    '{"npm":[{"packages":[{"pkg":{"name":"curl"}}]}]}',
  )
  const rows = Buffer.from('\ufeff[{"name":"curl"},{"name":"b"}]')
  const index = atOnce(indexRows(rows, 10))
  if (index === null || index === 'too many') throw new Error('the rows are not found')
  expect(atOnce(filterRows(rows, index, filter)).toString()).toBe('\ufeff[{"name":"curl"}]')
})

test('a package name is found in any JSON spelling, and no other name is', () => {
  const names = ['"curl"', '"c\\u0075rl"', '"curl2"', '"Curl"', '12', '""', '"a\\"b"']
  const entries = names.map((name) => `{"pkg":{"name":${name}}}`)
  const text = Buffer.from(`{"npm":[{"packages":[${entries.join()},{},{"pkg":{}}]}]}`)
  const index = indexOf(text)
  const found = (packageName: string) =>
    atOnce(filterPatchFeed(text, index, { ecosystem: null, release: null, packageName })).toString()
  const feed = (...kept: (string | undefined)[]) => `{"npm":[{"packages":[${kept.join()}]}]}`
  expect(found('curl')).toBe(feed(entries[0], entries[1]))
  expect(found('12')).toBe(feed(entries[4]))
  expect(found('a"b')).toBe(feed(entries[6]))
  expect(found('url')).toBe('{"npm":[]}')
})

longTest('a feed with too many entries is served whole, and a filter of it is refused', async () => {
  const parts = Buffer.from('{"npm":[{"packages":[{},{},{}]}]}')
  expect(atOnce(indexPatchFeed(parts, 5))).not.toBeNull()
  expect(atOnce(indexPatchFeed(parts, 4))).toBeNull()
  expect(atOnce(indexPatchFeed(Buffer.from('{"npm":[1,2,3]}'), 3))).toBeNull()
  const huge = `{"npm":[{"packages":[${'{},'.repeat(1_000_000)}{}]}]}`
  const { get } = await serve((store) => store.publishFeeds({ ...FEEDS, [PATH]: huge }))
  for (let again = 0; again < 2; again++) {
    const reply = await get(`${PATH}?package_src_name=curl`)
    expect([reply.status, jsonOf(reply)['error']]).toEqual([503, 'upstream_too_large'])
    expect(jsonOf(reply)['message']).toContain('too many entries')
    expect(reply.headers['retry-after']).toBeUndefined() // it lasts
  }
  expect((await get(PATH)).body).toHaveLength(huge.length)
})

test('a damaged document is a 503 in every content coding, the same at each request, and is logged', async () => {
  const served = await serve((store) => {
    store.publishFeeds(FEEDS)
    store.damage(
      `UPDATE document SET body = CAST(substr(body, 1, 20) || zeroblob(length(body) - 28) || substr(body, -8) AS BLOB)
       WHERE path = '/external/patch_feed'`,
    )
  })
  for (const coding of ['gzip', 'identity', 'gzip']) {
    const reply = await served.get('/external/patch_feed', { 'Accept-Encoding': coding })
    expect([coding, reply.status, jsonOf(reply)['error']]).toEqual([coding, 503, 'corrupt'])
  }
  expect(served.errors.length).toBeGreaterThan(0)
  const sound = await served.get('/external/globals/sys_matrix', { 'Accept-Encoding': 'gzip' })
  expect(sound.status).toBe(200)
})
