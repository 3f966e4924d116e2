import { describe, expect, test } from 'vitest'
import { gradeOf } from '../../../src/upstream/lists/evidence.ts'
import { statusError } from '../../../src/upstream/http/errors.ts'
import { metaOf } from '../../../src/upstream/http/response.ts'
import type { KnownList } from '../../../src/upstream/lists/page.ts'
import { sha256Of } from '../../../src/base/digest.ts'
import { type WalkEnd, type WalkedPage, type ListSession, walkList } from '../../../src/upstream/lists/walk.ts'
import { type PagingForm, PAGING_FORMS, answerIn } from '../../support/catalog/paging-forms.ts'
import { tickets } from '../../support/catalog/plain-service.ts'

const PATH = '/v1/patches'
const BOUNDS = { timeoutMs: 60_000, bytes: 100_000_000, pages: 100 }
const NEW: KnownList = {
  items: null,
  onward: null,
  cursorPath: null,
  cut: null,
  probed: null,
  graded: false,
  endInPage: false,
  statesNothing: null,
}

/** A service with one list in a form, without a network between. It confirms the bodies that it is asked about. */
function serviceOf(form: PagingForm, all: readonly object[]): ListSession & { asked: string[] } {
  const asked: string[] = []
  return {
    root: 'http://service.example',
    asked,
    fetchDocument(target, { stored }) {
      asked.push(String(target))
      const { searchParams } = new URL(String(target), 'http://service.example')
      const { status = 200, body, headers = {} } = answerIn(form, all, searchParams)
      if (status !== 200 && status !== 206) return Promise.reject(statusError(status, {}, String(target), Date.now))
      const bytes = Buffer.from(JSON.stringify(body))
      const etag = `"${sha256Of(bytes).toString('hex')}"`
      const isSame = stored?.etag === etag
      const answer = { status: isSame ? 304 : status, headers: { ...headers, etag }, body: undefined as never }
      const meta = metaOf(answer, () => 0)
      return Promise.resolve(isSame ? { status: 304, meta } : { status, body: bytes, gzip: null, meta })
    },
  }
}

type Page = Pick<WalkedPage, 'cursor' | 'next' | 'etag' | 'lastModified' | 'sha256'> & {
  entries: number
  ids: string[]
}

interface Walked {
  ids: Set<string>
  end: WalkEnd
  asked: string[]
  pages: Page[]
  cursorPath: KnownList['cursorPath']
}

async function walked(
  form: PagingForm,
  all: readonly object[],
  known = NEW,
  before: readonly Page[] = [],
): Promise<Walked> {
  const session = serviceOf(form, all)
  const ids = new Set<string>()
  const pages: Page[] = []
  let { cursorPath } = known
  const take = (page: Page): void => {
    pages.push(page)
    for (const id of page.ids) ids.add(id)
  }
  const sink = {
    begin: () => {
      ids.clear()
      pages.length = 0
    },
    kept: (number: number) => {
      const page = before[number]
      if (page !== undefined) take(page)
    },
    page({ items, shape, ...page }: WalkedPage): boolean {
      const own = items.map(idOf)
      const isNew = own.length === 0 || own.some((id) => !ids.has(id))
      cursorPath = shape.cursorPath ?? cursorPath
      if (isNew) take({ ...page, entries: own.length, ids: own })
      return isNew
    },
  }
  const options = { limit: 1000, maxBytes: 10_000_000, bounds: BOUNDS, idOf, known }
  const reads = { stored: (number: number) => before[number] ?? null, refuse: () => null, now: () => 0 }
  const end = await walkList(session, PATH, { ...options, ...reads }, sink)
  return { ids, end, asked: session.asked, pages, cursorPath }
}

/** What a run knows after a walk. */
function knownBy({ ids, end, cursorPath }: Walked): KnownList {
  const { onward, cut, probed, endInPage, statesNothing } = end
  return { items: ids.size, onward, cursorPath, cut, probed, endInPage, statesNothing, graded: true }
}

function idOf(item: Buffer): string {
  return (JSON.parse(item.toString()) as { ticket_id?: string }).ticket_id ?? ''
}

