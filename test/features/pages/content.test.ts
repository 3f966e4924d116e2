import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { longTest, test } from '../../support/tables.ts'
import { PAGES } from '../../../src/features/pages/pages.ts'
import { makeOsvViews } from '../../../src/features/scanners/views/osv/views.ts'
import { openInbox } from '../../../src/store/database/open.ts'
import { createInbox } from '../../../src/store/webhooks/inbox.ts'
import { openShortReads } from '../../../src/store/reads.ts'
import { createWeb } from '../../../src/features/pages/web.ts'
import { type Served, FEEDS, closeAll, serve } from '../../server/served.ts'
import { atomEntries } from '../../support/atom.ts'
import { TEST_KEY } from '../../support/keys.ts'
import { FILLED_AT, openFilledStore } from '../../support/filled-store.ts'

const KEY = { authorization: `Basic ${Buffer.from(`${TEST_KEY}:`).toString('base64')}` }
const NO_KEY = { authorization: '' }
const MARKUP = `"><script>alert(1)</script><img src=x onerror='alert(2)'>`
const HOSTILE = `${MARKUP}\u202egnp.exe\u2066\u0000`

const record = (id: string, more: object = {}): string =>
  JSON.stringify({
    id,
    modified: '2026-06-01T00:00:00Z',
    aliases: ['CVE-2026-77', `alias ${MARKUP}`],
    affected: [
      {
        package: { ecosystem: 'Debian:12', name: 'openssl', purl: 'pkg:deb/debian/openssl' },
        ranges: [{ type: 'ECOSYSTEM', events: [{ introduced: '0' }, { fixed: '3.0.1-2' }] }],
      },
    ],
    references: [
      { type: 'WEB', url: 'https://example.com/a?b=1&c="2"' },
      { type: 'WEB', url: 'javascript:alert(1)' },
    ],
    ...more,
  })

const EVIL = `CVE-${MARKUP}`
const RECORDS: Record<string, string> = {
  'CVE-2026-1': record('CVE-2026-1', { summary: 'A plain summary', details: 'line 1\nline 2' }),
  [EVIL]: record(EVIL, {
    summary: HOSTILE,
    details: `${MARKUP}${'d'.repeat(2_000_000)}`,
    severity: [{ type: HOSTILE, score: { deep: [] } }],
    database_specific: { severity: HOSTILE },
    affected: Array.from({ length: 250 }, (_, at) => ({
      package: { ecosystem: 'Debian', name: `${HOSTILE}${at}` },
      versions: [HOSTILE, 1, null],
      ranges: [{ type: HOSTILE, events: [{ introduced: HOSTILE }, { fixed: 7 }, null] }],
    })),
    references: [{ type: HOSTILE, url: `https://${HOSTILE}` }, 'x', null],
    withdrawn: HOSTILE,
  }),
  'BAD-1': '{"id":"BAD-1","affected":7,"aliases":{},"references":"x","severity":3,"modified":[]}',
  'BAD-2': 'no JSON at all',
}

let served: Served
let run: { quarantined: number; compared: number; feed: number; catalog: number; repeated: number }
const dir = mkdtempSync(join(tmpdir(), 'patchmirror-web-'))

