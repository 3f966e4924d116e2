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
  return (JSON.parse(item.toString()) as { ticket_id: string }).ticket_id
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
  const silent = { unfollowed: null, more: [], total: null, end: null, circles: null, lacks: null }
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
