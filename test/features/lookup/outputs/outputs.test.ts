import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { Frame } from '../../../../src/base/json/envelope.ts'
import { afterAll, beforeAll, expect } from 'vitest'
import { longTest, test } from '../../../support/tables.ts'
import { createPageMaker } from '../../../../src/features/pages/make-page.ts'
import { makeOsvViews } from '../../../../src/features/scanners/views/osv/views.ts'
import { openShortReads } from '../../../../src/store/reads.ts'
import type { FetchedAnswer } from '../../../../src/store/catalog/answer-writes.ts'
import { openWriter } from '../../../../src/store/database/open.ts'
import { type Writes, openWrites } from '../../../../src/store/writes.ts'
import { load } from '../../../config/loading.ts'
import { FILLED_AT, openFilledStore } from '../../../support/filled-store.ts'
import { commandHost } from '../../../support/hosted.ts'

/** What answers look like in the terminal and on a page, as files: `npx vitest run test/features/lookup/outputs --update` writes them. */
const NOW = FILLED_AT + 3 * 86_400_000
const HOSTILE = `<b>&"'\u202e\u001b[2J`
const DIGEST = `sha256:${'ab'.repeat(32)}`

const RECORDS = {
  'ORD-1': JSON.stringify({
    id: 'ORD-1',
    modified: '2026-06-01T00:00:00Z',
    published: '2026-05-01T00:00:00Z',
    aliases: ['CVE-2026-1', 'CVE-2026-2'],
    summary: 'A summary',
    details: 'First line\nsecond line',
    severity: [{ type: 'CVSS_V3', score: 'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H' }],
    database_specific: { severity: 'HIGH' },
    affected: [
      {
        package: { ecosystem: 'npm', name: 'lodash', purl: 'pkg:npm/lodash' },
        ranges: [
          { type: 'SEMVER', events: [{ introduced: '0' }, { fixed: '4.17.21' }] },
          { type: 'SEMVER', events: [{ introduced: '5.0.0' }, { fixed: '5.1.0' }] },
        ],
        versions: ['1.0.0', '1.0.1'],
      },
      { package: { ecosystem: 'Debian:12', name: 'node-lodash' }, versions: ['4.17.20'] },
      { package: { ecosystem: 'PyPI', name: 'third' } },
    ],
    references: [
      { type: 'WEB', url: 'https://example.com/a?b=1&c=2' },
      { type: 'FIX', url: 'javascript:alert(1)' },
      { type: 'ADVISORY', url: 'https://example.com/c' },
    ],
  }),
  'GONE-1': '{"id":"GONE-1"}',
  'WITHDRAWN-1': JSON.stringify({
    id: 'WITHDRAWN-1',
    modified: '2026-06-01T00:00:00Z',
    withdrawn: `2026-06-02T00:00:00Z ${HOSTILE}`,
    summary: HOSTILE,
    related: [HOSTILE],
    affected: [{ package: { ecosystem: HOSTILE, name: HOSTILE } }],
  }),
  'BAD-1': '{"id":"BAD-1","affected":7,"aliases":{},"references":"x","severity":3,"modified":[]}',
  'BAD-2': 'no JSON at all',
  'EMPTY-1': '{"id":"EMPTY-1"}',
}

/** Records that all name another id, more than a page shows. */
const MANY = Object.fromEntries(
  Array.from({ length: 120 }, (_, at) => [`M-${at}`, JSON.stringify({ id: `M-${at}`, aliases: ['MANY-1'] })]),
)

const TAGS = {
  whole: {
    id: 'whole',
    name: '3.12',
    repository: 'library/python',
    digest: DIGEST,
    updated_at: '2026-06-03T00:00:00Z',
    remediated: true,
    counts: { critical: 1, high: 2 },
  },
  parts: { id: 'parts', name: '3.13', repository: 'library/python' },
  outside: { id: 'outside', name: 'old', repository: `library/${HOSTILE}` },
  empty: {},
}