beforeAll(async () => {
  const store = openFilledStore(dir)
  store.publishOsv({ 'CVE-2026-1': '{"id":"CVE-2026-1"}', 'OLD-1': '{"id":"OLD-1"}' }, FILLED_AT - 86_400_000)
  store.publishOsv(RECORDS)
  store.publishFeeds(FEEDS)
  for (let at = 0; at < 120; at++) store.addRun('osv', FILLED_AT + at, { message: `run ${at} ${HOSTILE}` })
  const facts = {
    plannedRemoved: 40,
    plannedRemovedIds: ['CVE-2026-1', EVIL],
    requests: 3,
    lackingIds: [`GONE-1: ${HOSTILE}`],
    doubts: 57,
    doubtfulIds: ['CVE-2026-1: npm a: fix lowered from 2.0.0 to 1.0.0', `OLD-2: ${HOSTILE}`],
  }
  const ids = ['CVE-2026-1', 'BAD-1', ...Array.from({ length: 150 }, (_, at) => `NEW-${at}`)]
  const index = ids.map((id) => ({ id, modified: id === 'BAD-1' ? '2027-01-01T00:00:00Z' : '2026-07-01T00:00:00Z' }))
  const feed = { alpine: [{ distroversion: '3.18', packages: [{ pkg: { name: 'curl', n: 2 } }] }], debian: [] }
  const owners = Array.from({ length: 120 }, (_, at) => `tags/${at}`)
  const gone = { owners, artifacts: [EVIL], lists: ['/v1/old'], '/v1/tags': { count: 1234 } }
  const refuse = (source: 'osv' | 'feeds' | 'catalog', path: string, content: unknown): number => {
    const id = store.addRun(source, FILLED_AT + 400, { state: 'quarantined' })
    const body = gzipSync(JSON.stringify(content))
    store.damage(
      `INSERT INTO quarantine (run_id, source, path, reason, sha256, body, as_of) VALUES
       (${id}, '${source}', '${path}', 'too much', x'${id.toString(16).padStart(8, '0')}', x'${body.toString('hex')}', 0)`,
    )
    return id
  }
  const compared = refuse('osv', '/external/osv/all.json', index)
  run = {
    compared,
    feed: refuse('feeds', '/external/patch_feed', feed),
    catalog: refuse('catalog', 'catalog', gone),
    repeated: store.addRun('osv', FILLED_AT + 450, {
      state: 'quarantined',
      facts: { quarantine: compared },
    }),
    quarantined: store.addRun('osv', FILLED_AT + 500, {
      state: 'quarantined',
      message: HOSTILE,
      facts,
    }),
  }
  store.damage(
    `INSERT INTO quarantine (run_id, source, path, reason, sha256, body, etag, last_modified, as_of)
     VALUES (${run.quarantined}, 'osv', '/external/osv/all.json', 'would remove 40 of 41 records', x'00', x'00', null, null, ${FILLED_AT})`,
  )
  store.damage(
    `INSERT INTO bundle_export VALUES (3, '${'ab'.repeat(32)}', '{"osv":{},"feeds":{}}', ${FILLED_AT}, null);
     INSERT INTO bundle_import VALUES (1, '${'cd'.repeat(16)}', 7, 'delta', '${'ef'.repeat(32)}', '{"osv":"00"}', null, ${FILLED_AT}, ${FILLED_AT}, ${FILLED_AT}, 1, 'b.zip')`,
  )
  store.close()
  const inbox = openInbox(dir)
  const common = { endpoint: 'default', dialect: 'standard', secret: '1', storedAt: FILLED_AT }
  const target = { repository: HOSTILE, tag: '1', digest: null, arch: null, subject: null }
  for (let at = 0; at < 60; at++)
    createInbox(inbox).receive({
      ...common,
      webhookId: `msg_${at}`,
      receivedAt: FILLED_AT + at,
      type: HOSTILE,
      target,
      ...(at === 0 ? { state: 'dead', reason: `was refused: ${HOSTILE}` } : { state: 'ignored', reason: null }),
      body: Buffer.from('{}'),
    })
  inbox.close()
  const reads = openShortReads(dir)
  if (reads === null) throw new Error('no database')
  await makeOsvViews({
    dataDir: dir,
    reads: reads.reads,
    vendors: [],
    pause: () => Promise.resolve(),
  })
  reads.close()
  served = await serve(() => undefined, {
    dir,
    keep: true,
    people: (config) => createWeb({ config, version: '9.9.9' }),
  })
})
afterAll(async () => {
  await closeAll()
  rmSync(dir, { recursive: true, force: true })
})

async function page(path: string, headers: Record<string, string> = KEY) {
  const { status, body } = await served.get(`/-/ui/${path}`, { accept: 'text/html', ...headers })
  return { status, html: body.toString() }
}

const of = (path: string, parameters: Record<string, string>): string =>
  `${path}?${new URLSearchParams(parameters).toString()}`

