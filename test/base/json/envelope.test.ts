import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Frame, joinPage } from '../../../src/base/json/envelope.ts'
import { endingOf, frameOf, withNextOf } from '../../../src/base/json/envelope-learn.ts'
import { learnList } from '../../../src/upstream/lists/shape.ts'

const MIRROR = 'http://mirror.example/things'
const URLS = { base: 'http://mirror.example', self: MIRROR, first: MIRROR, next: null }

/** A service's way to write a page. */
type Envelope = (items: unknown[], next: string | null, total: number, limit: number) => unknown

const url = (cursor: string | null): string | null =>
  cursor === null ? null : `https://service.example/v1/things?limit=2&after=${cursor}`

const ENVELOPES: Record<string, Envelope> = {
  published: (data, after, total, limit) => ({
    data,
    cursor: { ...(after !== null && { after }), before: null, limit, total_count: total },
  }),
  'an empty text at the end': (tickets, after) => ({ tickets, cursor: { after: after ?? '' } }),
  'null at the end': (data, after, total) => ({ data, total, meta: { next: after } }),
  'beside the items': (items, next, total) => ({
    total,
    items,
    ...(next !== null && { next_cursor: next }),
  }),
  'a next URL, and a count that is the total': (results, next, total) => ({
    count: total,
    next: url(next),
    previous: null,
    results,
  }),
  'a link object': (users, next, total, limit) => ({
    _embedded: { users },
    _links: { self: { href: '/things' }, ...(next !== null && { next: { href: url(next) } }) },
    page: { size: limit, total_items: total, total_pages: Math.ceil(total / limit) },
  }),
  'flags, and a count of what is shown': (list, next, total) => ({
    list,
    has_more: next !== null,
    nextPageToken: next ?? '',
    returned: list.length,
    total,
  }),
  'two names for one next page': (data, next) => ({
    data,
    next: url(next),
    next_cursor: next,
  }),
  'page info': (data, next, total) => ({
    response: { data, pageInfo: { endCursor: next, hasNextPage: next !== null, total } },
  }),
}

function learn(page: unknown, limit: number): Frame {
  return frameOf(page, learnList(page), limit)
}

function join(frame: Frame, items: unknown[], cursor: string | null, total: number, limit: number) {
  const next = cursor === null ? null : { cursor, url: url(cursor) ?? '' }
  const bodies = items.map((item) => Buffer.from(JSON.stringify(item)))
  return joinPage(frame, { next, total, limit, urls: { ...URLS, next: next?.url ?? null } }, bodies).toString()
}

/** What leads to the next page, freed of its URL. */
function cursorOf({ next }: ReturnType<typeof learnList>): string | null {
  if (next?.isUrl !== true) return next?.text ?? null
  return new URL(next.text, 'http://h/').searchParams.get('after')
}

const things = (count: number): { id: string }[] => Array.from({ length: count }, (_, at) => ({ id: `t-${at}` }))

describe.each(Object.entries(ENVELOPES))('an envelope with %s', (_, envelope) => {
  test('is given back as upstream gives it, first page and last', () => {
    const first = envelope(things(2), 'upstreams', 5, 2)
    const last = envelope(things(1), null, 5, 2)
    const learned = learn(first, 2)
    const frame = { ...learned, ending: endingOf(last, learned.cursor) }
    expect(JSON.parse(join(frame, things(2), 'upstreams', 5, 2))).toEqual(first)
    expect(JSON.parse(join(frame, things(1), null, 5, 2))).toEqual(last)
  })

  test('serves a page from which the same items, cursor and total are read again', () => {
    const sample = learn(envelope(things(3), 'upstreams', 900, 3), 3)
    fc.assert(
      fc.property(
        fc.array(fc.record({ id: fc.string(), cursor: fc.jsonValue() }), { maxLength: 8 }),
        fc.option(fc.base64String({ minLength: 1 }).filter((text) => !text.includes('+'))),
        fc.nat(10_000),
        fc.integer({ min: 1, max: 1000 }),
        (items, cursor, total, limit) => {
          const all = Math.max(total, items.length)
          const page: unknown = JSON.parse(join(sample, items, cursor, all, limit))
          const shape = learnList(page)
          expect(shape.items).toEqual(JSON.parse(JSON.stringify(items)))
          expect(cursorOf(shape)).toBe(cursor)
          if (sample.total !== null && shape.totalPath !== null) expect(shape.totalPath).toEqual(sample.total)
        },
      ),
    )
  })

  test('learned from a single page is completed by a page that is not the last', () => {
    const single = envelope(things(3), null, 3, 1000)
    const frame = withNextOf(learn(single, 1000), learn(envelope(things(1), 'upstreams', 3, 1), 1))
    expect(JSON.parse(join(frame, things(3), null, 3, 1000))).toEqual(single)
    expect(cursorOf(learnList(JSON.parse(join(frame, things(1), 'mine', 3, 1))))).toBe('mine')
  })
})

test('an upstream list that is a bare array is served as a bare array', () => {
  const frame = learn(things(4), 1000)
  expect(frame).toMatchObject({ items: [], cursor: null, learned: false })
  expect(JSON.parse(join(frame, things(2), 'x', 9, 2))).toEqual(things(2))
  expect(join(frame, [], null, 0, 2)).toBe('[]')
})

test('the bytes of items stay unchanged, even where they look like a placeholder of the envelope', () => {
  const page = { note: '\u0000items\u0000?', data: [], cursor: { after: 'x' } }
  const bodies = ['{"n":90071992547409931}', '{ "a" : 1.0 }'].map((text) => Buffer.from(text))
  const text = joinPage(learn(page, 5), { next: null, total: 2, limit: 5, urls: URLS }, bodies).toString()
  expect(text).toBe('{"note":"\\u0000items\\u0000?","data":[{"n":90071992547409931},{ "a" : 1.0 }],"cursor":{}}')
})

test('a cursor that begins with a slash is not taken for a URL', () => {
  const frame = learn({ items: things(1), next: '/9j/4AAQ==' }, 1)
  expect(JSON.parse(join(frame, things(1), 'mine', 3, 1))).toMatchObject({ next: 'mine' })
})

test('an upstream page whose items are null is served as an empty list', () => {
  const frame = learn({ data: null, cursor: { after: null } }, 1000)
  expect(join(frame, [], null, 0, 100)).toBe('{"data":[],"cursor":{"after":null}}')
})
