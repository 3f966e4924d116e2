import { describe, expect } from 'vitest'
import { type PlainBench, type Said, type Saying, plainBench, tickets } from '../../support/catalog/plain-service.ts'
import { bothTest, longTest, telling, test } from '../../support/tables.ts'

const PATH = '/v1/patches'
const ALL = tickets(10)
const SIZE = 4 // the service gives pages smaller than those asked for

type Ticket = (typeof ALL)[number]

/** A page of the list from an offset on; `more` is the offset of the next one. */
type Form = (items: Ticket[], more: number | null, url: URL) => Said

/** A list that goes on by a parameter whose value is an offset, or the id of the last item. */
function pagedBy(param: string, form: Form, all = ALL): Saying {
  return (url) => {
    const value = url.searchParams.get(param)
    const byId = all.findIndex(({ ticket_id: id }) => id === value) + 1
    const offset = Number(/\d+$/.exec(value ?? '')?.[0] ?? 0)
    const start = byId > 0 ? byId : offset
    const size = Math.min(SIZE, Number(url.searchParams.get('limit') ?? SIZE))
    const more = start + size < all.length ? start + size : null
    return form(all.slice(start, start + size), more, url)
  }
}

const FORMS: Record<string, Saying> = {
  'a Link header around a bare array': pagedBy('page', (body, more, url) => ({
    body,
    headers:
      more === null
        ? {}
        : { link: `<${url.origin}${PATH}?page=${more}>; rel="next", <${url.origin}${PATH}>; rel="first"` },
  })),
  'a Link header with a relative URL': pagedBy('after', (body, more) => ({
    body,
    headers: more === null ? {} : { Link: `</x>; rel=prev; title="a, b", <?after=${more}>;rel=next` },
  })),
  'the URL of the next page': pagedBy('offset', (results, more, url) => ({
    body: { results, next: more === null ? null : `${url.origin}${PATH}?offset=${more}` },
  })),
  'the URL of the next page without a host': pagedBy('p', (things, more) => ({
    body: { a: { b: { things } }, nextPageUrl: more === null ? '' : `${PATH}?p=${more}` },
  })),
  'a list of links': pagedBy('page', (items, more, url) => ({
    body: {
      items,
      links: [
        { rel: 'self', href: url.href },
        ...(more === null ? [] : [{ rel: 'next', href: `${PATH}?page=${more}` }]),
      ],
    },
  })),
  'a cursor for a parameter of its own': pagedBy('page_token', (items, more) => ({
    body: { items, ...(more !== null && { nextPageToken: `token-${more}` }) },
  })),
  'a cursor under a name that nobody knows': pagedBy('after', (items, more) => ({
    body: { items, weiter: more === null ? null : `ab-${more}` },
  })),
  'a flag, and the last id as after': pagedBy('after', (data, more) => ({
    body: { data, has_more: more !== null },
  })),
  'a flag, and the last id as starting_after': pagedBy('starting_after', (data, more) => ({
    body: { object: 'list', data, hasMore: more !== null },
  })),
  'a flag, and an offset': pagedBy('offset', (data, more) => ({
    body: { data, has_more: more !== null },
  })),
  'its total alone, and the last id': pagedBy('after', (data) => ({
    body: { data, total_count: ALL.length },
  })),
}

function idsOf({ store }: PlainBench): string[] {
  const list = store.catalog.readList(PATH)
  return list === null ? [] : [...store.catalog.eachEntry(list.id)].map(({ id }) => id)
}

/** The items of a page, and what asks for the next one: by its Link header, a URL or a cursor in it. */
async function pageOf(made: PlainBench, at: string): Promise<{ items: Ticket[]; next: string | null }> {
  const response = await made.ask(at)
  expect([at, response.status]).toEqual([at, 200])
  const body = (await response.json()) as Record<string, unknown>
  const link = /<([^>]+)>; rel="next"/.exec(response.headers.get('link') ?? '')?.[1]
  const text = JSON.stringify(body).replace(/\{"rel":"self","href":"[^"]*"\}/, '')
  const own = /"(?:nextPageUrl|rel":"next","href)":"(\/[^"]+)"/.exec(text)?.[1]
  const found = link ?? own ?? /"(http:[^"]+[?&]after=[^"]+)"/.exec(text)?.[1]
  const cursor = /"(?:next|nextPageToken|weiter)":"(?!http|\/)([^"]+)"/.exec(text)?.[1]
  const next = found === undefined ? null : new URL(found, response.url)
  const items = (text.match(/\{"ticket_id":[^}]+\}/g) ?? []).map((one) => JSON.parse(one) as Ticket)
  if (next !== null) expect(next.host).toBe(new URL(response.url).host)
  if (cursor !== undefined) return { items, next: `${PATH}?limit=3&after=${cursor}` }
  return { items, next: next === null ? null : next.pathname + next.search }
}