describe.each(Object.entries(PAGING_FORMS))('a list whose pages say: %s', (name, form) => {
  test.each([0, 1, 23, 25, 437])('with %i items is whole, or is not called so', async (count) => {
    const { ids, end, asked } = await walked(form, tickets(count))
    const said = {
      name,
      count,
      found: ids.size,
      grade: end.grade?.grade,
      why: end.grade?.why,
      asked,
    }
    const isWhole = ids.size === count
    const lacking = form.isTelling ? ['cut'] : ['cut', 'unproved']
    const fit = isWhole ? ['proved', 'unproved'] : lacking
    // A list of one item gives no second one by which a way could be understood.
    if (form.isConstant === true && count === 1) fit.push('cut')
    expect(fit, JSON.stringify(said)).toContain(said.grade)
    if (form.isPaged) expect(ids.size, JSON.stringify(said)).toBe(count)
    expect(asked.length, JSON.stringify(said)).toBeLessThanOrEqual(45)
    const { onward, cut, probed } = end
    const again = await walked(form, tickets(count), { ...NEW, onward, cut, probed, graded: true })
    expect(again.ids, JSON.stringify(said)).toEqual(ids)
    expect(again.end.grade?.grade, JSON.stringify(said)).toBe(end.grade?.grade)
  })
})

describe.each(Object.entries(PAGING_FORMS))(
  'a list that grows behind a page which stays as it is: %s',
  (name, form) => {
    test.each([
      [25, 26],
      [50, 51],
      [75, 125],
    ])('from %i items to %i is read as a whole, or is not called whole any more', async (count, more) => {
      const first = await walked(form, tickets(count))
      const then = await walked(form, tickets(more), knownBy(first), first.pages)
      const { grade } = then.end.grade === null ? first.end : then.end
      const said = JSON.stringify({ name, found: then.ids.size, first: first.end.grade, grade, asked: then.asked })
      if (first.end.grade?.grade === 'proved' && grade?.grade === 'proved') expect(then.ids.size, said).toBe(more)
      const again = await walked(form, tickets(more), knownBy(then), then.pages)
      expect(again.ids, said).toEqual(then.ids)
      // A flaw may be gone each time, so that list is searched again.
      if (grade?.grade !== 'cut') expect(again.asked.length, said).toBeLessThanOrEqual(then.pages.length + 2)
    })
  },
)

test('a header that leads on is seen beside a page that stays as it is, also where the end of the list was not proved', async () => {
  const form = formOf('a continuation token in a header')
  const first = await walked(form, tickets(25))
  expect(first.end.grade?.grade).toBe('unproved')
  const then = await walked(form, tickets(26), knownBy(first), first.pages)
  expect([then.ids.size, then.end.grade?.grade]).toEqual([26, 'proved'])
})

/** Returns a form of which there must be one. */
function formOf(name: string): PagingForm {
  const form = PAGING_FORMS[name]
  if (form === undefined) throw new Error(`no such form: ${name}`)
  return form
}

test('a list is not proved by requests for other pages that were refused', () => {
  const silent = {
    unfollowed: null,
    more: [],
    total: null,
    end: null,
    circles: null,
    lacks: null,
    flaw: null,
    unread: null,
  }
  const read = { items: 27, shown: 27, asked: 1000 }
  const probed = { limitKept: false, otherPages: 'no answer' } as const
  expect(gradeOf({ ...silent, ...read, ...probed }).grade).toBe('unproved')
  expect(gradeOf({ ...silent, ...read, ...probed, otherPages: 'the same items' }).grade).toBe('proved')
})

test('a list by page numbers is not proved by a page that is refused behind a full one, but by one behind a shorter one', async () => {
  const whole = formOf('nothing, a fixed page, page numbers and 400 behind the last')
  const broken: PagingForm = {
    ...whole,
    startOf: (query, size, all) => (query.get('page') === '5' ? null : whole.startOf(query, size, all)),
  }
  const { ids, end } = await walked(whole, tickets(437))
  expect([ids.size, end.grade?.grade]).toEqual([437, 'proved'])
  const { onward, cut, probed } = end
  for (const known of [NEW, { ...NEW, onward, cut, probed, graded: true }]) {
    const found = await walked(broken, tickets(437), known)
    expect([found.ids.size, found.end.grade?.grade]).toEqual([100, 'unproved'])
  }
})

