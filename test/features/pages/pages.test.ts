import { readFileSync, readdirSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, onTestFinished } from 'vitest'
import { longTest, test } from '../../support/tables.ts'
import { acquireLock } from '../../../src/store/database/lock.ts'
import { FILLED_AT } from '../../support/filled-store.ts'
import { outside } from '../../../src/features/lookup/answers/cells.ts'
import { prefersHtml } from '../../../src/features/pages/web.ts'
import { choiceOf, numberOf } from '../../../src/features/pages/page.ts'
import { PAGES } from '../../../src/features/pages/pages.ts'
import { escapeText } from '../../../src/features/pages/render.ts'
import { createWeb } from '../../../src/features/pages/web.ts'
import { type Served, FEEDS, closeAll, jsonOf, serve } from '../../server/served.ts'
import { filledCatalogBench } from '../../support/catalog/mirror.ts'
import { TEST_KEY } from '../../support/keys.ts'

const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'
const NO_KEY = { authorization: '' }
const OWN_SCRIPT = /^<script src="\/-\/ui\/script-[\da-f]{16}\.js" defer>$/
const KEY = { authorization: `Basic ${Buffer.from(`${TEST_KEY}:`).toString('base64')}` }

let served: Served

beforeAll(async () => {
  served = await serve(
    (store) => {
      store.publishOsv({ 'CVE-1': '{"id":"CVE-1"}' })
      store.publishFeeds(FEEDS)
    },
    { people: (config) => createWeb({ config, version: '9.9.9' }) },
  )
})
afterAll(closeAll)

const page = (path: string, headers: Record<string, string> = NO_KEY, method = 'GET') =>
  served.get(path, { accept: BROWSER, ...headers }, method)

describe('the root path', () => {
  longTest('is a page for browsers, and JSON for programs', async () => {
    const html = await page('/')
    expect(html.status).toBe(200)
    expect(html.headers['content-type']).toBe('text/html; charset=utf-8')
    expect(html.headers.vary).toBe('Accept')
    const none = await served.get('/')
    const any = await served.get('/', { accept: '*/*' })
    expect(none.headers['content-type']).toMatch(/^application\/json/)
    expect(none.headers.vary).toBe('Accept')
    expect(any.body).toEqual(none.body)
    expect(jsonOf(none)['name']).toBe('patchmirror')
  })

  test('is HTML only where a client prefers it', () => {
    const html = [BROWSER, 'text/html', 'application/json;q=0.5,text/html', 'text/html;level=1']
    const json = [undefined, '', '*/*', 'application/json', 'application/json,text/html']
    expect(html.filter((accept) => !prefersHtml(accept))).toEqual([])
    const refused = [...json, 'text/html;q=0', 'text/html;q=0.4,application/json', 'text/*']
    expect(refused.filter(prefersHtml)).toEqual([])
  })
})

longTest(
  'the overview says that a first run is in progress, and offers no command that is refused meanwhile',
  async () => {
    const first = await serve((store) => store.addRun('osv', FILLED_AT), {
      people: (config) => createWeb({ config, version: '9.9.9' }),
      env: { PATCHMIRROR_UPSTREAM_API_ROOT: 'http://127.0.0.1:1' },
    })
    const lock = acquireLock(first.dir, 'sync')
    onTestFinished(() => lock.release())
    const html = (await first.get('/', { accept: BROWSER })).body.toString()
    expect(html).toContain('osv: the first run is in progress')
    expect(html).toContain('feeds: nothing is mirrored yet')
    expect(html).toContain('The run of another source is in progress')
    expect(html).not.toContain('patchmirror sync')
    const counts = [...html.matchAll(/<bdi>records<\/bdi><\/dt><dd>(.*?)<\/dd>/gs)]
    expect(counts.map(([, cell = '']) => cell.replace(/<[^>]*>/g, '').trim())).toEqual(['–', '–'])
    const ready = jsonOf(await first.get('/-/ready'))
    expect(ready['sources']).toMatchObject([
      { name: 'feeds', reason: 'nothing mirrored yet' },
      { name: 'osv', reason: 'nothing mirrored yet: the first run is in progress' },
    ])
    const runs = async (state: string): Promise<string> =>
      (await first.get(`/-/ui/runs?state=${state}`, { accept: BROWSER, ...KEY })).body.toString()
    expect(await runs('running')).toContain('/-/ui/run?id=1')
    lock.release() // as when the process is killed
    expect(await runs('running')).toContain('No run fits this filter')
    expect(await runs('failed')).toContain('the process or its sync thread ended before the run did')
  },
)