/** All that a client of the mirror's gets who pages by three. */
async function paged(made: PlainBench): Promise<string[]> {
  const seen: string[] = []
  let at: string | null = `${PATH}?limit=3`
  while (at !== null) {
    const { items, next } = await pageOf(made, at)
    expect(items.length).toBeGreaterThan(0)
    seen.push(...items.map(({ ticket_id: id }) => id))
    expect(seen.length).toBeLessThanOrEqual(ALL.length)
    at = next
  }
  return seen
}

describe('a list whose next page is named by', () => {
  const ids = ALL.map(({ ticket_id: id }) => id)

  bothTest.each(
    telling(
      Object.entries(FORMS),
      'a Link header around a bare array',
      'a cursor under a name that nobody knows',
      'its total alone, and the last id',
    ),
  )('%s is fetched to its end, and served page by page', async (_, form) => {
    const made = await plainBench({ [PATH]: form })
    expect(await made.run('catalog')).toMatchObject({ state: 'complete', code: null })
    expect(idsOf(made)).toEqual(ids)
    expect(await paged(made)).toEqual(ids)
    const before = made.asked(PATH).length
    expect(await made.run('catalog')).toMatchObject({
      state: 'complete',
      facts: { lists: 0 },
    })
    expect(made.asked(PATH).length - before).toBeLessThanOrEqual(6)
  })

  test('a position that counts from 1 is fetched to its end, and served to who counts likewise', async () => {
    const saying: Saying = ({ searchParams }) => {
      const startIndex = Math.max(1, Number(searchParams.get('startIndex') ?? 1))
      const data = ALL.slice(startIndex - 1, startIndex - 1 + SIZE)
      return { body: { startIndex, itemsPerPage: data.length, totalResults: ALL.length, data } }
    }
    const made = await plainBench({ [PATH]: saying })
    for (let run = 0; run < 2; run++) {
      expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
      expect(idsOf(made)).toEqual(ids)
    }
    const { items } = await pageOf(made, `${PATH}?limit=3&startIndex=4`)
    expect(items.map(({ ticket_id: id }) => id)).toEqual(ids.slice(3, 6))
  })

  test('a cursor that one page shows in part is learned from a page of one item, and served under its name', async () => {
    const all = tickets(3)
    const saying = pagedBy(
      'after',
      (data, more) => ({ body: { data, cursor: { limit: 9, ...(more !== null && { next: `n-${more}` }) } } }),
      all,
    )
    const made = await plainBench({ [PATH]: saying })
    for (const count of [3, 4]) {
      if (count === 4) all.push(...tickets(4).slice(3))
      expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
      const body: unknown = await (await made.ask(`${PATH}?limit=2`)).json()
      const next = { cursor: { next: expect.any(String) as string } }
      expect(body).toMatchObject({ data: all.slice(0, 2), ...next })
      expect(body).not.toHaveProperty('cursor.after')
    }
    const ones = made.asked(PATH).filter((url) => url.includes('limit=1&') || url.endsWith('limit=1'))
    expect(ones).toHaveLength(1) // once, not after each change
  })

  test.each([10, 3])(
    'the last id, beside a cursor object without a cursor, continues by the last id: %i items',
    async (count) => {
      const form: Form = (data, more) => ({ body: { data, cursor: { limit: 9 }, has_more: more !== null } })
      const made = await plainBench({ [PATH]: pagedBy('starting_after', form, tickets(count)) })
      expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
      const first = await (await made.ask(`${PATH}?limit=2`)).json()
      expect(first).toMatchObject({ has_more: true })
      expect(first).not.toHaveProperty('cursor.after')
      const rest = await pageOf(made, `${PATH}?starting_after=t-2`)
      expect(rest.items.map(({ ticket_id: id }) => id)).toEqual(ids.slice(2, count))
    },
  )

  test('the last id is paged by the last id on the mirror too', async () => {
    const form = FORMS['a flag, and the last id as starting_after']
    const made = await plainBench(form === undefined ? {} : { [PATH]: form })
    await made.run('catalog')
    const first = await pageOf(made, `${PATH}?limit=4`)
    expect(first.items.at(-1)?.ticket_id).toBe('t-4')
    const rest = await pageOf(made, `${PATH}?starting_after=t-4`)
    expect(rest.items.map(({ ticket_id: id }) => id)).toEqual(ids.slice(4))
    expect((await made.ask(`${PATH}?starting_after=nobody`)).status).toBe(400)
  })
})