describe('a list of which a page says itself that items are missing', () => {
  const FLAWS: [string, object][] = [
    ['a flag', { partial: true }],
    ['a flag deeper', { meta: { isPartial: 'true' } }],
    ['a limit', { limit_reached: true }],
    ['a time-out', { timed_out: true }],
    ['a state', { status: 'partial' }],
    ['an error', { error: 'shard 3 did not answer' }],
    ['errors', { errors: [{ message: 'shard 3 did not answer' }] }],
    ['no success', { success: false }],
    ['a warning', { warnings: ['the results were truncated'] }],
    ['a warning about a part', { warning: 'one region did not answer' }],
    ['a message', { message: 'temporarily unavailable' }],
    ['a message about later', { message: 'the index is being rebuilt' }],
    ['a state of error', { status: 'error' }],
    ['a status', { meta: { status: 503 } }],
    ['what did not answer', { unreachable: ['eu-1'] }],
    ['a flag for old content', { stale: true }],
    ['a mode', { meta: { mode: 'maintenance' } }],
    ['a message about a part', { message: 'some results could not be loaded' }],
    ['shards', { failed_shards: 2 }],
    ['names of what failed', { failed: ['eu-1'] }],
    ['names of what is left out', { omitted: ['t-24', 't-25'] }],
  ]
  const saying = (more: object): PagingForm => ({
    ...formOf('nothing, unpaged'),
    says: ({ items }) => ({ body: { data: items, total: items.length, ...more } }),
  })

  test.each(FLAWS)('by %s is cut, whatever it counts', async (_, more) => {
    const { end } = await walked(saying(more), tickets(23))
    expect(end.grade).toEqual({ grade: 'cut', why: expect.stringContaining(Object.keys(more)[0] ?? '') as unknown })
    const { onward, cut, probed } = end
    const again = await walked(saying({}), tickets(23), { ...NEW, onward, cut, probed, graded: true })
    expect(again.end.grade?.grade).toBe('proved')
  })

  test.each([true, false])('by an element about the list is cut, at its end: %s', async (isLast) => {
    const about = { has_more: true }
    const bare: PagingForm = {
      ...formOf('a bare array'),
      says: ({ items }) => ({ body: isLast ? [...items, about] : [about, ...items] }),
    }
    expect((await walked(bare, tickets(23))).end.grade).toMatchObject({ grade: 'cut' })
  })

  test('by its state, and has none, is not read', async () => {
    for (const more of [{ status: 'processing' }, { meta: { state: 'in_progress' } }])
      await expect(walked(saying(more), [])).rejects.toThrow(/it is not ready yet/)
  })

  const withHeaders = (headers: Record<string, string>): PagingForm => ({
    ...formOf('nothing, unpaged'),
    says: ({ items }) => ({ body: items, headers }),
  })

  test.each([
    { warning: '110 - "Response is Stale"' },
    { warning: '199 - "incomplete"' },
    { 'x-partial': 'true' },
    { 'x-degraded': 'true' },
    { 'x-cache': 'STALE' },
    { 'cf-cache-status': 'UPDATING' },
    { 'cache-status': 'edge; hit; ttl=-412' },
  ])('by a header is cut: %j', async (headers) => {
    expect((await walked(withHeaders(headers), tickets(23))).end.grade?.grade).toBe('cut')
  })

  test.each([{ 'x-cache': 'MISS' }, { 'cache-status': 'edge; fwd=stale; fwd-status=200' }, { 'x-degraded': 'false' }])(
    'is not seen in a header: %j',
    async (headers) => {
      expect((await walked(withHeaders(headers), tickets(23))).end.grade?.grade).toBe('proved')
    },
  )

  test('by its status alone is cut', async () => {
    const part: PagingForm = { ...formOf('nothing, unpaged'), says: ({ items }) => ({ status: 206, body: items }) }
    expect((await walked(part, tickets(23))).end.grade?.grade).toBe('cut')
  })

  test.each([
    { partial: false, error: null, errors: [], success: true, status: 'ok', message: 'done' },
    { rate_limited: true, unlimited: true, warnings: ['this version is deprecated'], error: { code: 0 } },
    { next_release: { version: '2' }, next_maintenance: { starts: '2026-01-02' }, next: {}, next_page: { href: null } },
    { status: 200, message: 'all tickets', unavailable: 3, unreachable: [], stale: false, warning: 'use v2' },
    { failed: 3, missing: 2, message: 'tickets that failed are marked', mode: 'live', maintenance: false },
    { code: 200, took_ms: 312, version: 20260101, generated: 1_767_225_600, size: 100, revision: 99, max: 5000 },
  ])('is not seen in %j', async (more) => {
    expect((await walked(saying(more), tickets(23))).end.grade?.grade).toBe('proved')
  })

  test.each([
    ['a flag on all pages but the last', (more: boolean) => ({ partial: more }), 'proved'],
    ['an error on all pages but the last', (more: boolean) => ({ error: more ? 'no answer' : null }), 'cut'],
  ] as const)('%s', async (_, fields, grade) => {
    const whole = formOf('a next_cursor for cursor')
    const form: PagingForm = {
      ...whole,
      says(shown, query) {
        const page = whole.says(shown, query)
        return { ...page, body: { ...(page.body as object), ...fields(shown.more !== null) } }
      },
    }
    const { ids, end } = await walked(form, tickets(437))
    expect([ids.size, end.grade?.grade]).toEqual([437, grade])
  })
})

