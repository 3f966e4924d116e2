import { describe, expect, test } from 'vitest'
import { withLocalLinks } from '../../../../src/base/json/forms/page-links.ts'

const BASE = 'http://mirror.example:8080'
const URLS = {
  base: BASE,
  self: `${BASE}/v1/tags?limit=2&after=b`,
  first: `${BASE}/v1/tags?limit=2`,
  next: `${BASE}/v1/tags?limit=2&after=c`,
}
const THERE = 'https://api.service.example/v1/tags/?cursor=xyz'

describe('the links of a page', () => {
  test.each<[string, object, object]>([
    [
      'JSON:API',
      { links: { self: THERE, first: THERE, last: THERE, prev: THERE, next: THERE } },
      { links: { self: URLS.self, first: URLS.first, last: null, prev: null, next: URLS.next } },
    ],
    [
      'HAL',
      { _links: { self: { href: THERE }, last: { href: THERE, title: 'x' } } },
      { _links: { self: { href: URLS.self }, last: null } },
    ],
    [
      'relations',
      {
        links: [
          { rel: 'self', href: THERE },
          { rel: 'prev', href: THERE },
        ],
      },
      { links: [{ rel: 'self', href: URLS.self }] },
    ],
    [
      'paths',
      { self: '/v1/tags/?cursor=xyz', next: '?cursor=x' },
      { self: '/v1/tags?limit=2&after=b', next: '?limit=2&after=c' },
    ],
    [
      'another name',
      { meta: { related: 'https://api.service.example/api/v1/images/?x=1' } },
      { meta: { related: `${BASE}/v1/images/?x=1` } },
    ],
    ['another site', { documentation: 'https://docs.example/guide' }, { documentation: 'https://docs.example/guide' }],
    [
      'texts that are no links',
      { self: 'me', next: 'abc', errors: [null], total: 7 },
      { self: 'me', next: 'abc', errors: [null], total: 7 },
    ],
  ])('lead to the mirror in the form of %s', (_, page, local) => {
    expect(withLocalLinks({ data: [], ...page }, ['data'], URLS)).toEqual({ data: [], ...local })
  })

  test('have no next one on the last page', () => {
    const page = { next: THERE, links: { next: { href: THERE } } }
    const local = { next: null, links: { next: null } }
    expect(withLocalLinks(page, ['data'], { ...URLS, next: null })).toEqual(local)
  })

  test('are upstream’s own within the items', () => {
    const page = { data: [{ self: THERE }], self: THERE }
    expect(withLocalLinks(page, ['data'], URLS)).toEqual({
      data: [{ self: THERE }],
      self: URLS.self,
    })
  })
})