const TAG = /<(\/?)([a-z\d]+)((?:\s+[a-zA-Z-]+(?:="[^"<>]*")?)*)\s*>|</g
const VOID = new Set(['meta', 'link', 'input', 'br'])

/** What is wrong with a page's markup: tags that are not closed in order, elements and attributes that nobody wrote. */
function faultsOf(html: string): string[] {
  const open: string[] = []
  const faults: string[] = []
  for (const match of html.matchAll(TAG)) {
    const [tag, end, name = '', attributes = ''] = match
    if (name === '') faults.push(`a bare ${html.slice(match.index, match.index + 80)}`)
    else if (end === '/') {
      if (open.pop() !== name) faults.push(`</${name}> closes another element`)
    } else if (!VOID.has(name)) open.push(name)
    if (/\son\w+=/.test(attributes.replace(/"[^"]*"/g, '')) || /="javascript:/.test(attributes)) faults.push(tag)
    if (['script', 'img', 'iframe', 'style'].includes(name)) faults.push(tag)
  }
  return [...faults, ...open.map((name) => `<${name}> is not closed`)]
}

/** Leaves out the doctype, which is no element, and the one script that pages have. */
const bodyOf = (html: string): string =>
  html.replace('<!doctype html>', '').replace(/<script src="\/-\/ui\/script-[\da-f]{16}\.js" defer><\/script>/, '')

/** Where a page leads, by links and forms: the page, and the names of the parameters. */
function targetsOf(html: string): { address: string; path: string; names: string[] }[] {
  const unescape = (text: string): string =>
    text.replaceAll('&quot;', '"').replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&')
  const links = [...html.matchAll(/href="\/-\/ui\/([^"]*)"/g)].map(([, href = '']) => {
    const address = unescape(href)
    const [path = '', query = ''] = address.split('?')
    return { address, path, names: [...new URLSearchParams(query).keys()] }
  })
  const forms = [...html.matchAll(/<form class="filter" action="\/-\/ui\/([^"]*)".*?<\/form>/gs)].map(
    ([form, path = '']) => {
      const names = [...form.matchAll(/ name="([^"]*)"/g)].map(([, name = '']) => name)
      return { address: `${path}?${names.map((name) => `${name}=`).join('&')}`, path, names }
    },
  )
  return [...links, ...forms]
}

describe('the links and forms of pages', () => {
  test('have only parameters that the page they lead to takes', async () => {
    const waiting = [
      ...PAGES.flatMap(({ path, type }) => (type === undefined ? [path] : [])),
      ...Object.values(run).map((id) => of('run', { id: String(id) })),
      of('search', { q: 'CVE' }),
      of('changes', { since: '2026-06-30', source: 'osv' }),
    ]
    const seen = new Set<string>()
    const wrong: string[] = []
    for (const address of waiting) {
      const { status, html } = await page(address)
      if (status === 400 && html.includes('query parameter')) wrong.push(`${address}: 400`)
      for (const target of targetsOf(html)) {
        const declared = PAGES.find(({ path }) => path === target.path)?.parameters
        const unknown = declared && target.names.filter((name) => !(name in declared))
        if (unknown !== undefined && unknown.length > 0) wrong.push(target.address)
        const kind = [target.path, ...[...target.names].sort()].join(' ')
        if (declared === undefined || seen.has(kind)) continue
        seen.add(kind)
        waiting.push(target.address)
      }
    }
    expect(wrong).toEqual([])
    expect(seen.size).toBeGreaterThanOrEqual(30)
  })
})

describe('text of upstream on a page', () => {
  longTest('is escaped on every page, whatever it contains', async () => {
    const paths = [
      ...PAGES.flatMap(({ path, type }) => (type === undefined ? [path] : [])),
      of('changes', { since: '2026-06-30' }),
      of('changes', { entry: '2' }),
      of('changes', { since: HOSTILE }),
      of('record', { id: EVIL }),
      of('record', { id: EVIL, at: '200' }),
      of('record', { id: 'BAD-1' }),
      of('record', { id: 'BAD-2' }),
      of('record', { id: HOSTILE }),
      of('search', { q: HOSTILE }),
      of('search', { q: 'CVE-' }),
      of('packages', { ecosystem: 'Debian', prefix: '"' }),
      of('packages', { ecosystem: HOSTILE }),
      of('package', { ecosystem: HOSTILE, name: HOSTILE }),
      of('run', { id: String(run.quarantined) }),
      of('runs', { source: HOSTILE }),
    ]
    for (const path of paths) {
      const { html, status } = await page(path)
      expect([path, status, faultsOf(bodyOf(html))]).toEqual([path, status, []])
      expect(status, path).not.toBe(500)
      expect(html.length, path).toBeLessThan(1_000_000)
      expect(/[\u202a-\u202e\u2066-\u2069\0]/.test(html), path).toBe(false)
    }
  })

  test('is detected by this test when it is not escaped', () => {
    expect(faultsOf('<p>a</p>')).toEqual([])
    for (const html of ['<p>', '<p></b>', 'a < b', '<img>', '<p onclick="x">a</p>'])
      expect(faultsOf(html)).not.toEqual([])
  })
})