const CUT: Record<string, [Form, RegExp]> = {
  'a flag that says there is more': [(data) => ({ body: { data, has_more: true } }), /indicates that there is more/],
  'a total that is larger': [(data) => ({ body: { data, total_count: 500 } }), /upstream counts 500 items/],
  'a total that is larger, and an end': [
    (data) => ({ body: { data, total: 500, next: null } }),
    /upstream counts 500 items, but its pages contain 4/,
  ],
  'a total that is smaller': [
    (data) => ({ body: { data, total: 3, next: null } }),
    /upstream counts 3 items, but its pages contain 4/,
  ],
  'a total in a header': [(body) => ({ body, headers: { 'x-total-count': '500' } }), /upstream counts 500 items/],
  'a number of pages': [(data) => ({ body: { data, page: 1, total_pages: 3 } }), /no way to request/],
  'a page that is as large as it says pages are': [
    (data) => ({ body: { data, per_page: 4 } }),
    /its last page is full \(4 items\)/,
  ],
  'a next page at another host': [
    (data) => ({ body: { data, next: 'http://elsewhere.example/v1/patches?after=1' } }),
    /names the next page at another host, http:\/\/elsewhere\.example/,
  ],
}

describe('a list that ends with', () => {
  bothTest.each(telling(Object.entries(CUT), 'a total that is larger', 'a next page at another host'))(
    '%s is reported as incomplete',
    async (_, [form, why]) => {
      const first = (url: URL): Said => form(ALL.slice(0, SIZE), null, url)
      const made = await plainBench({ [PATH]: first })
      const report = await made.run('catalog')
      expect(report).toMatchObject({ state: 'partial', code: null, facts: { incomplete: 1 } })
      expect(report.message).toMatch(why)
      expect(report.message).toContain(`${PATH}: `)
      expect(made.store.snapshots.readSnapshot('catalog')).toMatchObject({ whole: false })
      const status = (await (await made.ask('/-/status')).json()) as {
        sources: { name: string; partialLists: { path: string; reason: string }[] }[]
      }
      const told = status.sources.find(({ name }) => name === 'catalog')?.partialLists
      expect(told).toMatchObject([{ path: PATH }])
      expect(told?.[0]?.reason).toMatch(why)
      // The numbers of the envelope stay upstream's, and all that is stored can be paged through.
      const served = (await (await made.ask(PATH)).json()) as object
      const upstream = first(new URL(made.origin.url)).body as Record<string, unknown>
      for (const name of ['total', 'total_count', 'has_more', 'total_pages'] as const)
        if (name in upstream) expect(served).toMatchObject({ [name]: upstream[name] })
      expect(await paged(made)).toEqual(['t-1', 't-2', 't-3', 't-4'])
      expect(await made.run('catalog')).toMatchObject({ state: 'partial' })
      expect((await made.run('catalog')).message).toMatch(why)
      made.say({ [PATH]: FORMS['the URL of the next page'] ?? (() => ({})) })
      expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
      expect(idsOf(made)).toHaveLength(10)
    },
  )

  test('a hundred items is complete when the next request is empty or a page of one item names the next', async () => {
    const all = tickets(100)
    const ended: Saying = (url) => {
      const after = url.searchParams.get('after')
      return { body: all.slice(all.findIndex(({ ticket_id: id }) => id === after) + 1) }
    }
    const linked: Saying = (url) =>
      url.searchParams.get('limit') === '1'
        ? { body: all.slice(0, 1), headers: { link: '<?after=1>; rel="next"' } }
        : { body: all }
    for (const form of [ended, linked]) {
      const made = await plainBench({ [PATH]: form })
      expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    }
  })

  test('an estimated total is complete, and upstream’s number is kept', async () => {
    const body = { data: ALL, total: 40, total_is_estimated: true, next: null }
    const made = await plainBench({ [PATH]: () => ({ body }) })
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    expect(await (await made.ask(PATH)).json()).toEqual(body)
  })
})

