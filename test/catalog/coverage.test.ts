import { expect, test } from 'vitest'
import { type Shape, SHAPE_NAMES, shaped } from '../../src/sandbox/service/shapes/shape.ts'
import { formOf } from '../support/walk.ts'
import { type CatalogBench, catalogBench } from './benches.ts'
import { type Difference, itemDifference, listDifference } from './differences.ts'
import { READING, type Row, WRITING, allKnown } from './contract.ts'

const SERVICE = {
  images: 4,
  tags: 8,
  packages: 7,
  tickets: 23,
  avrs: 3,
  users: 5,
  subscriptions: 4,
}
const ENV = {
  PATCHMIRROR_CATALOG_MIRROR_API_KEYS: 'true',
  PATCHMIRROR_IDENTITY_MIRROR_USERS: 'true',
  PATCHMIRROR_CATALOG_SCOPE: 'all',
}
/** Small, so that every list has several pages upstream. */
const PAGES = { largestPage: 3 }

/** Shapes that the mirror reads wholly. */
const READY = SHAPE_NAMES.filter((name) => name === 'wire' || name === 'other')

/** An artifact that was in the making at the first run is there at the next. */
async function syncAll(made: CatalogBench, { artifacts }: Shape): Promise<void> {
  for (const source of ['osv', 'feeds', 'catalog', 'identity'] as const) {
    let report = await made.run(source)
    for (let i = 0; i < artifacts.pending && report.state === 'partial'; i++)
      report = await made.run(source)
    expect(report).toMatchObject({ source, state: 'complete', code: null })
  }
}

async function differencesOf(made: CatalogBench, shape: Shape): Promise<Difference[]> {
  const known = allKnown(made)
  const found: Difference[] = []
  for (const { isList, path: row, requests } of READING) {
    const paths = requests(known)
    expect({ row, paths }).not.toEqual({ row, paths: [] })
    for (const path of paths) {
      const difference = isList
        ? await listDifference(made, path, formOf(shape, path))
        : await itemDifference(made, path)
      if (difference !== null) found.push(difference)
    }
  }
  return found
}

/** The service goes on: things come, change and go. */
function live({ service, feed }: CatalogBench['sandbox']): void {
  const [tag = ''] = service.ids('tags')
  const gone = service.ids('tags').at(-1) ?? '' // no AVR hangs on it: one that nothing names is out of the mirror's sight
  const [pkg = ''] = service.ids('packages')
  const [ticket = ''] = service.ids('tickets')
  service.addTag()
  service.addTicket()
  service.addPackage()
  service.change('tags', tag)
  service.change('tickets', ticket, { ticket_status: 'deferred' })
  service.change('packages', pkg)
  service.remove('tags', gone)
  feed.change(2)
}

test.each(READY)(
  'every reading row of the contract answers as a service of the shape %s does, before and after changes',
  async (name) => {
    const shape = shaped(name, { lists: PAGES, patches: PAGES })
    const made = await catalogBench({ ...SERVICE, shape }, { env: ENV })
    await syncAll(made, shape)
    expect(await differencesOf(made, shape)).toEqual([])
    live(made.sandbox)
    await syncAll(made, shape)
    expect(await differencesOf(made, shape)).toEqual([])
  },
)

test.each(WRITING)(
  '$method $path is refused with where to do it instead',
  async ({ method, requests }) => {
    const made = await catalogBench({ images: 1, tags: 1 })
    for (const path of requests(allKnown(made))) {
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
