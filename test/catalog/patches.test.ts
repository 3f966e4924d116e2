import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type CatalogBench, catalogBench } from './benches.ts'
import { walkPages } from './compare.ts'

type Ticket = Record<string, unknown>

const CHOICES = {
  ecosystem: ['alpine', 'debian', 'ubuntu', 'pypi', 'npm', 'maven'],
  severities: ['critical', 'high', 'medium', 'low'],
  ticket_statuses: ['open', 'in_progress', 'done', 'deferred'],
} as const

async function mirrored(tickets: number): Promise<CatalogBench> {
  const made = await catalogBench({ images: 1, tags: 1, packages: 1, tickets })
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  return made
}

function ticketsOf({ sandbox: { service } }: CatalogBench): Ticket[] {
  return service.ids('tickets').map((id) => service.read('tickets', id))
}

async function page(made: CatalogBench, query: URLSearchParams): Promise<[Ticket[], number]> {
  const answer = await made.ask(`/v1/patches?${query.toString()}`)
  expect(answer.status).toBe(200)
  const { tickets, cursor } = (await answer.json()) as {
    tickets: Ticket[]
    cursor: { total_count: number }
  }
  return [tickets, cursor.total_count]
}

const ids = (tickets: readonly unknown[]): unknown[] =>
  tickets.map((one) => (one as Ticket)['ticket_id'])

/** The filters as the contract describes them (service API, section 4), in plain JavaScript. */
function chosen(tickets: readonly Ticket[], query: URLSearchParams): Ticket[] {
  const wanted = (name: string, field: string) => (ticket: Ticket) => {
    const values = (query.get(name) ?? '').split(',').filter((value) => value !== '')
    return values.length === 0 || values.includes(String(ticket[field]))
  }
  return tickets
    .filter(wanted('cve_id', 'cve_id'))
    .filter(wanted('package_src_name', 'package_src_name'))
    .filter(wanted('ecosystem', 'ecosystem'))
    .filter(wanted('severities', 'severity'))
    .filter(wanted('ticket_statuses', 'ticket_status'))
}

/** Entries without the field come first in ascending order; of equal ones upstream's order stays. */
function ordered(tickets: readonly Ticket[], field: string, descending: boolean): Ticket[] {
  const sign = descending ? -1 : 1
  return [...tickets].sort((one, other) => {
    const [a, b] = [one[field] ?? '', other[field] ?? ''] as (string | number | boolean)[]
    return a === b ? 0 : (a ?? '') < (b ?? '') ? -sign : sign
  })
}

const REFUSED: readonly (readonly [string, string])[] = [
  ['order=no_such_field:asc', 'no item of this list has a field'],
  ['order=created_at', 'order must be'],
  ['order=created_at:up', 'order must be'],
  ['order=:asc', 'order must be'],
  ["order=x';drop table:asc", 'order must be'],
  ['order=created_at:asc&order=severity:asc', 'given 2 times'],
  ['severities=urgent', 'one of: critical'],
  ['severities=low,urgent', 'unknown \\"urgent\\"'],
  ['ecosystem=debian,alpine', 'unknown'],
  ['limit=0', 'from 1 to 1000'],
  ['limit=1001', 'from 1 to 1000'],
  ['limit=-1', 'from 1 to 1000'],
  ['limit=1.5', 'from 1 to 1000'],
  ['limit=1e2', 'from 1 to 1000'],
  ['limit=ten', 'from 1 to 1000'],
  ['limit=99999999999999999999', 'from 1 to 1000'],
  ['limit=5&limit=6', 'given 2 times'],
  ['after=nonsense', 'not a cursor'],
  ['after=e30', 'not a cursor'],
  ['after=W10', 'not a cursor'],
  ['after=%00', 'not a cursor'],
  [`after=${'A'.repeat(3000)}`, 'not a cursor'],
]