test('stored items stay while their list is incomplete, and are removed when the list is complete again', async () => {
  const whole = FORMS['a Link header around a bare array'] ?? (() => ({}))
  const made = await plainBench({ [PATH]: whole })
  await made.run('catalog')
  made.say({
    [PATH]: () => ({ body: { data: [...ALL.slice(1, 3), { ticket_id: 'new' }], has_more: true } }),
  })
  expect(await made.run('catalog')).toMatchObject({ state: 'partial' })
  expect(idsOf(made).sort()).toEqual([...ALL.map(({ ticket_id: id }) => id), 'new'].sort())
  expect(await made.run('catalog')).toMatchObject({ state: 'partial', facts: { lists: 0 } })
  made.say({ [PATH]: () => ({ body: { data: ALL.slice(0, 9), has_more: false } }) })
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  expect(idsOf(made)).toEqual(ALL.slice(0, 9).map(({ ticket_id: id }) => id))
})

test('a list without an end is reported and skipped, the others are mirrored', async () => {
  const endless: Saying = (url) => {
    const at = Number(url.searchParams.get('after') ?? 0)
    return { body: { data: [{ id: `p-${at}` }], cursor: { after: String(at + 1) } } }
  }
  const made = await plainBench({ [PATH]: () => ({ body: ALL }), '/v1/packages/': endless }, {}, undefined, {
    listPages: 20,
  })
  const report = await made.run('catalog')
  expect(report).toMatchObject({ state: 'partial', facts: { lacking: 1 } })
  expect(String(report.facts['lackingIds'])).toContain('does not end after 20 pages; ask the service to end it')
  expect(made.asked('/v1/packages/')).toHaveLength(20)
  expect(idsOf(made)).toHaveLength(10)
})

/** The same items for every request. */
const unpaged =
  (count: number): Saying =>
  () => ({ body: tickets(count) })

longTest(
  'a list of a usual page size that says nothing is complete with a warning, and the status says so',
  async () => {
    const made = await plainBench({ [PATH]: unpaged(25) })
    const report = await made.run('catalog')
    const why = /it has 25 items, a usual page size, and the service does not say whether there are more/
    expect(report).toMatchObject({ state: 'complete', code: null })
    expect(report.message).toMatch(/the end of 1 list is not proved: \/v1\/patches: it has 25 items/)
    expect(String(report.facts['unprovedLists'])).toMatch(why)
    const status = (await (await made.ask('/-/status')).json()) as {
      sources: { name: string; unprovedLists: object[]; partialListCount: number }[]
    }
    const catalog = status.sources.find(({ name }) => name === 'catalog')
    expect(catalog).toMatchObject({ partialListCount: 0, unprovedLists: [{ path: PATH }] })
    const before = made.asked(PATH).length
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    expect(made.asked(PATH).length - before).toBe(1) // the probes are remembered
  },
)

test('a list of another size that gives the same items for every request is not paged, and is whole', async () => {
  const made = await plainBench({ [PATH]: unpaged(23) })
  const report = await made.run('catalog')
  expect(report).toMatchObject({ state: 'complete', code: null })
  expect(report.facts).not.toHaveProperty('unprovedLists')
  expect(made.asked(PATH).length).toBeLessThanOrEqual(7)
  const { id = 0 } = made.store.catalog.readList(PATH) ?? {}
  expect(JSON.parse(made.store.catalog.readEvidence(id) ?? '')).toMatchObject({ grade: 'proved' })
  made.say({ [PATH]: unpaged(24) })
  const before = made.asked(PATH).length
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  expect(made.asked(PATH).length - before).toBe(1)
})