describe('the page of a record', () => {
  test('shows summary, fixes, references, other ids, views and its history', async () => {
    const { html } = await page(of('record', { id: 'CVE-2026-1' }), NO_KEY)
    for (const text of ['A plain summary', 'line 1\nline 2', 'from 0 before 3.0.1-2', 'CVE-2026-77'])
      expect(html).toContain(text)
    expect(html).toContain('href="https://example.com/a?b=1&amp;c=%222%22" rel="noopener noreferrer"')
    expect(html).not.toContain('href="javascript')
    expect(html).toContain('href="/external/osv/CVE-2026-1.json"')
    expect(html).toContain('href="/-/ui/packages?ecosystem=Debian"')
    expect(html).toMatch(/changed<[\s\S]*2026-07-01 00:00 UTC/)
    const dates = /Since when[\s\S]*first seen here[\s\S]*<time datetime="2026-0[\s\S]*fix first seen/
    expect(html).toMatch(dates)
  })

  test('says when the record was removed, is unknown or is not named', async () => {
    const removed = await page(of('record', { id: 'OLD-1' }))
    expect([removed.status, removed.html.includes('pstream does not list it any more')]).toEqual([404, true])
    expect(removed.html).toContain('first seen here')
    expect((await page(of('record', { id: 'NO-1' }))).status).toBe(404)
    expect((await page('record')).status).toBe(400)
  })

  test('with many packages shows them page by page', async () => {
    const first = await page(of('record', { id: EVIL }))
    const [, next = ''] = /rel="next" href="\/-\/ui\/([^"]*)"/.exec(first.html) ?? []
    const second = await page(next.replaceAll('&amp;', '&'))
    expect(second.html).toContain('101 to 200 of 250')
  })
})

describe('the page of a search', () => {
  test('finds records by id, by its beginning, in any case, and by another id', async () => {
    for (const q of ['CVE-2026-1', 'cve-2026-1', 'CVE-2026', 'cve-2026-77', 'pkg:deb/debian/openssl', 'openssl'])
      expect((await page(of('search', { q }))).html, q).toMatch(
        /CVE-2026-1<|package\?ecosystem=Debian&amp;name=openssl/,
      )
    expect((await page(of('search', { q: 'nothing-here' }))).html).toContain('Nothing was found')
    expect((await page(of('search', { q: 'pkg:' }))).status).toBe(400)
  })
})

describe('the pages of ecosystems', () => {
  test('lead to packages and records', async () => {
    expect((await page('ecosystems')).html).toContain('href="/-/ui/packages?ecosystem=Debian"')
    const packages = await page(of('packages', { ecosystem: 'Debian', prefix: 'open' }))
    expect(packages.html).toContain('package?ecosystem=Debian&amp;name=openssl')
    const records = await page(of('package', { ecosystem: 'Debian', name: 'openssl' }))
    expect(records.html).toContain('record?id=CVE-2026-1')
    expect((await page(of('packages', { ecosystem: 'None' }))).status).toBe(404)
  })
})

