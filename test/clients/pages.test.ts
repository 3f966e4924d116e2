import axe from 'axe-core'
import { type Browser, type BrowserContextOptions, type Page, chromium } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { PAGES } from '../../src/features/pages/pages.ts'
import { TEST_KEY } from '../support/keys.ts'
import { findTool } from '../support/tools.ts'
import { type WholeMirror, openWholeMirror } from '../support/whole-mirror.ts'

/*
 * The pages for people in a real browser (Debian's chromium): without JavaScript and with it, by keyboard, narrow and wide, light and
 * dark, judged by axe-core. Pages that need parameters are found by the links that lead to them.
 */

const PATH = findTool('chromium', 'chromium-browser', 'google-chrome')
const NONE = 'chromium is not installed (apt-get install chromium)'
const WIDTHS = [360, 1280] as const
const SCHEMES = ['light', 'dark'] as const

let mirror: WholeMirror | null = null
let browser: Browser | null = null
/** One address for each page. */
let addresses: readonly string[] = []

beforeAll(async () => {
  if (PATH === null) return
  mirror = await openWholeMirror()
  browser = await chromium.launch({ executablePath: PATH, args: ['--no-sandbox'] })
  addresses = await findPages(mirror)
})
afterAll(async () => {
  await browser?.close()
  await mirror?.close()
})

/** Follows links from page to page until each page was seen once. */
async function findPages(mirror: WholeMirror): Promise<string[]> {
  const found = new Map<string, string>()
  const waiting = ['/-/ui/', '/-/ui/search?q=CVE', '/-/ui/sign-in']
  for (const address of waiting) {
    const name = address.slice('/-/ui/'.length).split('?', 1)[0] ?? ''
    if (found.has(name)) continue
    const reply = await mirror.get(address, { headers: { accept: 'text/html' } })
    if (reply.status !== 200) continue
    found.set(name, address)
    const links = (await reply.text()).matchAll(/href="(\/-\/ui\/[^"]*)"/g)
    for (const [, href = ''] of links) waiting.push(href.replaceAll('&amp;', '&'))
  }
  const pages = [...found].flatMap(([name, address]) => (/\.(css|svg|atom|json)$/.test(name) ? [] : [address]))
  return [...pages, '/-/docs']
}

function started(): { browser: Browser; mirror: WholeMirror } {
  if (browser === null || mirror === null) throw new Error('the browser did not start')
  return { browser, mirror }
}

/** Opens each address in turn with these options, with the key, and reports what `look` finds. */
async function visit(
  options: BrowserContextOptions,
  look: (page: Page, address: string) => Promise<readonly string[]>,
): Promise<string[]> {
  const { browser, mirror } = started()
  const credentials = { username: TEST_KEY, password: '' }
  const context = await browser.newContext({ ...options, httpCredentials: credentials })
  const faults: string[] = []
  try {
    const page = await context.newPage()
    page.on('request', (request) => {
      if (!request.url().startsWith(mirror.url)) faults.push(`asks for ${request.url()}`)
    })
    page.on('console', (message) => {
      faults.push(`the console of ${page.url()}: ${message.text()}`)
    })
    for (const address of addresses) {
      const reply = await page.goto(mirror.url + address)
      if (reply?.status() !== 200) faults.push(`${address}: ${reply?.status() ?? 'no answer'}`)
      faults.push(...(await look(page, address)).map((fault) => `${address}: ${fault}`))
    }
  } finally {
    await context.close()
  }
  return faults
}

test('links lead from the overview to every page', (context) => {
  if (PATH === null) return context.skip(NONE)
  const reached = addresses.map((address) => address.slice('/-/ui/'.length).split('?', 1)[0])
  const pages = PAGES.flatMap(({ path, type }) => (type === undefined ? [path] : []))
  expect(pages.filter((path) => !reached.includes(path))).toEqual([])
})

test('each page fits narrow and wide windows and has no fault that axe-core knows, light and dark', async (context) => {
  if (PATH === null) return context.skip(NONE)
  const faults: string[] = []
  for (const width of WIDTHS)
    for (const colorScheme of SCHEMES) {
      const options = { viewport: { width, height: 800 }, colorScheme, bypassCSP: true }
      const found = await visit(options, async (page) => {
        const wide = await page.evaluate<number>('document.documentElement.scrollWidth')
        await page.evaluate(axe.source)
        const results = await page.evaluate<axe.AxeResults>('axe.run()')
        const broken = results.violations.map(
          ({ id, nodes }) => `${id}: ${nodes[0]?.html ?? ''} ${nodes[0]?.failureSummary ?? ''}`,
        )
        if (results.passes.length < 10) broken.push(`axe-core checked ${results.passes.length} rules`)
        return wide > width ? [...broken, `is ${wide} pixels wide`] : broken
      })
      faults.push(...found.map((fault) => `${width} ${colorScheme} ${fault}`))
    }
  expect(faults).toEqual([])
})

