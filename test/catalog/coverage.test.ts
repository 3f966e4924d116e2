import { describe, expect, test } from 'vitest'
import { type CatalogBench, catalogBench } from './benches.ts'
import { compare, walkPages } from './compare.ts'
import { READING, type Row, WRITING, knownOf } from './contract.ts'

const SERVICE = {
  images: 5,
  tags: 18,
  packages: 14,
  tickets: 120,
  avrs: 3,
  users: 5,
  subscriptions: 3,
}
const ENV = {
  PATCHMIRROR_CATALOG_MIRROR_API_KEYS: 'true',
  PATCHMIRROR_IDENTITY_MIRROR_USERS: 'true',
  PATCHMIRROR_CATALOG_SCOPE: 'all',
}

async function syncAll(made: CatalogBench): Promise<void> {
  for (const source of ['osv', 'feeds', 'catalog', 'identity'] as const)
    expect(await made.run(source)).toMatchObject({ state: 'complete', code: null })
}

async function expectRow(made: CatalogBench, row: Row): Promise<void> {
  const paths = row.requests(knownOf(made))
  expect(paths).not.toEqual([])
  for (const path of paths) {
    const { mirror, upstream } = await compare(made, path)
    expect({ path, ...mirror }).toEqual({ path, ...upstream })
  }
}

/** One sandbox for all rows of a payload shape, before and after changes upstream. */
describe.each(['wire', 'other'] as const)('payloads of the %s shape', (shape) => {
  test('every reading row of the contract answers as upstream does, before and after changes', async () => {
    const made = await catalogBench({ ...SERVICE, shape }, { env: ENV })
    await syncAll(made)
    for (const row of READING) await expectRow(made, row)
    const { service, feed } = made.sandbox
    const [tag = '', other = ''] = service.ids('tags')
    const [pkg = ''] = service.ids('packages')
    const [ticket = ''] = service.ids('tickets')
    service.addTag()
    service.addTicket()
    service.addPackage()
    service.change('tags', tag)
    service.change('tickets', ticket, { ticket_status: 'deferred' })
    service.change('packages', pkg)
    service.remove('tags', other)
    feed.change(2)
    await syncAll(made)
    for (const row of READING) await expectRow(made, row)
  })

  test('lists hold the same items whatever the page size', async () => {
    const made = await catalogBench({ ...SERVICE, shape }, { env: ENV })
    await syncAll(made)
    for (const path of ['/v1/patches', '/v1/tags/', '/v1/packages/', '/v1/images/', '/v1/users']) {
      const upstream = await walkPages((at) => made.askUpstream(at), `${path}?limit=1000`)
      for (const limit of [1, 7, 1000]) {
        const mirror = await walkPages((at) => made.ask(at), `${path}?limit=${limit}`)
        expect({ path, limit, items: mirror }).toEqual({ path, limit, items: upstream })
      }
    }
  })
})

test.each(WRITING)(
  '$method $path is refused with where to do it instead',
  async ({ method, requests }) => {
    const made = await catalogBench({ images: 1, tags: 1 })
    for (const path of requests(knownOf(made))) {
      const answer = await made.ask(path, { method, body: '{}' })
      expect(answer.status).toBe(405)
      expect(answer.headers.get('allow')).toBe('GET, HEAD')
      const body = (await answer.json()) as Record<string, string>
      expect(body['message'] ?? body['error_description']).toMatch(/patchmirror|service itself/)
    }
  },
)

test('the table of the contract in docs/coverage.md is this one', async () => {
  const file = 'test/catalog/coverage.test.ts'
  const line = ({ table, method, path }: Row, answer: string): string =>
    `| ${table} | \`${method} ${path}\` | ${answer} | \`${file}\` |`
  const text = [
    '# What of the service the mirror answers',
    '',
    'One row for each row of the service’s endpoint tables (service API, section 4). The named test asks the service and',
    'the mirror for the same paths, in both payload shapes, before and after changes upstream: same status, same bytes for',
    'items, same values for lists, same documents behind links. `all.zip` is compared member for member by the tests of',
    'the feeds. This file is written by that test (`npx vitest run test/catalog/coverage.test.ts --update`).',
    '',
    '| Table | Row | The mirror | Proved by |',
    '| --- | --- | --- | --- |',
    ...READING.map((row) => line(row, 'the same answer')),
    '| Public feeds | `GET /external/osv/all.zip` | the same members | `test/sync/archive.test.ts` |',
    ...WRITING.map((row) => line(row, '405, with the command or place to use instead')),
    '',
  ].join('\n')
  await expect(text).toMatchFileSnapshot('../../docs/coverage.md')
})