longTest('a run in progress after failed ones does not say that everything is well', async () => {
  const retried = await serve(
    (store) => {
      store.publishOsv({ 'CVE-1': '{"id":"CVE-1"}' })
      store.publishFeeds(FEEDS)
      for (const at of [1000, 2000]) store.addRun('osv', FILLED_AT + at, { state: 'failed' })
      store.addRun('osv', FILLED_AT + 3000)
    },
    { people: (config) => createWeb({ config, version: '9.9.9' }) },
  )
  const lock = acquireLock(retried.dir, 'sync')
  onTestFinished(() => lock.release())
  const html = (await retried.get('/', { accept: BROWSER })).body.toString()
  expect(html).toContain('osv: the last run failed, and another one is in progress')
  expect(html).toMatch(/osv: 2 runs<.*osv serves</s)
  expect(html).not.toContain('No problem is known')
})

longTest('what was imported is called as complete as its bundle, and not as upstream', async () => {
  const imported = await serve(
    (store) => {
      store.publishFeeds(FEEDS)
      store.addRun('feeds', FILLED_AT + 1000, { state: 'complete' })
      store.damage("UPDATE run SET kind = 'import'")
    },
    { people: (config) => createWeb({ config, version: '9.9.9' }) },
  )
  const html = (await imported.get('/', { accept: BROWSER })).body.toString()
  expect(html).toContain('complete: everything that the imported bundle has is stored')
  expect(html).not.toContain('everything upstream lists')
})

longTest('images out of scope are listed as such, and the overview claims no more than the scope', async () => {
  const service = { images: 6, tags: 18, packages: 4, tickets: 2, users: 1, subscriptions: 1 }
  const { ask, askOpen } = await filledCatalogBench(service)
  const html = await (await ask('/-/ui/images')).text()
  const links = [...html.matchAll(/href="(\/-\/ui\/images\?image=[^"]*)"/g)].map(([, href = '']) => href)
  expect(links.length).toBeGreaterThan(0)
  for (const href of links) expect([href, (await ask(href)).status]).toEqual([href, 200])
  expect(html).toContain('not judged')
  expect(html).not.toMatch(/data-label="Findings"><span[^>]*><span[^>]*><bdi>0</)
  const overview = await (await askOpen('/-/ui/')).text()
  expect(overview).toContain('complete: everything upstream lists in scope is stored')
  expect(overview).not.toContain('everything upstream lists is stored')
  expect(overview).toContain('catalog.scope subscribed')
})

