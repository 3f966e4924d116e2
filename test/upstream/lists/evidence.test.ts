import { describe, expect, test } from 'vitest'
import { gradeOf } from '../../../src/upstream/lists/evidence.ts'
import { statusError } from '../../../src/upstream/http/errors.ts'
import { metaOf } from '../../../src/upstream/http/response.ts'
import type { KnownList } from '../../../src/upstream/lists/page.ts'
import { type WalkEnd, type ListSession, walkList } from '../../../src/upstream/lists/walk.ts'
import { type PagingForm, PAGING_FORMS, answerIn } from '../../support/catalog/paging-forms.ts'
import { tickets } from '../../support/catalog/plain-service.ts'

const PATH = '/v1/patches'
const BOUNDS = { timeoutMs: 60_000, bytes: 100_000_000, pages: 100 }
const NEW: KnownList = { onward: null, cursorPath: null, cut: null, probed: null, graded: false }

/** A service with one list in a form, without a network between. */
function serviceOf(form: PagingForm, all: readonly object[]): ListSession & { asked: string[] } {
  const asked: string[] = []
  return {
    root: 'http://service.example',
    asked,
    fetchDocument(target) {
      asked.push(String(target))
      const { searchParams } = new URL(String(target), 'http://service.example')
      const { status = 200, body, headers = {} } = answerIn(form, all, searchParams)
      if (status !== 200 && status !== 206) return Promise.reject(statusError(status, {}, String(target), Date.now))
      const bytes = Buffer.from(JSON.stringify(body))
      const meta = metaOf({ status, headers, body: undefined as never }, () => 0)
      return Promise.resolve({ status, body: bytes, gzip: null, meta })
    },
  }
}

interface Walked {
  ids: Set<string>
  end: WalkEnd
  asked: string[]
}

async function walked(form: PagingForm, all: readonly object[], known = NEW): Promise<Walked> {
  const session = serviceOf(form, all)
  const ids = new Set<string>()
  const sink = {
    begin: () => {
      ids.clear()
    },
    kept: () => undefined,
    page({ items }: { items: readonly Buffer[] }): boolean {
      const before = ids.size
      for (const item of items) ids.add(idOf(item))
      return items.length === 0 || ids.size > before
    },
  }
  const options = { limit: 1000, maxBytes: 10_000_000, bounds: BOUNDS, idOf, known }
  const reads = { stored: () => null, refuse: () => null, now: () => 0 }
  const end = await walkList(session, PATH, { ...options, ...reads }, sink)
  return { ids, end, asked: session.asked }
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

/** Returns a form of which there must be one. */
function formOf(name: string): PagingForm {
  const form = PAGING_FORMS[name]
  if (form === undefined) throw new Error(`no such form: ${name}`)
  return form
}

test('a list is not proved by requests for other pages that were refused', () => {
  const silent = { unfollowed: null, more: [], total: null, end: null, circles: null, lacks: null, flaw: null }
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

  test('by its status alone is cut', async () => {
    const part: PagingForm = { ...formOf('nothing, unpaged'), says: ({ items }) => ({ status: 206, body: items }) }
    expect((await walked(part, tickets(23))).end.grade?.grade).toBe('cut')
  })

  test.each([
    { partial: false, error: null, errors: [], success: true, status: 'ok', message: 'done' },
    { rate_limited: true, unlimited: true, warnings: ['this version is deprecated'], error: { code: 0 } },
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