describe('the pages of changes', () => {
  const atom = async (query = ''): Promise<string> => (await page(`changes.atom${query}`, NO_KEY)).html

  test('list snapshots, and each snapshot has a link to its names', async () => {
    const { html } = await page('changes', NO_KEY)
    expect(html).toContain('first snapshot of this source')
    expect(html).toMatch(/log of osv since<[^]*?2026-06-30[^]*?entries are kept for</)
    const [, entry = ''] = /href="\/-\/ui\/(changes\?entry=\d+)">\s*<bdi>3 added/.exec(html) ?? []
    const names = await page(entry, NO_KEY)
    for (const name of ['record?id=CVE-2026-1', 'record?id=BAD-1', 'record?id=OLD-1', 'removed'])
      expect(names.html).toContain(name)
    expect(html).toContain('type="application/atom+xml"')
    expect((await page('changes?entry=999', NO_KEY)).status).toBe(404)
  })

  test('list net changes since a date or a snapshot, and say when the log does not reach back', async () => {
    const since = await page(of('changes', { since: '2026-06-30T12:00', source: 'osv' }), NO_KEY)
    expect([since.status, since.html.includes('record?id=BAD-1')]).toEqual([200, true])
    const snapshot = /changes\?source=osv&amp;since=([0-9a-f]{64})/.exec((await page('changes')).html)
    const latest = await page(of('changes', { since: (snapshot?.[1] ?? '').slice(0, 12) }), NO_KEY)
    expect(latest.html).toContain('Nothing changed')
    const young = await page(of('changes', { since: '2020-01-01' }), NO_KEY)
    expect([young.status, young.html.includes('first filled with osv on 2026-06-30 00:00 UTC: ')]).toEqual([200, true])
    const { status, html } = await page(of('changes', { since: 'abcdef012345' }), NO_KEY)
    expect([status, html.includes('The log does not reach back that far')]).toEqual([404, true])
    expect(html).toMatch(/log of osv since<[^]*?2026-06-30/)
    const [, known = ''] = /href="\/-\/ui\/(changes[^"]*)">\s*<bdi>changes since the beginning/.exec(html) ?? []
    expect((await page(known.replaceAll('&amp;', '&'), NO_KEY)).status).toBe(200)
    expect((await page('changes?since=someday')).status).toBe(400)
  })

  test('say what changed in each record, of all or of one package', async () => {
    const asked = { since: '2026-06-30T12:00' }
    const words = 'Debian:12 openssl: fix added: 3.0.1-2'
    const [, entry = ''] = /(changes\?entry=\d+)">\s*<bdi>3 added/.exec((await page('changes', NO_KEY)).html) ?? []
    for (const path of [entry, of('changes', asked), of('changes', { ...asked, purl: 'pkg:deb/debian/openssl' })])
      expect((await page(path, NO_KEY)).html).toContain(words)
    const other = await page(of('changes', { ...asked, purl: 'pkg:npm/none' }), NO_KEY)
    expect(other.html).toContain('No listed change is about what was asked for')
    expect(other.html).toContain(
      '2 changed records are not listed: their earlier version is not stored, so it is not known',
    )
    expect(other.html).not.toContain(words)
    for (const wrong of [{ purl: 'none' }, { purl: 'pkg:npm/a', source: 'catalog' }])
      expect((await page(of('changes', wrong))).status).toBe(400)
  })

  test('have a date in a feed without entries: when the last snapshot was published', async () => {
    const none = await atom('?before=1')
    expect(none).not.toContain('<entry>')
    expect(none).toContain(`<updated>${new Date(FILLED_AT).toISOString()}</updated>`)
  })

  test('require a key for private sources, also in the feed', async () => {
    for (const path of ['changes', 'changes.atom']) {
      const { status } = await page(`${path}?source=catalog`, NO_KEY)
      expect([path, status, (await page(`${path}?source=catalog`)).status]).toEqual([path, 401, 200])
      const ofTag = await page(`${path}?tag=x`, NO_KEY)
      expect([path, ofTag.status, (await page(`${path}?tag=x`)).status]).toEqual([path, 401, 503])
    }
  })

  test('have feeds of the differences of one ecosystem or package', async () => {
    const feed = async (parameters: Record<string, string>) => {
      const { status, html } = await page(of('changes.atom', parameters), NO_KEY)
      return { status, items: atomEntries(html) }
    }
    const all = await feed({})
    for (const asked of [{ ecosystem: 'Debian' }, { purl: 'pkg:deb/debian/openssl' }]) {
      const { status, items } = await feed(asked)
      expect([status, items.length]).toEqual([200, 1])
      expect(items[0]?.content).toContain('CVE-2026-1: Debian:12 openssl: fix added: 3.0.1-2')
      expect(items[0]?.content).toContain('2 changed records could not be compared')
      expect(all.items.map(({ id }) => id)).not.toContain(items[0]?.id)
    }
    const none = await feed({ purl: 'pkg:npm/there-is-no-such-package' })
    expect(none.items.map(({ content: text }) => text.includes('openssl'))).toEqual([false])
    for (const query of ['ecosystem=none', 'ecosystem=', 'purl=%20', 'tag=', 'source='])
      expect([query, (await page(`changes.atom?${query}`, NO_KEY)).status]).toEqual([query, 400])
  })

  test('have an Atom feed of entries with stable ids', async () => {
    const text = await atom()
    expect(text.startsWith('<?xml version="1.0" encoding="utf-8"?>\n<feed ')).toBe(true)
    const inside = text.slice(text.indexOf('<feed')).replace(/<link[^>]*\/>|<category[^>]*\/>/g, '')
    expect(faultsOf(inside)).toEqual([])
    const ids = [...text.matchAll(/<id>(urn:uuid:[0-9a-f-]{36})<\/id>/g)].map(([, id]) => id)
    expect(new Set(ids).size).toBe(ids.length)
    expect(text).toMatch(/<updated>2026-07-01T00:00:00(\.000)?Z<\/updated>/)
    const link = /<link rel="alternate" type="text\/html" href="(http:[^"]*entry=\d+)"/.exec(text)
    expect(link?.[1]).toContain(`127.0.0.1:${served.port}/-/ui/changes?`)
    expect(await atom()).toBe(text)
    expect(atomEntries(text).map(({ id }) => id)).toEqual(ids.slice(1))
    for (const gone of ['changes.json', 'tag-changes.json']) expect((await page(gone)).status).toBe(404)
    expect(await atom('?before=1')).not.toContain('<entry>')
  })
})

