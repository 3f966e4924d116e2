import { gunzipSync } from 'node:zlib'
import { describe, expect } from 'vitest'
import { frameOf } from '../../../src/base/json/envelope-learn.ts'
import type { ServiceOptions } from '../../sandbox/service/options.ts'
import { learnList } from '../../../src/upstream/lists/shape.ts'
import { filledCatalogBench, type CatalogBench, catalogBench, sharedBench } from '../../support/catalog/mirror.ts'
import { walkPages } from '../../support/catalog/compare.ts'
import { raw } from '../../support/catalog/raw.ts'
import { longTest, test } from '../../support/tables.ts'

interface Page {
  tickets: { ticket_id: string }[]
  cursor: { after?: string; total_count: number }
}

const SERVICE = { images: 3, tags: 6, packages: 3, tickets: 130, users: 4 }

const ENV = { PATCHMIRROR_CATALOG_SCOPE: 'all' }

const mirrored = (service: ServiceOptions = SERVICE): Promise<CatalogBench> => filledCatalogBench(service, ENV)

const shared = sharedBench(async (atEnd) => {
  const made = await catalogBench(SERVICE, { env: ENV }, undefined, atEnd)
  expect(await made.run('catalog')).toMatchObject({ state: 'complete', code: null })
  return made
})

const ids = ({ tickets }: Page): string[] => tickets.map((ticket) => ticket.ticket_id)

async function page(made: CatalogBench, query: string): Promise<Page> {
  const answer = await made.ask(`/v1/patches?${query}`)
  expect([query, answer.status]).toEqual([query, 200])
  return (await answer.json()) as Page
}

describe('a page of a list', () => {
  test('has 100 items by default, at most 1000, and the total number', async () => {
    const made = shared()
    expect(ids(await page(made, ''))).toHaveLength(100)
    expect(ids(await page(made, 'limit=1000'))).toHaveLength(130)
    const one = await page(made, 'limit=1&ecosystem=debian')
    const all = await page(made, 'limit=1000&ecosystem=debian')
    expect(one.cursor.total_count).toBe(all.tickets.length)
  })

  test('refuses the cursor of another order, list or filter, and continues with its own', async () => {
    const made = shared()
    const { after } = (await page(made, 'limit=5')).cursor
    const refused = async (path: string): Promise<unknown> => {
      const answer = await made.ask(path)
      return [answer.status, ((await answer.json()) as { message: string }).message]
    }
    const other = [400, expect.stringContaining('another list, order or filter')]
    expect(await refused(`/v1/patches?order=created_at:asc&after=${after}`)).toEqual(other)
    expect(await refused(`/v1/tags/?after=${after}`)).toEqual(other)
    expect(await refused(`/v1/patches?ecosystem=debian&after=${after}`)).toEqual(other)
    const first = await page(made, 'severities=high,low&limit=5')
    expect(await refused(`/v1/patches?severities=high&after=${first.cursor.after}`)).toEqual(other)
    const rest = await page(made, `severities=low,high&limit=1000&after=${first.cursor.after}`)
    expect([...ids(first), ...ids(rest)]).toEqual(ids(await page(made, 'severities=high,low&limit=1000')))
  })

  longTest('continues the page before it although tickets are added, removed and changed between them', async () => {
    const made = await mirrored()
    const { service } = made.sandbox
    for (const query of ['', 'order=updated_at:desc', 'order=severity:asc', 'ecosystem=debian']) {
      const before = service.ids('tickets')
      const first = await page(made, `${query}&limit=20`)
      const seen = ids(first)
      for (const id of [seen.at(-1) ?? '', seen.at(-3) ?? '', before[0] ?? '', before[1] ?? ''])
        if (service.ids('tickets').includes(id)) service.remove('tickets', id)
      service.change('tickets', seen.at(-2) ?? '', { severity: 'low' })
      service.change('tickets', before.at(-1) ?? '', { severity: 'critical' })
      service.addTicket()
      expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
      for (let { after } = first.cursor; after !== undefined && after !== '';) {
        const next = await page(made, `${query}&limit=20&after=${after}`)
        seen.push(...ids(next))
        after = next.cursor.after
      }
      const touched = new Set([before.at(-1)])
      const stays = new Set(service.ids('tickets').filter((id) => before.includes(id)))
      const plain = (list: unknown[]): unknown[] =>
        list.filter((id) => stays.has(id as string) && !touched.has(id as string))
      const changed = first.tickets.at(-2)?.ticket_id
      const now = ids(await page(made, `${query}&limit=1000`)).filter((id) => id !== changed)
      expect(plain(seen.filter((id) => id !== changed))).toEqual(plain(now))
    }
  })

  test('is the same JSON plain and as gzip, each with its own ETag and 304', async () => {
    const made = shared()
    for (const path of ['/v1/patches?limit=3', '/v1/tags/', '/v1/me']) {
      const plain = await raw(made, path, {})
      const zipped = await raw(made, path, { 'accept-encoding': 'gzip' })
      expect(zipped.headers['content-encoding']).toBe('gzip')
      expect(gunzipSync(zipped.body)).toEqual(plain.body)
      expect(zipped.headers.etag).not.toBe(plain.headers.etag)
      expect(plain.headers['cache-control']).toMatch(/^private/)
      for (const [held, coding] of [
        [plain, {}],
        [zipped, { 'accept-encoding': 'gzip' }],
      ] as const) {
        const again = await raw(made, path, { 'if-none-match': held.headers.etag ?? '', ...coding })
        expect([again.status, again.body.length]).toEqual([304, 0])
        const head = await raw(made, path, coding, 'HEAD')
        expect([head.status, head.body.length]).toEqual([200, 0])
        expect(head.headers['content-length']).toBe(String(held.body.length))
        expect(head.headers.etag).toBe(held.headers.etag)
      }
      const since = plain.headers['last-modified'] ?? ''
      expect((await raw(made, path, { 'if-modified-since': since })).status).toBe(304)
    }
  })

  longTest('has another ETag and a later date once the list has changed', async () => {
    const made = await mirrored()
    const before = await raw(made, '/v1/patches', {})
    made.sandbox.service.change('tickets', made.sandbox.service.ids('tickets')[3] ?? '')
    await made.run('catalog')
    const after = await raw(made, '/v1/patches', { 'if-none-match': before.headers.etag ?? '' })
    expect(after.status).toBe(200)
    expect(Date.parse(after.headers['last-modified'] ?? '')).toBeGreaterThan(
      Date.parse(before.headers['last-modified'] ?? ''),
    )
  })
})