describe('a list whose first answer is empty', () => {
  /** A service that answers nothing to a `limit` above 100. */
  const shy: PagingForm = {
    ...formOf('a next_cursor for cursor'),
    fixed: null,
    startOf: (query, size, all) => (size > 100 ? all : numberOf(query.get('cursor'))),
  }
  const numberOf = (text: string | null): number => Number(/\d+$/.exec(text ?? '')?.[0] ?? 0)

  test.each([NEW, { ...NEW, items: 437, graded: true }])(
    'is asked for without a size, and read by a size that gives items, when %j is known',
    async (known) => {
      const { ids, end, asked } = await walked(shy, tickets(437), known)
      expect([ids.size, end.grade?.grade]).toEqual([437, 'proved'])
      expect(asked.slice(0, 3)).toEqual([`${PATH}?limit=1000`, PATH, `${PATH}?limit=100`])
    },
  )

  test('is empty without a size too, and not asked for again when that is known', async () => {
    const first = await walked(shy, [])
    expect([first.asked, first.end.grade?.grade]).toEqual([[`${PATH}?limit=1000`, PATH], 'proved'])
    expect((await walked(shy, [], knownBy(first), first.pages)).asked).toHaveLength(1)
  })
})

describe('a list of pages of 24, whatever is asked for, that says nothing of more', () => {
  const silent = (startOf: PagingForm['startOf']): PagingForm => ({
    ...formOf('nothing, a fixed page'),
    fixed: 24,
    startOf,
  })

  test.each(['offset', 'skip', 'start', 'from'])('is read by the number of items: %s', async (param) => {
    const form = silent((query) => Number(query.get(param) ?? 0))
    const { ids, end } = await walked(form, tickets(100))
    expect([ids.size, end.grade?.grade]).toEqual([100, 'proved'])
  })

  test.each(['page', 'page[number]', 'p', 'page_no', 'pageIndex'])(
    'is read by the number of pages: %s',
    async (param) => {
      const form = silent((query) => Number(query.get(param) ?? 1) * 24 - 24)
      const { ids, end } = await walked(form, tickets(100))
      expect([ids.size, end.grade?.grade]).toEqual([100, 'proved'])
    },
  )
})

describe('a list that was probed before', () => {
  const whole = formOf('nothing, unpaged')

  test('is probed again when it is shorter', async () => {
    const { onward, cut, probed } = (await walked(whole, tickets(31))).end
    expect(probed?.otherPages).toBe('the same items')
    const pages = { ...formOf('nothing, a fixed page, page numbers'), fixed: 24 }
    const known = { ...NEW, onward, cut, probed, graded: true }
    expect((await walked(pages, tickets(31), known)).ids.size).toBe(31)
  })

  test('is not probed again when it is as long as before, or longer', async () => {
    const { onward, cut, probed } = (await walked(whole, tickets(31))).end
    const known = { ...NEW, onward, cut, probed, graded: true }
    for (const count of [31, 33]) {
      const { asked, end } = await walked(whole, tickets(count), known)
      expect(asked).toHaveLength(1)
      expect(end.grade?.grade).toBe('proved')
    }
  })

  test('is probed again when no other page than that of one item was asked for', async () => {
    const probed = { items: 40, limitKept: true, otherPages: null }
    const capped = formOf('nothing, the limit is kept up to 40, page numbers')
    const { ids } = await walked(capped, tickets(437), { ...NEW, probed, graded: true })
    expect(ids.size).toBe(437)
  })
})
