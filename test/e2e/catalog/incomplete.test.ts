import { describe, expect } from 'vitest'
import { longTest, test } from '../../support/tables.ts'
import { type PlainBench, type Saying, plainBench, tickets } from '../../support/catalog/plain-service.ts'

const PATH = '/v1/patches'
const REPOSITORY = { id: 'i', name: 'python', repository: 'python' }

/** Each list has one page of two, and no way to the other. */
const CUT = {
  [PATH]: () => ({
    body: { current_page: 1, last_page: 18, per_page: 25, total: 437, data: tickets(25) },
  }),
  '/v1/images/': () => ({ body: { data: [REPOSITORY], has_more: true } }),
  '/v1/tags/': () => ({ body: { data: [{ id: 't', name: '1' }], has_more: true } }),
  '/v1/packages/': () => ({ body: { data: [{ id: 'p', name: 'a', ecosystem: 'npm' }], total: 2 } }),
}

const REASON = /not known to be complete \(.+\); every sync tries to read the rest$/

interface Told {
  status: number
  incomplete: string | null
  body: { error?: string; message?: string }
}

async function told(made: PlainBench, path: string): Promise<Told> {
  const answer = await made.ask(path)
  const body = (await answer.json()) as Told['body']
  return { status: answer.status, incomplete: answer.headers.get('x-mirror-incomplete'), body }
}

test('a list is as complete as the mirror says that is upstream, also when its pages do not change', async () => {
  const says = { lack: 'upstream counts 437 items, but its pages contain 25' as string | null }
  const saying: Saying = () => ({
    body: { data: tickets(3), total: 3, has_more: false },
    headers: { etag: '"same"', ...(says.lack !== null && { 'x-mirror-incomplete': says.lack }) },
  })
  const made = await plainBench({ [PATH]: saying })
  for (const [lack, served] of [
    [
      says.lack,
      'upstream is a mirror, and its own list may lack items: upstream counts 437 items, but its pages contain 25',
    ],
    [null, null],
    ['page 2 is missing', 'upstream is a mirror, and its own list may lack items: page 2 is missing'],
    ['unproved', 'unproved'],
  ] as const) {
    says.lack = lack
    await made.run('catalog')
    expect([lack, (await told(made, PATH)).incomplete]).toEqual([lack, served])
  }
})

describe('a list that is cut', () => {
  test('is served with the reason and with upstream’s own numbers', async () => {
    const made = await plainBench(CUT)
    expect(await made.run('catalog')).toMatchObject({ state: 'partial' })
    const { status, incomplete, body } = await told(made, PATH)
    expect([status, incomplete]).toEqual([200, 'upstream counts 437 items, but its pages contain 25'])
    expect(body).toEqual(CUT[PATH]().body)
    const page = await told(made, `${PATH}?limit=3`)
    expect(page.body).toMatchObject({ last_page: 18, per_page: 25, total: 437 })
  })

  const ASKED: Record<string, string> = {
    'a filter': `${PATH}?cve_id=CVE-2026-1`,
    'a filter of several': `${PATH}?severities=high`,
    'an order': `${PATH}?order=n:asc`,
    'a look-up of a release': '/packages/ecosystems/npm/packages/b/versions',
    'a look-up of a tag': '/v1/tags/u',
    'a look-up of an image': '/v1/images/u',
    'a look-up of a package': '/v1/packages/q/',
    'the tags of an image': '/v1/images/debian/tags',
    'an artifact of a tag': '/v1/tags/u/sbom',
    'what changed for a tag': '/-/changes?since=1h&tag=nginx:1',
  }

  longTest('answers filters, orders and look-ups that find nothing with 503 and the reason', async () => {
    const made = await plainBench(CUT)
    await made.run('catalog')
    for (const [what, path] of Object.entries(ASKED)) {
      const { status, body } = await told(made, path)
      expect([what, status, body.error]).toEqual([what, 503, 'not_ready'])
      expect([what, body.message]).toEqual([what, expect.stringMatching(REASON)])
    }
  })

  longTest('answers what it has, and is named by /-/ready and the status', async () => {
    const made = await plainBench({ ...CUT, '/v1/tags/t': () => ({ body: { id: 't' } }) })
    await made.run('catalog')
    expect(await told(made, '/v1/tags/t')).toMatchObject({ status: 200, body: { id: 't' } })
    const ready = (await (await made.ask('/-/ready')).json()) as {
      sources: { name: string; partialLists?: string[] }[]
    }
    const catalog = ready.sources.find(({ name }) => name === 'catalog')
    expect(catalog?.partialLists).toEqual(['/v1/images', '/v1/packages', PATH, '/v1/tags'])
  })

  test('answers filters again when it is complete', async () => {
    const made = await plainBench(CUT)
    await made.run('catalog')
    const data = tickets(25).map((one) => ({ ...one, cve_id: `CVE-2026-${one.n}` }))
    made.say({ [PATH]: () => ({ body: { data, total: 25 } }) })
    await made.run('catalog')
    const { status, incomplete, body } = await told(made, `${PATH}?cve_id=CVE-2026-1`)
    expect([status, incomplete]).toEqual([200, null])
    expect(body).toMatchObject({ total: 1, data: data.slice(0, 1) })
  })
})

describe('a list whose end is not proved', () => {
  test('is answered with the header, filtered too, and so is a look-up that finds nothing', async () => {
    const made = await plainBench({
      [PATH]: () => ({ body: tickets(25).map((one) => ({ ...one, cve_id: 'CVE-2026-1' })) }),
      '/v1/tags/': () => ({ body: Array.from({ length: 10 }, (_, at) => ({ id: `t-${at}` })) }),
    })
    await made.run('catalog')
    for (const path of [PATH, `${PATH}?cve_id=none`, '/v1/tags/'])
      expect(await told(made, path)).toMatchObject({ status: 200, incomplete: 'unproved' })
    const missing = await told(made, '/v1/tags/u')
    expect(missing).toMatchObject({ status: 404, incomplete: 'unproved' })
    expect(missing.body.message).toContain('the end of that is not proved (it has 10 items')
  })

  test('is answered without the header when its end is proved', async () => {
    const made = await plainBench({ [PATH]: () => ({ body: tickets(23) }) })
    await made.run('catalog')
    expect(await told(made, PATH)).toMatchObject({ status: 200, incomplete: null })
  })
})