test('each page can be used by keyboard alone, without JavaScript, as its policy has it', async (context) => {
  if (PATH === null) return context.skip(NONE)
  const focusable = 'main a[href], main button, main input:not([type=hidden]), main select, nav a'
  const faults = await visit({ javaScriptEnabled: false }, async (page) => {
    const wanted = await page.locator(focusable).count()
    await page.keyboard.press('Tab')
    const found =
      (await page.locator(':focus').textContent()) === 'Skip to the content' ? [] : ['no link to skip the navigation']
    let reached = 0
    for (let at = 0; at < 400 && reached < wanted; at++) {
      await page.keyboard.press('Tab')
      const focus = page.locator(':focus')
      if ((await focus.count()) === 0) break
      reached += await page.locator(`:is(${focusable}):focus`).count()
    }
    return reached < wanted ? [...found, `${reached} of ${wanted} links and fields by Tab`] : found
  })
  expect(faults).toEqual([])
})

test('the search box is reached and sent by keyboard', async (context) => {
  if (PATH === null) return context.skip(NONE)
  const { browser, mirror } = started()
  const page = await browser.newPage({ javaScriptEnabled: false })
  await page.goto(`${mirror.url}/`)
  await page.getByRole('combobox', { name: 'Search by' }).focus()
  await page.keyboard.type('CVE')
  await page.keyboard.press('Enter')
  await page.waitForURL(/\/-\/ui\/search\?q=CVE$/)
  expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('Search: CVE')
  await page.close()
})

/** Opens a page with its script, as a browser on this machine has it. */
async function opened(path: string, look: (page: Page) => Promise<void>): Promise<void> {
  const { browser, mirror } = started()
  const context = await browser.newContext({ httpCredentials: { username: TEST_KEY, password: '' } })
  await context.grantPermissions(['clipboard-read', 'clipboard-write'])
  try {
    const page = await context.newPage()
    await page.clock.install()
    await page.goto(mirror.url + path)
    await look(page)
  } finally {
    await context.close()
  }
}

test('the script shows Status again every 30 s, and keeps the focus and the place', async (context) => {
  if (PATH === null) return context.skip(NONE)
  await opened('/-/ui/', async (page) => {
    const link = page.locator('main a').last()
    await link.focus()
    const before = await page.evaluate<[string, number]>('[document.activeElement.href, scrollY]')
    await page.evaluate("document.querySelector('h1').textContent = 'old'")
    await page.clock.runFor(31_000)
    await expect.poll(() => page.locator('h1').textContent()).toBe('Status')
    expect(await page.evaluate('[document.activeElement.href, scrollY]')).toEqual(before)
  })
})

test('the script asks for nothing while the tab is not in sight', async (context) => {
  if (PATH === null) return context.skip(NONE)
  await opened('/-/ui/runs', async (page) => {
    const asked: string[] = []
    page.on('request', (request) => {
      // The browser asks for the icon and the like when it likes: of no type that a page or its script asks for.
      if (request.resourceType() !== 'other') asked.push(request.url())
    })
    await page.evaluate("Object.defineProperty(document, 'hidden', { value: true, configurable: true })")
    await page.clock.runFor(65_000)
    expect(asked).toEqual([])
    await page.evaluate("Object.defineProperty(document, 'hidden', { value: false })")
    await page.clock.runFor(31_000)
    await expect.poll(() => asked.length).toBe(1)
  })
})

test('the script copies a digest as a whole', async (context) => {
  if (PATH === null) return context.skip(NONE)
  await opened('/-/ui/images', async (page) => {
    const digest = await page.locator('[data-copy]').first().getAttribute('data-copy')
    await page
      .getByRole('button', { name: `Copy ${digest ?? ''}` })
      .first()
      .click()
    await expect.poll(() => page.locator('.copy').first().textContent()).toBe('Copied')
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(digest)
    expect(digest).toMatch(/^sha256:[\da-f]{64}$/)
  })
})

test('the script goes to the search by a slash, and suggests what it finds', async (context) => {
  if (PATH === null) return context.skip(NONE)
  await opened('/-/ui/', async (page) => {
    await page.keyboard.press('/')
    await page.keyboard.type('ROOT')
    await page.clock.runFor(400)
    await expect.poll(() => page.locator('#suggestions option').count()).toBeGreaterThan(0)
    expect(await page.getByRole('combobox', { name: 'Search by' }).inputValue()).toBe('ROOT')
    const first = await page.evaluate<string>("document.querySelector('#suggestions option').value")
    expect(first).toMatch(/^ROOT/)
  })
})

test('the Atom feed is XML that a browser parses, with the entries of the page of changes', async (context) => {
  if (PATH === null) return context.skip(NONE)
  const { browser, mirror } = started()
  const text = await (await mirror.get('/-/ui/changes.atom')).text()
  const page = await browser.newPage()
  const count = (name: string): string =>
    `new DOMParser().parseFromString(${JSON.stringify(text)}, 'text/xml').getElementsByTagName('${name}').length`
  const faults = await page.evaluate<number>(count('parsererror'))
  const entries = await page.evaluate<number>(count('entry'))
  await page.close()
  expect(faults).toBe(0)
  expect(entries).toBeGreaterThan(1)
})