const PATCHES = {
  p1: {
    id: 'p1',
    cve_id: 'CVE-2026-1',
    package_src_name: 'openssl',
    version: '3.0.11-1~deb12u2+root.io.1',
    ecosystem: 'debian',
    os_distro_major: '12',
    severity: 'critical',
    ticket_status: 'open',
    patch_status: 'available',
    updated_at: '2026-06-03T00:00:00Z',
  },
  p2: { id: 'p2', cveId: 'CVE-2026-2', packageSrcName: 'curl', ecosystem: 'npm', severity: 'low' },
  p3: { id: 'p3', cve_id: HOSTILE, package_src_name: HOSTILE, version: HOSTILE, updated_at: HOSTILE },
}

const IMAGES = {
  i1: { id: 'i1', repository: 'library/python', updated_at: '2026-06-03T00:00:00Z' },
  i2: { id: 'i2', name: HOSTILE },
}

/** How a page of a list is made: `{"items": [], "next": null, "total": 0}`. */
const FRAME: Frame = {
  envelope: { items: [], next: null, total: 0 },
  items: ['items'],
  cursor: ['next'],
  url: false,
  link: null,
  also: [],
  ending: 'null',
  total: ['total'],
  limit: null,
  shown: null,
  pages: null,
  more: [],
  back: [],
  learned: true,
}
const FIELDS = ['id', 'cve_id', 'ecosystem', 'severity']
const LISTS = { tags: TAGS, patches: PATCHES, images: IMAGES }

const run = commandHost()
const dir = mkdtempSync(join(tmpdir(), 'patchmirror-answers-'))
let page: (path: string, query: string, env?: Record<string, string>) => string
let close = (): void => undefined

beforeAll(async () => {
  const filled = openFilledStore(dir)
  filled.publishOsv({ 'ORD-1': '{"id":"ORD-1"}', 'GONE-1': RECORDS['GONE-1'] }, FILLED_AT - 86_400_000)
  const { 'GONE-1': _, ...records } = RECORDS
  filled.publishOsv({ ...records, ...MANY })
  filled.close()
  const store = openWrites(dir)
  await storeTags(store)
  store.close()
  const reads = openShortReads(dir)
  if (reads === null) throw new Error('no database')
  await makeOsvViews({ dataDir: dir, reads: reads.reads, vendors: [], pause: () => Promise.resolve() })
  close = () => reads.close()
  page = (path, query, env = {}) => {
    const { config } = load({ env: { PATCHMIRROR_DATA_DIR: dir, ...env } })
    const make = createPageMaker(
      { config, version: 'test', style: 's.css', script: 's.js', icon: 'i.svg' },
      () => reads,
    )
    const asked = { page: path, query, signedIn: true, status: null, now: NOW, served: null }
    const { status, body } = make({ ...asked, problem: null, base: '/m', origin: 'http://localhost' })
    return `${status}\n${mainOf(Buffer.from(body).toString())}`
  }
})
afterAll(() => {
  close()
  rmSync(dir, { recursive: true, force: true })
})

/** Stores a list of tags, and the artifacts of two of them: a document, none of the service's, a refused one, a failed one. */
async function storeTags(store: Writes): Promise<void> {
  const sink = store.catalog.openDocument()
  sink.write(Buffer.from('{"bomFormat":"CycloneDX","specVersion":"1.6","components":[{"name":"a","version":"1"}]}'))
  await sink.pack(true)
  const { digest } = sink.end('application/json', FILLED_AT / 1000)
  const keep = (id: string, kind: string, status: number, more: Partial<FetchedAnswer> = {}): string => {
    const path = `/v1/tags/${id}${kind}`
    const owned = { path, resource: 'tags', owner: `tags/${id}`, ownerSha: Buffer.from('x') }
    const body = { status, body: gzipSync('{}'), size: 2, sha256: Buffer.alloc(32), etag: null }
    store.catalog.keepFetched({ ...owned, ...body, links: [], mentions: [], confirmedAt: FILLED_AT, ...more })
    return path
  }
  const links = [{ at: [], digest }]
  const text = JSON.stringify({ ...TAGS.whole, note: HOSTILE })
  const paths = [
    keep('whole', '', 200, { body: gzipSync(text), size: Buffer.byteLength(text), mentions: ['avr-1'] }),
    keep('whole', '/sbom', 200, { links }),
    keep('whole', '/vex', 404),
    keep('parts', '', 200),
    keep('parts', '/sbom', 200, { links }),
  ]
  const missing = [
    { path: '/v1/tags/parts/vex', resource: 'tags', reason: 'upstream answers 403', status: 403 },
    { path: '/v1/subscriptions', resource: 'subscriptions', reason: 'upstream answers 500' },
    { path: '/v1/tags/parts/provenance', resource: 'tags', reason: `upstream answers ${HOSTILE}` },
  ]
  await store.transaction(() => {
    for (const [resource, items] of Object.entries(LISTS)) {
      const entries = Object.entries(items).map(([id, item]) => {
        return { id, body: Buffer.from(JSON.stringify(item)), sha: Buffer.alloc(16, 'x'), facets: [] }
      })
      const page = { cursor: null, next: null, etag: null, lastModified: null, number: 0, entries: entries.length }
      store.catalog.staging.stagePage(`/v1/${resource}`, { ...page, sha256: Buffer.alloc(32) }, entries)
      store.catalog.replaceList(`/v1/${resource}`, resource, JSON.stringify(FRAME), FIELDS, FILLED_AT)
    }
    store.catalog.publishPaths(paths, FILLED_AT)
    store.catalog.replaceMissingPaths(() => true, missing)
    const runId = store.runs.startRun({ source: 'catalog', kind: 'sync', trigger: 'start', startedAt: FILLED_AT })
    const about = { source: 'catalog', id: 'aa', runId, publishedAt: FILLED_AT, asOf: FILLED_AT, records: 4 } as const
    store.snapshots.replaceSnapshot({ ...about, whole: true })
    const end = { state: 'complete', code: null, message: null, facts: {} } as const
    store.runs.endRun(runId, { ...end, endedAt: FILLED_AT, asOf: FILLED_AT, snapshot: 'aa' })
    return Promise.resolve({ commit: true })
  })
}