longTest('a list whose pages are numbered is read page by page, and an unchanged run asks for no more', async () => {
  const all = tickets(437)
  const numbered: Saying = (url) => {
    const page = Number(url.searchParams.get('page') ?? 1)
    return { body: { page, total_pages: 18, data: all.slice(page * 25 - 25, page * 25) } }
  }
  const made = await plainBench({ [PATH]: numbered })
  expect(await made.run('catalog')).toMatchObject({ state: 'complete', code: null })
  expect(idsOf(made)).toEqual(all.map(({ ticket_id: id }) => id))
  const before = made.asked(PATH).length
  const again = await made.run('catalog')
  expect(again).toMatchObject({ state: 'complete', facts: { lists: 0 } })
  expect(made.asked(PATH).length - before).toBe(18)
  all.push({ ticket_id: 'new', n: 438 })
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  expect(idsOf(made)).toHaveLength(438)
})

test('a silent list of a usual size that lacks what it had keeps it, until its end is proved', async () => {
  const all = tickets(27)
  const shown = (from: number, to: number): Record<string, Saying> => ({
    [PATH]: () => ({ body: { data: all.slice(from, to) } }),
  })
  const made = await plainBench(shown(0, 25))
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  made.say(shown(2, 27))
  const report = await made.run('catalog')
  expect(report).toMatchObject({ state: 'partial', facts: { incomplete: 1 } })
  expect(report.message).toContain('2 stored items are not in it, and may be behind its last page')
  expect(idsOf(made)).toHaveLength(27)
  expect(await made.run('catalog')).toMatchObject({ state: 'partial', facts: { lists: 0 } })
  made.say(shown(3, 27))
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  expect(idsOf(made)).toHaveLength(24)
})

test('a list of another form than before that lacks what it had waits for a decision', async () => {
  const all = tickets(23)
  const made = await plainBench({ [PATH]: () => ({ body: { data: all, cursor: { after: null } } }) })
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  made.say({ [PATH]: () => ({ body: all.slice(0, 11) }) })
  const refused = await made.run('catalog')
  expect(refused).toMatchObject({ state: 'quarantined' })
  expect(refused.message).toContain('its pages have another form than before, and lack 12 stored items')
  expect(idsOf(made)).toHaveLength(23)
  const approved = made.store.quarantine.readQuarantine(refused.id)
  if (approved === null) throw new Error('the run was not quarantined')
  expect(await made.run('catalog', { kind: 'approve', approved })).toMatchObject({ state: 'complete' })
  expect(idsOf(made)).toHaveLength(11)
  made.say({ [PATH]: () => ({ body: { tickets: all } }) })
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  expect(idsOf(made)).toHaveLength(23)
})

test('an item behind a page that stays as it is, and is confirmed by 304, is found where a header leads to it', async () => {
  const all = tickets(2 * SIZE)
  const linked: Saying = (url, { headers: asked }) => {
    const page = Number(url.searchParams.get('page') ?? 1)
    const items = all.slice(page * SIZE - SIZE, page * SIZE)
    const etag = `"${items.map(({ n }) => n).join()}"`
    const link = page * SIZE < all.length ? { link: `<${PATH}?page=${page + 1}>; rel="next"` } : {}
    if (asked['if-none-match'] === etag) return { status: 304, headers: { etag } }
    return { body: items, headers: { etag, ...link } }
  }
  const made = await plainBench({ [PATH]: linked })
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  expect(await made.run('catalog')).toMatchObject({ state: 'complete', facts: { lists: 0 } })
  all.push({ ticket_id: 'new', n: 99 })
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  expect(idsOf(made)).toHaveLength(2 * SIZE + 1)
  expect(await made.run('catalog')).toMatchObject({ state: 'complete', facts: { lists: 0 } })
})

test('a stored list that was never judged is judged by the next run, and nothing that is served changes', async () => {
  const made = await plainBench({ [PATH]: unpaged(23) })
  await made.run('catalog')
  const snapshot = made.store.snapshots.readSnapshot('catalog')?.id
  await made.store.transaction(() => {
    made.store.catalog.noteEvidence([[PATH, 'null']])
    return Promise.resolve({ commit: true })
  })
  expect(await made.run('catalog')).toMatchObject({ state: 'complete', facts: { lists: 0 } })
  expect(made.store.snapshots.readSnapshot('catalog')?.id).toBe(snapshot)
  const { id = 0 } = made.store.catalog.readList(PATH) ?? {}
  expect(made.store.catalog.readEvidence(id)).toContain('"grade":"proved"')
})
