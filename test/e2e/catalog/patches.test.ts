import fc from 'fast-check'
import { describe, expect } from 'vitest'
import { type CatalogBench, catalogBench, filledCatalogBench } from '../../support/catalog/mirror.ts'
import { walkPages } from '../../support/catalog/compare.ts'
import { bothTest, LONG, longTest, telling, test } from '../../support/tables.ts'

type Ticket = Record<string, unknown>

const CHOICES = {
  ecosystem: ['alpine', 'debian', 'ubuntu', 'pypi', 'npm', 'maven'],
  severities: ['critical', 'high', 'medium', 'low'],
  ticket_statuses: ['open', 'in_progress', 'done', 'deferred'],
} as const

const mirrored = (tickets: number): Promise<CatalogBench> =>
  filledCatalogBench({ images: 1, tags: 1, packages: 1, tickets })

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

const ids = (tickets: readonly unknown[]): unknown[] => tickets.map((one) => (one as Ticket)['ticket_id'])

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
    if (a === b) return 0
    return (a ?? '') < (b ?? '') ? -sign : sign
  })
}

const REFUSED: readonly (readonly [string, string])[] = [
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
  ['severity=low', 'unknown query parameter'],
  ['search=zlib&ecosystem=debian', 'unknown query parameter'],
]

describe('the list /v1/patches', () => {
  longTest('has the same items as a plain filter for any filters, order and page size', async () => {
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
      order: fc.option(fc.constantFrom('created_at:desc', 'updated_at:asc', 'severity:desc', 'version:asc')),
      limit: fc.constantFrom('1000', '17', '3'),
    })
    await fc.assert(
      fc.asyncProperty(queries, async (given) => {
        const named = Object.entries(given).filter((pair): pair is [string, string] => pair[1] !== null)
        const query = new URLSearchParams(named)
        const found = chosen(tickets, query)
        const [field, way] = (given.order ?? '').split(':')
        const expected = given.order === null ? found : ordered(found, field ?? '', way === 'desc')
        const [first, total] = await page(made, query)
        expect(total).toBe(found.length)
        expect(ids(first)).toEqual(ids(expected.slice(0, Number(given.limit))))
        if (given.limit === '17')
          expect(ids(await walkPages((at) => made.ask(at), `/v1/patches?${query.toString()}`))).toEqual(ids(expected))
      }),
      { numRuns: LONG ? 60 : 8 },
    )
  })

  longTest('is ordered by fields in both directions, also by numbers and missing values', async () => {
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
        const plain = numbers ? tickets.map((one) => ({ ...one, [field]: one[field] ?? -Infinity })) : tickets
        const walked = await walkPages((at) => made.ask(at), path)
        expect([path, ids(walked)]).toEqual([path, ids(ordered(plain, field, way === 'desc'))])
      }
    }
    const large = await walkPages((at) => made.ask(at), '/v1/patches?order=upstream_reference:desc&limit=4')
    expect(new Set(ids(large)).size).toBe(tickets.length)
  })

  longTest('refuses parameters outside the contract with a reason', async () => {
    const made = await mirrored(5)
    for (const [query, why] of REFUSED) {
      const answer = await made.ask(`/v1/patches?${query}`)
      expect([query, answer.status, await answer.text()]).toEqual([query, 400, expect.stringContaining(why)])
    }
  })

  test('treats an empty parameter as a missing one', async () => {
    const made = await mirrored(5)
    const query = 'limit=&after=&order=&cve_id=&ecosystem=&severities=,&ticket_statuses='
    expect(await (await made.ask(`/v1/patches?${query}`)).json()).toEqual(await (await made.ask('/v1/patches')).json())
  })
})

/** A mirror of a service whose tickets have the fields that `write` gives them. */
async function rewritten(
  write: (ticket: Ticket, at: number) => Ticket,
  env: Record<string, string> = {},
): Promise<CatalogBench & { tickets: Ticket[]; facts: Record<string, unknown> }> {
  const made = await catalogBench({ images: 1, tags: 1, packages: 1, tickets: 60 }, { env })
  const tickets = ticketsOf(made)
  const items = tickets.map((ticket, at) => write(ticket, at))
  const body = JSON.stringify({ data: items, cursor: { after: '', total_count: items.length } })
  made.sandbox.faults.set('/v1/patches', { kind: 'body', body })
  const { facts } = await made.run('catalog')
  return { ...made, tickets, facts }
}

const camel = (name: string): string => name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())
const renamed = (ticket: Ticket, rename: (name: string) => string): Ticket =>
  Object.fromEntries(Object.entries(ticket).map(([name, value]) => [rename(name), value]))

