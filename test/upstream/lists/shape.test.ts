import { describe, expect, test } from 'vitest'
import { MirrorError } from '../../../src/base/errors.ts'
import { learnList } from '../../../src/upstream/lists/shape.ts'

const A = [{ id: 1 }]

function refusal(page: unknown): string {
  try {
    learnList(page)
  } catch (error) {
    if (error instanceof MirrorError && error.code === 'upstream_shape') return error.message
    throw error
  }
  throw new Error('expected a refusal')
}

/** What leads to the next page, freed of its URL. */
function cursorOf(page: unknown): string | null {
  const { next } = learnList(page)
  if (next?.isUrl !== true) return next?.text ?? null
  return new URL(next.text, 'http://h/').searchParams.get('after')
}

describe('the items', () => {
  test.each([
    [A, []],
    [{ data: A, cursor: { after: 'x' } }, ['data']],
    [{ tickets: A }, ['tickets']],
    [{ results: A, next_cursor: 'x' }, ['results']],
    [{ response: { things: A, next: 'x' } }, ['response', 'things']],
    [{ _embedded: { users: A }, _links: { next: { href: '/users?after=x' } } }, ['_embedded', 'users']],
    [{ warnings: [], data: A }, ['data']],
    [{ errors: [{ code: 1 }], data: [] }, ['data']],
    [{ scopes: ['a'], tickets: A }, ['tickets']],
    [{ items: [], cursor: {} }, ['items']],
    [{ errors: [], page: { items: [] } }, ['page', 'items']],
    [{ response: { body: { tags: A } } }, ['response', 'body', 'tags']],
    [{ data: null, cursor: { after: null } }, ['data']],
  ])('of %j are found', (page, itemsPath) => {
    const shape = learnList(page)
    expect(shape.itemsPath).toEqual(itemsPath)
    expect(Array.isArray(shape.items)).toBe(true)
  })

  test.each([
    [{ cats: A, dogs: A }, 'several arrays, and it is unknown which one contains the items: cats, dogs'],
    [{ data: A, items: A }, 'several arrays'],
    [{ cats: [], dogs: [] }, 'several arrays'],
    [{ message: 'no', code: 5 }, 'contains no array; its keys are: message, code'],
    [{}, 'its keys are: none'],
    ['text', 'is neither an object nor an array'],
    [null, 'is neither an object nor an array'],
    [{ things: null, message: null }, 'contains no array'],
    [{ 7: { id: 7, tags: A } }, 'an object of single items by their ids'],
    [{ 7: { tags: A }, 8: { tags: [] } }, 'an object of single items by their ids'],
    [{ redis: { name: 'redis', tags: A } }, 'an object of single items by their ids'],
  ])('of %j are not guessed', (page, message) => {
    expect(refusal(page)).toContain(message)
  })
})

describe('the next page', () => {
  test.each([
    [{ data: A, cursor: { after: 'x', before: 'y', limit: 100 } }, 'x', ['cursor', 'after']],
    [{ results: A, next_cursor: 'x' }, 'x', ['next_cursor']],
    [{ items: A, pagination: { next: 'x' } }, 'x', ['pagination', 'next']],
    [{ items: A, nextPageToken: 'x' }, 'x', ['nextPageToken']],
    [{ items: A, cursor: 'x' }, 'x', ['cursor']],
    [{ items: A, next: 'https://h/v1/users?limit=5&after=x%2F1' }, 'x/1', ['next']],
    [{ items: A, next: '/v1/users?after=x' }, 'x', ['next']],
    [{ items: A, links: { next: '?after=x', prev: '?before=y' } }, 'x', ['links', 'next']],
    [{ items: A, _links: { next: { href: '/u?after=x' } } }, 'x', ['_links', 'next']],
    [{ items: A, pageInfo: { endCursor: 'x', hasNextPage: true } }, 'x', ['pageInfo', 'endCursor']],
    [{ items: A, next_page: 2 }, '2', ['next_page']],
    [{ items: A, cursor: { after: 'asked', next: 'x' } }, 'x', ['cursor', 'next']],
    [{ items: A, next: '/u?after=x', next_cursor: 'x' }, 'x', ['next']],
    [{ items: A, next: '/9j/4AAQ==' }, '/9j/4AAQ==', ['next']],
    [{ items: A, continuation: 'x' }, 'x', ['continuation']],
    [{ items: A, has_more: true, last_id: 'x' }, 'x', ['last_id']],
    [{ items: A, next_page: 2, next_cursor: 'x' }, 'x', ['next_cursor']],
    [{ items: A, links: [{ rel: 'next', href: '/u?after=x' }] }, 'x', ['links', 0]],
  ])('after %j is asked for with %j', (page, next, cursorPath) => {
    expect(learnList(page)).toMatchObject({ cursorPath, more: true })
    expect(cursorOf(page)).toBe(next)
  })

  test.each([
    [A],
    [{ data: A }],
    [{ data: A, cursor: { limit: 100 } }],
    [{ data: A, cursor: { after: null } }],
    [{ data: A, cursor: { after: '' } }],
    [{ data: A, next: null, after: 'asked' }],
    [{ data: A, next: 'https://h/u?after=' }],
    [{ data: A, pageInfo: { endCursor: 'x', hasNextPage: false } }],
    [{ data: A, next: false }],
  ])('of %j is none', (page) => {
    expect(learnList(page).next).toBeNull()
  })

  test('is not looked for in the items', () => {
    expect(learnList({ data: [{ next: 'x', cursor: { after: 'y' } }] }).next).toBeNull()
  })

  test('named in two ways that disagree is not guessed', () => {
    expect(refusal({ data: A, next: 'x', next_cursor: 'y' })).toContain('next, next_cursor')
  })
})

test('an object whose only member repeats its name in another field is an envelope, and no item', () => {
  expect(learnList({ list: { type: 'list', entries: A } }).itemsPath).toEqual(['list', 'entries'])
})

test('the total of a list is found', () => {
  expect(learnList({ data: A, cursor: { total_count: 7 } }).totalPath).toEqual(['cursor', 'total_count'])
  expect(learnList({ data: A, total: 7 }).totalPath).toEqual(['total'])
  expect(learnList({ data: A, total: 'many' }).totalPath).toBeNull()
})