describe('each page for people', () => {
  longTest('answers a client with a key, and a client without one only if it is public', async () => {
    for (const { path, access } of PAGES) {
      const open = await page(`/-/ui/${path}`)
      const keyed = await page(`/-/ui/${path}`, KEY)
      expect([path, open.status]).toEqual([path, access === 'key' ? 401 : open.status])
      expect([path, keyed.status === 401]).toEqual([path, false])
      expect(open.headers['www-authenticate'] !== undefined).toBe(access === 'key')
    }
  })

  test('refuses a parameter that it does not have, at each of its paths', async () => {
    for (const path of ['/-/ui', ...PAGES.map(({ path }) => `/-/ui/${path}`)]) {
      const { status, body } = await page(`${path}?x=1`, KEY)
      expect([path, status]).toEqual([path, 400])
      expect(body.toString(), path).toContain('Unknown query parameter')
    }
    expect((await page('/-/ui?', KEY)).status).toBe(200)
  })

  test('runs one script of its own, loads nothing from elsewhere and is not cached', async () => {
    for (const reply of [await page('/-/ui/'), await page('/-/ui/sign-in'), await page('/-/ui/no')]) {
      const { headers, body } = reply
      const policy = String(headers['content-security-policy']).split('; ')
      expect(policy).toContain("default-src 'none'")
      expect(policy).toContain("script-src 'self'")
      expect(policy).toContain("require-trusted-types-for 'script'")
      expect(policy.filter((one) => /unsafe|https?:|\*|data:/.test(one))).toEqual([])
      expect(headers['x-content-type-options']).toBe('nosniff')
      expect(headers['referrer-policy']).toBe('no-referrer')
      expect(headers['cache-control']).toBe('no-store')
      expect(headers['set-cookie']).toBeUndefined()
      const html = body.toString()
      expect(html.match(/<script[^>]*>[^<]*/g)).toEqual([expect.stringMatching(OWN_SCRIPT)])
      expect(html).not.toMatch(/style=|https?:\/\/| on\w+=/i)
    }
  })

  test('has a script that makes no code or markup of a text', async () => {
    const [, path = ''] = /<script src="([^"]+)"/.exec((await page('/-/ui/')).body.toString()) ?? []
    const { headers, body } = await page(path)
    expect(headers['content-type']).toBe('text/javascript; charset=utf-8')
    expect(headers['cache-control']).toContain('immutable')
    expect(body.toString()).not.toMatch(/innerHTML =|insertAdjacentHTML|document\.write|\beval\b|Function\(|https?:/)
    expect(body.toString().split('\n').length).toBeLessThan(60)
  })

  test('that does not exist is a 404 in HTML, and writing methods are a 405', async () => {
    expect((await page('/-/ui/no')).status).toBe(404)
    expect((await page('/-/ui')).status).toBe(200)
    expect((await page('/-/ui/', NO_KEY, 'POST')).status).toBe(405)
    const head = await page('/-/ui/', NO_KEY, 'HEAD')
    expect([head.status, head.body.length]).toEqual([200, 0])
  })

  test('refuses a wrong key, so that the browser asks again', async () => {
    const reply = await page('/-/ui/', { authorization: `Basic ${btoa('wrong:')}` })
    expect(reply.status).toBe(401)
    expect(reply.headers['content-type']).toMatch(/^text\/html/)
  })

  test('lead to the page to sign in where a key is missing or wrong, and name no header', async () => {
    for (const headers of [NO_KEY, { authorization: `Basic ${btoa('wrong:')}` }]) {
      const reply = await page('/-/ui/runs', headers)
      const main = reply.body.toString().split('<main')[1]?.split('</main>')[0] ?? ''
      expect([reply.status, reply.headers['www-authenticate']]).toEqual([401, expect.stringMatching(/^Basic/)])
      expect(main).toMatch(/href="\/-\/ui\/sign-in"/)
      expect(main).not.toContain('Authorization')
      expect(main).not.toContain('patchmirror ')
      if (headers === NO_KEY)
        expect(main).toMatch(/file local\.key of its data folder, unless server\.keys is set or that key was revoked\./)
    }
  })

  test('names its stylesheet by digest, and the stylesheet may be cached for ever', async () => {
    const [, href = ''] = /rel="stylesheet" href="([^"]+)"/.exec((await page('/')).body.toString()) ?? []
    expect(href).toMatch(/^\/-\/ui\/style-[\da-f]{16}\.css$/)
    const style = await page(href)
    expect(style.headers['content-type']).toBe('text/css; charset=utf-8')
    expect(style.headers['cache-control']).toContain('immutable')
  })
})

test('the former path of the tags of an image leads to the page that has them now', async () => {
  const { status, headers } = await page('/-/ui/tags?image=7')
  expect([status, headers.location]).toEqual([308, '/-/ui/images?image=7'])
})

describe('a page about data that is not known', () => {
  test('says so: without views there is no index, and no list that looks empty', async () => {
    for (const path of ['ecosystems', 'search?q=openssl', 'packages?ecosystem=npm', 'search?q=pkg:npm/a']) {
      const text = (await page(`/-/ui/${path}`)).body.toString()
      expect(text, path).toContain('There is no index of packages and other ids')
    }
    const empty = await serve(() => undefined, { people })
    for (const path of ['ecosystems', 'package?ecosystem=npm&name=a', 'search?q=openssl', 'search?q=pkg:npm/a']) {
      const text = (await empty.get(`/-/ui/${path}`, { accept: BROWSER })).body.toString()
      expect(text, path).toContain('No records are mirrored yet')
      expect(text, path).not.toContain('can be found')
    }
    expect((await page('/-/ui/search?q=cve-1')).body.toString()).toContain('/-/ui/record?id=CVE-1')
    expect((await page('/-/ui/patches', KEY)).status).toBe(404)
  })
})

const people = (config: Parameters<typeof createWeb>[0]['config']) => createWeb({ config, version: '9.9.9' })

longTest('a record is found by its id as it is, trimmed, and by the text that a link has of it', async () => {
  const other = await serve((store) => store.publishOsv({ 'A-1 ': '{"id":"A-1 "}', 'B-1': '{"id":"B-1"}' }), { people })
  const of = async (id: string) => {
    const { status, body } = await other.get(`/-/ui/record?id=${id}`, { accept: BROWSER })
    return [status, body.toString().includes('On this mirror')]
  }
  for (const id of ['A-1+', 'A-1%20', 'A-1', 'a-1', 'b-1', '+B-1'])
    expect([id, ...(await of(id))]).toEqual([id, id !== 'a-1' ? 200 : 404, id !== 'a-1'])
})