describe('a filter of /v1/patches', () => {
  const spellings: readonly (readonly [string, (name: string) => string])[] = [
    ['camelCase', camel],
    ['capitals', (name) => name.toUpperCase()],
    ['a prefix', (name) => (name === 'ticket_id' ? name : `ticket_${name}`)],
    ['a prefix in camelCase', (name) => camel(name === 'ticket_id' ? name : `patch_${name}`)],
  ]
  bothTest.each(telling(spellings, 'a prefix'))(
    'finds its field spelled in %s, and so does an order',
    async (_spelling, rename) => {
      const made = await rewritten((ticket) => renamed(ticket, rename))
      const status = rename('ticket_status')
      for (const [param, field] of [
        ['cve_id', 'cve_id'],
        ['severities', 'severity'],
        ['ticket_statuses', 'ticket_status'],
      ] as const) {
        const value = String(made.tickets[3]?.[field])
        const answer = await made.ask(`/v1/patches?${param}=${value}`)
        const { data, cursor } = (await answer.json()) as {
          data: Ticket[]
          cursor: { total_count: number }
        }
        const expected = made.tickets.filter((ticket) => ticket[field] === value)
        expect([param, data]).toEqual([param, expected.map((one) => renamed(one, rename))])
        expect(cursor.total_count).toBe(expected.length)
      }
      expect(made.facts).not.toHaveProperty('filtersUnusable')
      for (const field of ['ticket_status', status, 'os_distro_major'])
        expect([field, (await made.ask(`/v1/patches?order=${field}:desc`)).status]).toEqual([field, 200])
    },
  )

  longTest('whose field no item has is a 501 that names the parameter, and a fact of the run', async () => {
    const made = await rewritten(({ severity: _one, cve_id, ...rest }) => {
      return { ...rest, first_cve_id: cve_id, other_cve_id: cve_id }
    })
    for (const [query, param] of [
      ['severities=high', 'severities'],
      ['cve_id=CVE-2024-1', 'cve_id'], // either of two fields could be meant
      ['order=severity:asc', 'order'],
      ['order=no_such_field:asc', 'order'],
      ["order=x';drop table:asc", 'order'],
    ]) {
      const answer = await made.ask(`/v1/patches?${query}`)
      const body = await answer.json()
      if (query?.includes('drop') === true) expect(answer.status).toBe(400)
      else {
        expect([query, answer.status]).toEqual([query, 501])
        expect(body).toMatchObject({
          error: 'not_supported',
          message: expect.stringContaining(`${param}: no item`) as string,
        })
      }
    }
    expect(made.facts['filtersUnusable']).toEqual(['/v1/patches?cve_id', '/v1/patches?severities'])
    expect((await made.ask('/v1/patches?ecosystem=debian')).status).toBe(200)
  })

  test('whose values no item has in the vocabulary is a 501; other spellings of it are found', async () => {
    const made = await rewritten((ticket) => ({
      ...ticket,
      severity: 'moderate',
      ticket_status: String(ticket['ticket_status']).toUpperCase().replace('_', '-'),
    }))
    expect((await made.ask('/v1/patches?severities=medium')).status).toBe(501)
    const expected = made.tickets.filter((one) => one['ticket_status'] === 'in_progress')
    const answer = await made.ask('/v1/patches?ticket_statuses=in_progress')
    expect(ids(((await answer.json()) as { data: Ticket[] }).data)).toEqual(ids(expected))
  })

  test('is an empty list where the field is there and no item has the value', async () => {
    const made = await rewritten((ticket) => ticket)
    const answer = await made.ask('/v1/patches?cve_id=CVE-1999-0001')
    expect([answer.status, await answer.json()]).toMatchObject([200, { data: [] }])
  })

  longTest('uses the field of the contract’s name when a later page has it', async () => {
    const made = await rewritten((ticket, at) =>
      at < 30 ? renamed(ticket, (name) => (name === 'severity' ? 'cvss_severity' : name)) : ticket,
    )
    const { data } = (await (await made.ask('/v1/patches?severities=high')).json()) as {
      data: Ticket[]
    }
    const meant = made.tickets.filter((one, at) => at >= 30 && one['severity'] === 'high')
    expect(ids(data)).toEqual(ids(meant))
  })
})

longTest('an unknown parameter of a list is ignored only if the settings allow it, and then named', async () => {
  const made = await catalogBench(
    { images: 2, tags: 2, packages: 2, tickets: 3 },
    { env: { PATCHMIRROR_SERVER_STRICT_PARAMETERS: 'false' } },
  )
  await made.run('catalog')
  const answer = await made.ask('/v1/images/?repository=python&limit=1&%C3%A4=1')
  expect(answer.status).toBe(200)
  expect(answer.headers.get('x-mirror-ignored-parameters')).toBe('repository, %C3%A4')
  expect((await made.ask('/v1/images/?limit=1')).headers.has('x-mirror-ignored-parameters')).toBe(false)
  const status = await made.ask('/-/status?source=osv')
  expect([status.status, status.headers.get('x-mirror-ignored-parameters')]).toEqual([200, 'source'])
  const strict = await catalogBench({ images: 2, tags: 2, packages: 2, tickets: 3 })
  await strict.run('catalog')
  for (const path of ['/v1/images/', '/v1/tags/', '/v1/packages/', '/v1/subscriptions/'])
    expect([path, (await strict.ask(`${path}?repository=python`)).status]).toEqual([path, 400])
})