describe('a path of the catalog', () => {
  test('has the same answer with and without the slash at the end, without a redirect', async () => {
    const made = shared()
    const [image = ''] = made.sandbox.service.ids('images')
    for (const path of ['/v1/patches', '/v1/tags', '/v1/orgs', '/v1/me', `/v1/images/${image}`]) {
      const bare = await made.ask(path, { redirect: 'manual' })
      const slashed = await made.ask(`${path}/`, { redirect: 'manual' })
      expect([path, bare.status, slashed.status]).toEqual([path, 200, 200])
      expect(await slashed.text()).toBe(await bare.text())
    }
  })

  longTest('has the same answer however it is percent-encoded, also with slashes in a repository', async () => {
    const made = await catalogBench(SERVICE, { env: { PATCHMIRROR_CATALOG_SCOPE: 'all' } })
    const { service } = made.sandbox
    const [first = '', second = ''] = service.ids('images')
    const [tag = ''] = service.ids('tags')
    service.change('images', first, { repository: 'library/python' })
    service.change('images', second, { repository: 'tools/build/tags' })
    await made.run('catalog')
    const same = async (paths: string[]): Promise<void> => {
      const [wanted, ...others] = await Promise.all(paths.map((path) => made.ask(path)))
      expect([paths[0], wanted?.status]).toEqual([paths[0], 200])
      const text = await wanted?.text()
      for (const other of others) expect([other.status, await other.text()]).toEqual([200, text])
    }
    await same([
      '/v1/images/library/python/tags',
      '/v1/images/library%2Fpython/tags',
      '/v1/images/library%2fpython/tags/',
      '/v1/images/li%62rary/python/tags',
    ])
    await same([
      '/v1/images/tools/build/tags/tags',
      '/v1/images/tools%2Fbuild%2Ftags/tags',
      '/v1/images/tools/build%2Ftags/tags/',
    ])
    const encoded = Buffer.from(tag).toString('hex').replace(/../g, '%$&')
    await same([`/v1/tags/${tag}`, `/v1/tags/${encoded}`, `/v1/tags/${encoded}/`])
    expect((await made.ask('/v1/tags/%ff')).status).toBe(400)
  })
})

longTest('lists in envelopes of the other shape are walked to their end by their own cursors', async () => {
  const made = await mirrored({ ...SERVICE, shape: 'other' })
  const all = await walkPages((at) => made.ask(at), '/v1/patches?limit=1000')
  expect(await walkPages((at) => made.ask(at), '/v1/patches?limit=9')).toEqual(all)
  expect(all).toHaveLength(130)
})

describe('a list whose upstream', () => {
  /** The same list as if upstream's pages had been written like this one. */
  async function reframed(example: unknown): Promise<CatalogBench> {
    const made = await mirrored()
    const { store } = made
    const path = '/v1/patches'
    const id = store.catalog.readList(path)?.id ?? -1
    const frame = JSON.stringify(frameOf(example, learnList(example), 1000))
    await store.transaction(() => {
      for (const row of store.catalog.listPages(id)) store.catalog.staging.keepPage(path, row)
      store.catalog.replaceList(path, 'patches', frame, store.catalog.readFieldNames(id) ?? [], Date.now())
      return Promise.resolve({ commit: true })
    })
    return made
  }

  test('gives bare arrays without cursors is served whole, unless the request limits it', async () => {
    const made = await reframed([{ ticket_id: 'x' }])
    const all = (await (await made.ask('/v1/patches')).json()) as unknown[]
    expect(all).toHaveLength(130)
    expect(await (await made.ask('/v1/patches?limit=5')).json()).toEqual(all.slice(0, 5))
    expect(await (await made.ask('/v1/patches?severities=&cve_id=none')).json()).toEqual([])
  })

  longTest('names the next page by a link has next pages by links of the mirror, with all parameters', async () => {
    const next = { href: 'https://service.example/v1/patches?limit=1000&after=x' }
    const made = await reframed({ items: [], has_more: true, count: 900, _links: { next } })
    interface Linked {
      items: { ticket_id: string; severity: string }[]
      has_more: boolean
      count: number
      _links: { next?: { href: string } }
    }
    const first = '/v1/patches?severities=high%2Clow&order=created_at%3Adesc'
    const all = (await (await made.ask(`${first}&limit=1000`)).json()) as Linked
    const seen: string[] = []
    let at: string | undefined = `${first}&limit=9`
    while (at !== undefined) {
      const one = (await (await made.ask(at)).json()) as Linked
      seen.push(...one.items.map((item) => item.ticket_id))
      expect([one.has_more, one.count]).toEqual([one._links.next !== undefined, all.items.length])
      const url: URL | undefined = one._links.next && new URL(one._links.next.href)
      expect(url?.hostname ?? '127.0.0.1').toBe('127.0.0.1')
      at = url && url.pathname + url.search
    }
    expect(seen).toEqual(all.items.map((item) => item.ticket_id))
  })
})