describe('the pages of runs', () => {
  test('have filters and pages', async () => {
    const first = await page(of('runs', { source: 'osv' }))
    const [, next = ''] = /rel="next" href="\/-\/ui\/([^"]*)"/.exec(first.html) ?? []
    expect(next).toMatch(/^runs\?source=osv&amp;before=\d+$/)
    const second = await page(next.replaceAll('&amp;', '&'))
    expect([...second.html.matchAll(/ui\/run\?id=/g)].length).toBe(50)
    const quarantined = await page(of('runs', { state: 'quarantined' }))
    expect([...quarantined.html.matchAll(/ui\/run\?id=/g)].length).toBe(5)
    expect((await page(of('runs', { state: 'odd' }))).status).toBe(400)
  })

  test('have the rows that fit as a file, for those who may read the page', async () => {
    const { html } = await page(of('runs', { state: 'quarantined' }))
    expect(html).toContain('href="/-/ui/runs?state=quarantined&amp;format=csv"')
    const { headers, body } = await served.get('/-/ui/runs?state=quarantined&format=csv', KEY)
    expect(headers).toMatchObject({
      'content-type': 'text/csv; charset=utf-8',
      'content-disposition': 'attachment; filename="runs.csv"',
    })
    expect(body.toString().split('\r\n').length).toBe(7)
    expect((await page(of('runs', { format: 'csv' }), NO_KEY)).status).toBe(401)
    expect((await page(of('runs', { format: 'xml' }))).status).toBe(400)
  })

  test('show the difference and both commands of a run that waits for a decision', async () => {
    const { html } = await page(of('run', { id: String(run.quarantined) }))
    for (const command of ['approve', 'reject']) expect(html).toContain(`patchmirror ${command} ${run.quarantined}<`)
    for (const text of ['would remove 40 of 41 records', 'Would be removed', 'The first 2 of 40'])
      expect(html).toContain(text)
    expect((await page(of('run', { id: '99999' }))).status).toBe(404)
    expect((await page(of('run', { id: 'x' }))).status).toBe(400)
  })
})