longTest('what is not mirrored yet is not said to be too old, or to be nowhere', async () => {
  const other = await serve((store) => store.publishFeeds(FEEDS), { people })
  const { status, body } = await other.get('/-/ui/changes?since=today', { accept: BROWSER })
  expect([status, body.toString().includes('Nothing of osv is mirrored yet')]).toEqual([404, true])
  expect(body.toString()).not.toContain('does not reach back')
  const search = (await other.get('/-/ui/search?q=openssl', { accept: BROWSER })).body.toString()
  expect(search).toContain('No records are mirrored yet')
  expect(search).not.toContain('Nothing was found')
})

longTest('the overview names the last exported state, also of an export by a command', async () => {
  const other = await serve(
    (store) => {
      store.publishFeeds(FEEDS)
      store.damage(`INSERT INTO bundle_export (digest, sources, exported_at) VALUES ('d', '{}', ${FILLED_AT})`)
    },
    { people },
  )
  const html = (await other.get('/', { accept: BROWSER })).body.toString()
  expect(html).toMatch(/exported: state 1</)
  expect((await page('/')).body.toString()).toContain('none exported or imported')
})

test('the form of changes shows the source that the page is about', async () => {
  const html = (await page('/-/ui/changes?since=today')).body.toString()
  expect(html).toMatch(/<option[^>]*value="osv"[^>]*selected/)
})

describe('pages behind a path prefix', () => {
  test('have their links and the stylesheet below it', async () => {
    const other = await serve((store) => store.publishFeeds(FEEDS), {
      env: { PATCHMIRROR_SERVER_PUBLIC_URL: 'https://example.com/tools/mirror' },
      people: (config) => createWeb({ config, version: '9.9.9' }),
    })
    const html = (await other.get('/', { accept: BROWSER, ...NO_KEY })).body.toString()
    const links = [...html.matchAll(/(?:href|action)="([^"]*)"/g)].map(([, to = '']) => to)
    expect(links.length).toBeGreaterThan(5)
    const inside = (to: string): boolean => to === '#main' || /^\/tools\/mirror\/-\/(ui\/|docs$)/.test(to)
    expect(links.filter((to) => !inside(to))).toEqual([])
  })
})

describe('a parameter of a page', () => {
  const query = new URLSearchParams({ n: '12', bad: '1x', long: 'x'.repeat(2000), kind: 'sync' })

  test('that is malformed is refused, and a missing one is not', () => {
    expect([numberOf(query, 'n'), numberOf(query, 'none')]).toEqual([12, null])
    expect(choiceOf(query, 'kind', ['sync', 'refresh'])).toBe('sync')
    expect(choiceOf(query, 'none', ['sync'])).toBe('')
    expect(() => numberOf(query, 'bad')).toThrow('bad is not a whole number')
    expect(() => choiceOf(query, 'kind', ['refresh'])).toThrow('kind is none of: refresh')
    expect(() => numberOf(query, 'long')).toThrow('longer than 1000 characters')
  })
})

describe('text of upstream', () => {
  test('is escaped, and characters that reorder text are shown by number', () => {
    expect(escapeText(`<b a='"'>&`)).toBe('&lt;b a=&#39;&quot;&#39;&gt;&amp;')
    expect(escapeText('a\u202eb\u0000\u2066\ud800')).toBe('a[U+202E]b\ufffd[U+2066]\ufffd')
    expect(escapeText('x'.repeat(30_000)).length).toBeLessThan(20_100)
    expect(escapeText(null)).toBe('')
  })

  test('becomes a link only where it is an http or https URL', () => {
    expect(outside('https://example.com/a')).toMatchObject({
      href: 'https://example.com/a',
      outside: true,
    })
    for (const url of ['javascript:alert(1)', ' https://a', 'ftp://a', 'https://', '//a', 7, null])
      expect(outside(url).href).toBeUndefined()
  })

  test('is escaped by every template: the unescaped form is for parts of pages only', () => {
    const texts = readdirSync('src/features/pages/templates')
      .filter((name) => name.endsWith('.eta'))
      .map((name) => readFileSync(`src/features/pages/templates/${name}`, 'utf8'))
    const raw = texts.flatMap((text) => text.match(/<%~[^%]*%>/g) ?? [])
    expect(raw.length).toBeGreaterThan(4)
    expect(raw.filter((one) => !one.startsWith('<%~ include('))).toEqual([])
  })
})