/** Returns what a page shows below its navigation, an element a line, without elements that say nothing. */
function mainOf(html: string): string {
  const main = html.slice(html.indexOf('<h1>'), html.indexOf('</main>'))
  const plain = main.replaceAll(/<\/?bdi>|<span class="item">|<\/span>|<\/(?:t[dhr]|dd|dt|div)>/g, '')
  return plain.replaceAll(/<(?:dt|td|tr|th |h2|section)/g, '\n$&').replaceAll(/ *\n\s*/g, '\n')
}

/** Runs a command and returns what it prints but for the lines on the sources, whose age is that of now. */
async function terminal(args: string[], env: Record<string, string> = {}): Promise<string> {
  const { code, out, err } = await run(args, { PATCHMIRROR_DATA_DIR: dir, ...env }, '/')
  const text = `${out}${err}`.replaceAll(/^(?:osv|catalog): snapshot .*\n/gm, '')
  return `exit code ${code}\n${text.replaceAll(/"ageSeconds": \d+/g, '"ageSeconds": 0')}`
}

test('the answer about a record stays as it is, in the terminal and on a page', async () => {
  const parts: string[] = []
  for (const id of [...Object.keys(RECORDS), 'UNKNOWN-1']) {
    const limit = id === 'ORD-1' ? ['--limit', '2'] : []
    parts.push(
      `=== ${id}\n--- terminal\n${await terminal(['show', id, ...limit])}--- page\n${page('record', `id=${id}`)}`,
    )
  }
  parts.push(`=== JSON\n${await terminal(['show', 'ORD-1', '--json'])}`)
  await expect(parts.join('\n')).toMatchFileSnapshot('./record.txt')
})

test('the answer about a tag stays as it is, in the terminal and on a page', async () => {
  const parts: string[] = []
  for (const id of [...Object.keys(TAGS), 'unknown'])
    parts.push(`=== ${id}\n--- terminal\n${await terminal(['show', id])}--- page\n${page('tag', `id=${id}`)}`)
  parts.push(`=== a set of artifacts that nothing names\n${page('avr', 'id=avr-2')}`)
  parts.push(`=== JSON\n${await terminal(['show', 'parts', '--json'])}`)
  await expect(parts.join('\n')).toMatchFileSnapshot('./tag.txt')
})

const SEARCHES = [
  'ORD-1',
  '1',
  'CVE-2026-1',
  'lodash',
  'pkg:npm/lodash@1.0.0',
  'pkg:npm/none',
  'pkg:none/a',
  'library/python',
  'python',
  HOSTILE,
]