describe('a quarantined run', () => {
  test('shows the changes that should not be believed, with links and the number of them', async () => {
    const { html } = await page(of('run', { id: String(run.quarantined) }))
    for (const text of [
      'Changes that should not be believed',
      'The first 2 of 57',
      'npm a: fix lowered from 2.0.0 to 1.0.0',
      'href="/-/ui/record?id=CVE-2026-1"',
    ])
      expect(html).toContain(text)
  })

  const show = async (id: number, more: Record<string, string> = {}): Promise<string> =>
    (await page(of('run', { id: String(id), ...more }))).html

  test('shows what it would remove, change and add, with counts, page by page', async () => {
    const removed = await show(run.compared)
    expect(removed).toMatch(
      /would be removed<[\s\S]*>2<[\s\S]*would be changed<[\s\S]*>1<[\s\S]*would be added<[\s\S]*>150</,
    )
    expect(removed).toContain('record?id=BAD-2')
    expect(removed).toContain(`patchmirror approve ${run.compared}<`)
    expect(await show(run.compared, { show: 'changed' })).toContain('record?id=BAD-1')
    const added = await show(run.compared, { show: 'added', at: '100' })
    expect(added).toContain('101 to 150 of 150')
    expect(await show(run.repeated)).toContain(`patchmirror approve ${run.compared}<`)
  })

  test('of a feed names the entries of the feed', async () => {
    expect(await show(run.feed)).toContain('debian / 12 / openssl')
    expect(await show(run.feed, { show: 'changed' })).toContain('alpine / 3.18 / curl')
  })
})

describe('a quarantined run of the catalog', () => {
  test('lists what it would remove by kind, counts the items of lists, and has pages', async () => {
    const at = (more: Record<string, string> = {}) => page(of('run', { id: String(run.catalog), ...more }))
    const first = (await at()).html
    expect(first).toContain('123 lines')
    expect(first).toMatch(/an item with its artifacts<[\s\S]*>tags\/0</)
    expect(first).not.toContain('tags/100<')
    const second = (await at({ at: '100' })).html
    for (const text of ['tags/119', '>a list<', '/v1/old', 'items of /v1/tags', '1\u202f234 of them'])
      expect(second).toContain(text)
    expect(second).toMatch(/>an artifact</)
    expect(second).not.toContain(EVIL)
    expect(first).toContain(`patchmirror approve ${run.catalog}<`)
  })
})

describe('the page of bundles', () => {
  test('shows the identity, both folders, and exported and imported bundles', async () => {
    const { html } = await page('bundles')
    for (const text of ['bundle.outbox', 'bundle.inbox', 'delta 7', 'older than what was stored', 'unsigned'])
      expect(html).toContain(text)
    expect(html).toMatch(/>Exported states<[\s\S]*>3<[\s\S]*abababababababab<[\s\S]*osv, feeds/)
    expect((await page('bundles', NO_KEY)).status).toBe(401)
  })
})

describe('the pages of webhooks', () => {
  test('list deliveries with their state and the reason of failure, page by page', async () => {
    const first = await page('webhooks')
    const [, next = ''] = /rel="next" href="\/-\/ui\/([^"]*)"/.exec(first.html) ?? []
    const second = await page(next.replaceAll('&amp;', '&'))
    expect(second.html).toContain('was refused: ')
    expect(second.html).toContain('given up')
    const ignored = await page('webhooks?state=ignored')
    expect(ignored.html).not.toContain('was refused: ')
    expect((await page('webhooks', NO_KEY)).status).toBe(401)
  })
})

describe('the overview page', () => {
  test('shows faults first, with the commands to use', async () => {
    const { html } = await page('')
    const problem = html.indexOf('a change waits for your decision')
    const sources = html.indexOf('>Sources<')
    expect(problem).toBeGreaterThan(0)
    expect(problem).toBeLessThan(sources)
    expect(html).toContain(`patchmirror approve ${run.quarantined}`)
  })

  test('shows the faults to clients without a key too, and no command that only an operator can use', async () => {
    const { html } = await page('', NO_KEY)
    expect(html).toContain('a change waits for your decision')
    expect(html.replaceAll('patchmirror 9.9.9', '')).not.toMatch(/patchmirror [a-z]/)
  })
})