describe('/v1/patches', () => {
  test('its filters in any combination, order and page size are those of a plain filter', async () => {
    const made = await mirrored(160)
    const tickets = ticketsOf(made)
    const texts = (field: string): fc.Arbitrary<string | null> =>
      fc.option(fc.constantFrom(...tickets.map((ticket) => String(ticket[field])), 'no-such'), {
        freq: 2,
      })
    const some = (values: readonly string[]): fc.Arbitrary<string | null> =>
      fc.option(fc.subarray([...values], { minLength: 1 }).map((list) => list.join(',')))
    const queries = fc.record({
      cve_id: fc.option(texts('cve_id'), { freq: 1 }),
      package_src_name: texts('package_src_name'),
      ecosystem: fc.option(fc.constantFrom(...CHOICES.ecosystem)),
      severities: some(CHOICES.severities),
      ticket_statuses: some(CHOICES.ticket_statuses),
      order: fc.option(
        fc.constantFrom('created_at:desc', 'updated_at:asc', 'severity:desc', 'version:asc'),
      ),
      limit: fc.constantFrom('1000', '17', '3'),
    })
    await fc.assert(
      fc.asyncProperty(queries, async (given) => {
        const named = Object.entries(given).filter(
          (pair): pair is [string, string] => pair[1] !== null,
        )
        const query = new URLSearchParams(named)
        const found = chosen(tickets, query)
        const [field, way] = (given.order ?? '').split(':')
        const expected = given.order === null ? found : ordered(found, field ?? '', way === 'desc')
        const [first, total] = await page(made, query)
        expect(total).toBe(found.length)
        expect(ids(first)).toEqual(ids(expected.slice(0, Number(given.limit))))
        if (given.limit === '17')
          expect(
            ids(await walkPages((at) => made.ask(at), `/v1/patches?${query.toString()}`)),
          ).toEqual(ids(expected))
      }),
      { numRuns: 60 },
    )
  })

  test('is ordered by every field both ways, where it is missing and where it is a number too', async () => {
    const made = await catalogBench({ images: 1, tags: 1, packages: 1, tickets: 60 })
    const { service } = made.sandbox
    service.ids('tickets').forEach((id, at) => {
      if (at % 3 > 0) service.change('tickets', id, { score: (at * 7) % 20, rating: at / 3 })
      if (at % 10 === 1) service.change('tickets', id, { score: -1.5, version: null })
    })
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    const tickets = ticketsOf(made)
    const fields = new Set(tickets.flatMap((ticket) => Object.keys(ticket)))
    fields.delete('upstream_reference') // an integer that JavaScript cannot hold
    expect([...fields]).toEqual(expect.arrayContaining(['score', 'note', 'patch_found']))
    for (const field of fields) {
      for (const way of ['asc', 'desc']) {
        const path = `/v1/patches?order=${field}:${way}&limit=7`
        const numbers = field === 'score' || field === 'rating'
        const plain = numbers
          ? tickets.map((one) => ({ ...one, [field]: one[field] ?? -Infinity }))
          : tickets
        const walked = await walkPages((at) => made.ask(at), path)
        expect([path, ids(walked)]).toEqual([path, ids(ordered(plain, field, way === 'desc'))])
      }
    }
    const large = await walkPages(
      (at) => made.ask(at),
      '/v1/patches?order=upstream_reference:desc&limit=4',
    )
    expect(new Set(ids(large)).size).toBe(tickets.length)
  })

  test('refuses what the contract does not know, and says why', async () => {
    const made = await mirrored(5)
    for (const [query, why] of REFUSED) {
      const answer = await made.ask(`/v1/patches?${query}`)
      expect([query, answer.status, await answer.text()]).toEqual([
        query,
        400,
        expect.stringContaining(why),
      ])
    }
  })

  test('takes an empty parameter for none', async () => {
    const made = await mirrored(5)
    const query = 'limit=&after=&order=&cve_id=&ecosystem=&severities=,&ticket_statuses=&unknown=1'
    expect(await (await made.ask(`/v1/patches?${query}`)).json()).toEqual(
      await (await made.ask('/v1/patches')).json(),
    )
  })
})
