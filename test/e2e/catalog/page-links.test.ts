import { expect } from 'vitest'
import { shaped } from '../../sandbox/service/shapes/shape.ts'
import { bothTest, telling } from '../../support/tables.ts'
import { catalogBench } from '../../support/catalog/mirror.ts'

const SMALL = { images: 1, tags: 3, packages: 1, tickets: 1, avrs: 0, users: 0, subscriptions: 0 }
const ENV = { PATCHMIRROR_CATALOG_SCOPE: 'all' }

bothTest.each(telling(['text', 'hal'] as const, 'hal'))(
  'no link of a page leads to the service, and all that stay can be followed, in the form %s',
  async (form) => {
    const lists = { links: { at: ['links'], form } }
    const shape = shaped('nested', { lists: { ...lists, items: ['data'] } })
    const made = await catalogBench({ ...SMALL, shape }, { env: ENV })
    await made.run('catalog')
    let path: string | null = '/v1/tags/?limit=1'
    let pages = 0
    while (path !== null) {
      const page = (await (await made.ask(path)).json()) as Page
      const { data: _items, ...envelope } = page
      expect(JSON.stringify(envelope)).not.toContain(made.sandbox.url)
      const self = urlOf(page.links['self'])
      expect(new URL(self).pathname).toBe('/v1/tags')
      expect((await made.ask(pathOf(self))).status).toBe(200)
      expect((await made.ask(pathOf(urlOf(page.links['first'])))).status).toBe(200)
      expect(page.links['last']).toBeNull()
      const next = page.result.links['next'] ?? null
      if (next !== null) expect(next.startsWith('/v1/tags?')).toBe(true) // as the service writes it
      path = next
      pages++
    }
    expect(pages).toBe(3)
  },
)

interface Page {
  data: object[]
  links: Record<string, unknown>
  result: { links: Record<string, string | null> }
}

function urlOf(link: unknown): string {
  return typeof link === 'string' ? link : (link as { href: string }).href
}

function pathOf(url: string): string {
  const { pathname, search } = new URL(url)
  return pathname + search
}