test('the answer to a search stays as it is, in the terminal and on a page', async () => {
  const parts: string[] = []
  for (const text of [...SEARCHES, 'old'])
    parts.push(
      `=== ${text.replaceAll(/\p{C}/gu, '?')}\n--- terminal\n${await terminal(['search', text])}` +
        `--- page\n${page('search', new URLSearchParams({ q: text }).toString())}`,
    )
  parts.push(`=== more\n${await terminal(['search', 'library/python', '--limit', '1'])}`)
  parts.push(`=== JSON\n${await terminal(['search', 'CVE-2026-1', '--json'])}`)
  parts.push(`=== JSON\n${await terminal(['search', 'library/python', '--json', '--limit', '1'])}`)
  await expect(parts.join('\n')).toMatchFileSnapshot('./search.txt')
})

longTest('the lists of the catalog stay as they are, in the terminal and on a page', async () => {
  const lists: [string, string[]][] = [
    ['patches', ['list', 'patches']],
    ['patches?after=', ['list', 'patches', '--limit', '1']],
    ['patches?cve_id=CVE-1', ['list', 'patches', '--cve', 'CVE-1']],
    ['images', ['list', 'tags']],
    ['images?sort=name&image=library/python', ['list', 'tags', '--limit', '2', '--json']],
  ]
  const parts: string[] = []
  for (const [shown, args] of lists) {
    const [name = '', query = ''] = shown.split('?')
    parts.push(`=== ${args.join(' ')}\n--- terminal\n${await terminal(args)}--- page\n${page(name, query)}`)
  }
  await expect(parts.join('\n')).toMatchFileSnapshot('./lists.txt')
})

test('a list that was cut off says so in the terminal and on a page, and no filter denies what may be missing', async () => {
  const setFrame = (frame: Frame): void => {
    const db = openWriter(dir)
    db.prepare("UPDATE catalog_list SET frame = ? WHERE path IN ('/v1/tags', '/v1/patches')").run(JSON.stringify(frame))
    db.close()
  }
  setFrame({ ...FRAME, partial: 'the walk broke off' })
  try {
    const why = 'the list is not known to be complete: the walk broke off'
    expect(await terminal(['list', 'tags'])).toContain(why)
    expect(await terminal(['list', 'patches'])).toContain(why)
    expect(await terminal(['list', 'tags', '--json'])).toContain(`"incomplete": "${why}"`)
    expect(page('images', '')).toContain(why.replace('the list', 'The list'))
    expect(page('images', 'q=none-of-these')).toContain('No stored tag fits this filter.')
  } finally {
    setFrame(FRAME)
  }
  expect(page('images', 'q=none-of-these')).toContain('No tag fits this filter.')
})

test('the pages of a search show each record by another id, page by page', () => {
  const seen: string[] = []
  let query: string | undefined = 'q=MANY-1'
  while (query !== undefined && seen.length < 1000) {
    const shown = page('search', query)
    seen.push(...[...shown.matchAll(/record\?id=(M-\d+)"/g)].map(([, id = '']) => id))
    query = /rel="next" href="[^"?]*\?([^"]*)"/.exec(shown)?.[1]?.replaceAll('&amp;', '&')
  }
  expect(seen.sort()).toEqual(Object.keys(MANY).sort())
})

test('a page about artifacts is refused where the catalog is too old to be served', () => {
  const env = { PATCHMIRROR_SERVER_STALE_ACTION: 'catalog=refuse', PATCHMIRROR_SYNC_MAX_AGE_HOURS: 'catalog=1' }
  for (const [path, id] of [
    ['tag', 'whole'],
    ['tag', 'outside'],
    ['avr', 'avr-2'],
  ] as const) {
    const shown = page(path, `id=${id}`, env)
    expect([path, id, shown]).toEqual([path, id, expect.stringMatching(/^503\n/)])
    expect(shown).toContain('sync.maxAgeHours')
  }
})

test('a tag is not called out of scope by a mirror that never read the subscriptions', async () => {
  const env = { PATCHMIRROR_UPSTREAM_API_ROOT: 'http://127.0.0.1:1', PATCHMIRROR_UPSTREAM_API_KEY: 'x' }
  for (const shown of [page('tag', 'id=outside', env), await terminal(['show', 'outside'], env)]) {
    expect(shown).not.toContain('not in scope')
    expect(shown).toContain('whether it is in scope is not known without the subscriptions (upstream answers 500)')
  }
})
