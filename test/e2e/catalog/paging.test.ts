import { expect } from 'vitest'
import { type ListForm, shaped } from '../../sandbox/service/shapes/shape.ts'
import { catalogBench } from '../../support/catalog/mirror.ts'
import { plainBench } from '../../support/catalog/plain-service.ts'
import { bothTest, telling, test } from '../../support/tables.ts'
import { walkList } from '../../support/walk.ts'

const PAGES = { items: ['data'], largestPage: 4, emptyLast: false, ignoresLimit: true }

/** Forms of the sandbox's lists (`--vary`) that the named shapes do not have. */
const FORMS: Readonly<Record<string, ListForm>> = {
  'page numbers': {
    ...PAGES,
    next: { form: 'page', parameter: 'page', first: 1, number: ['page'], pages: ['total_pages'] },
  },
  'page numbers from 0 that no page shows': {
    ...PAGES,
    next: { form: 'page', parameter: 'page', first: 0 },
  },
  'a cursor in a header': {
    ...PAGES,
    items: [],
    next: { form: 'header', name: 'X-Next-Cursor', parameter: 'cursor' },
  },
  'a cursor under its own name': {
    ...PAGES,
    next: { form: 'cursor', at: ['resume_key'], end: 'absent', parameter: 'resume_key', own: true },
  },
  'a Content-Range': { ...PAGES, next: { form: 'range', parameter: 'offset' } },
  'no paging at all': {
    ...PAGES,
    largestPage: 1_000_000,
    next: { form: 'none', parameter: '' },
  },
}

bothTest.each(telling(Object.entries(FORMS), 'page numbers'))(
  'a service with %s is mirrored whole, and an unchanged run asks for each page once',
  async (_name, form) => {
    const env = { PATCHMIRROR_CATALOG_SCOPE: 'all' }
    const shape = shaped('wire', { lists: form, patches: form })
    const made = await catalogBench({ tags: 9, images: 2, packages: 3, tickets: 14, shape }, { env })
    const { requests, service } = made.sandbox
    expect(await made.run('catalog')).toMatchObject({ state: 'complete', code: null })
    const list = made.store.catalog.readList('/v1/patches')
    const stored = [...made.store.catalog.eachEntry(list?.id ?? 0)].map(({ id }) => id)
    expect(stored).toEqual(service.ids('tickets'))
    const upstream = await walkList(made.askUpstream, '/v1/patches', form)
    const isShown = form.next.form !== 'page' || form.next.pages !== undefined
    if (isShown) expect(upstream.items).toHaveLength(14)
    // Whoever can read the service can read the mirror, page by page.
    const { next } = form
    if (isShown && ['page', 'header', 'cursor'].includes(next.form)) {
      const mirror = await walkList(made.ask, '/v1/patches?limit=5', form)
      expect(mirror).toEqual({ items: upstream.items, pages: 3 })
    }
    if (next.form === 'page' || next.form === 'range') {
      const last = next.form === 'page' ? next.first + 2 : 10
      const answer = await made.ask(`/v1/patches?limit=5&${next.parameter}=${last}`)
      const { data } = (await answer.json()) as { data: { ticket_id: string }[] }
      expect(data.map(({ ticket_id: id }) => id)).toEqual(stored.slice(10))
      const beyond = await made.ask(`/v1/patches?limit=5&order=created_at:asc&${next.parameter}=99`)
      expect(await beyond.json()).toMatchObject({ data: [] })
      expect((await made.ask(`/v1/patches?${next.parameter}=x`)).status).toBe(400)
    }
    requests.clear()
    expect(await made.run('catalog')).toMatchObject({ message: 'nothing changed' })
    expect(requests.count('/v1/patches')).toBeLessThanOrEqual(upstream.pages + (isShown ? 0 : 4))
  },
)

test('a service that refuses pages of a thousand is mirrored in smaller ones, and what it removes is removed', async () => {
  let count = 150
  const made = await plainBench({
    '/v1/patches': ({ searchParams }) => {
      const limit = Number(searchParams.get('limit') ?? 100)
      if (limit > 100) return { status: 422, body: { message: 'limit must be at most 100' } }
      const all = Array.from({ length: count }, (_, at) => ({ ticket_id: `t-${at}` }))
      const end = Number(searchParams.get('after') ?? 0) + limit
      const after = end < count ? String(end) : null
      return { body: { tickets: all.slice(end - limit, end), cursor: { after, total_count: count } } }
    },
  })
  for (const now of [150, 150, 149]) {
    count = now
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    expect(made.store.catalog.readList('/v1/patches')?.entries).toBe(now)
  }
})

test('a service that counts its pages from another number than before loses no page', async () => {
  const all = Array.from({ length: 25 }, (_, at) => ({ ticket_id: `t-${at + 1}` }))
  let first = 1
  const made = await plainBench({
    '/v1/patches': (url) => {
      const start = (Number(url.searchParams.get('page') ?? first) - first) * 10
      return start < 0 ? { status: 400 } : { body: { tickets: all.slice(start, start + 10) } }
    },
  })
  for (first of [1, 0, 1]) {
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    expect([first, made.store.catalog.readList('/v1/patches')?.entries]).toEqual([first, 25])
  }
  all.splice(3, 12)
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  expect(made.store.catalog.readList('/v1/patches')?.entries).toBe(13)
})
