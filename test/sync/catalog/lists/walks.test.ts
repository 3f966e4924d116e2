import { describe, expect } from 'vitest'
import type { Fault } from '../../../sandbox/faults/fault.ts'
import type { Bench } from '../../../support/mirror.ts'
import { catalogBench } from '../../../support/catalog/mirror.ts'
import { plainBench } from '../../../support/catalog/plain-service.ts'
import { bothTest, longTest, telling, test } from '../../../support/tables.ts'
import { contentsOf } from '../../fixtures.ts'
import { ALL, SMALL, TAG_LIST, TWO_PAGES, asked, bench, differences, lackingOf, mirrored } from '../fixtures.ts'

const PATCHES = '/v1/patches'

/** Ids of a list as it would be served, in order. */
function idsOf({ store }: Bench, path: string): string[] {
  const list = store.catalog.readList(path)
  return list === null ? [] : [...store.catalog.eachEntry(list.id)].map(({ id }) => id)
}

/** Rows that wait in the temporary tables for a publication that will not come. */
function staged({ store }: Bench, path: string): number {
  return [...store.catalog.eachWalked(null, path)].length
}

describe('an unreadable list', () => {
  const ways: [string, Fault, RegExp][] = [
    [
      'is a page of HTML',
      { kind: 'html' },
      /^\/v1\/patches: an HTML page came instead of JSON \(a sign-in page or a proxy\?\)/,
    ],
    ['is empty', { kind: 'empty' }, /a page is not JSON/],
    ['is no list', { kind: 'body', body: '{"message":"soon"}' }, /contains no array/],
    ['is a number', { kind: 'body', body: '17' }, /neither an object nor an array/],
    ['has items that are not objects', { kind: 'body', body: '{"data":[1,2]}' }, /is not an object/],
    ['is refused', { kind: 'status', status: 500 }, /500/],
    ['is deeply nested', { kind: 'body', body: nested(600_000) }, /nested more than 200 deep/],
  ]
  const FEW = telling(ways, 'is refused', 'is a page of HTML', 'is deeply nested')
  bothTest.each(FEW)(
    'that %s is named and keeps its stored version, and the other lists are walked',
    async (_way, fault, why) => {
      const made = await mirrored(TWO_PAGES)
      const held = idsOf(made, PATCHES)
      const [tag = ''] = made.sandbox.service.ids('tags')
      made.sandbox.service.addTicket()
      made.sandbox.service.change('tags', tag)
      const struck = made.sandbox.faults.set(PATCHES, fault)
      const report = await made.run('catalog')
      expect(report).toMatchObject({
        state: 'partial',
        code: null,
        asOf: null,
        facts: { lacking: 1 },
      })
      expect(lackingOf(report)[0]).toMatch(why)
      expect(struck.hits()).toBeLessThanOrEqual(6)
      expect(idsOf(made, PATCHES)).toEqual(held)
      expect(staged(made, PATCHES)).toBe(0)
      expect(await (await made.ask(`/v1/tags/${tag}`)).text()).toBe(
        await (await made.askUpstream(`/v1/tags/${tag}`)).text(),
      )
      made.sandbox.faults.clear()
      expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
      expect(idsOf(made, PATCHES)).toHaveLength(1101)
    },
  )

  longTest('in the first run is served as 503 until it can be read', async () => {
    const made = await catalogBench(SMALL, { env: ALL })
    made.sandbox.faults.set('/v1/packages/', { kind: 'html' })
    expect(await made.run('catalog')).toMatchObject({ state: 'partial', facts: { lacking: 1 } })
    expect(made.store.snapshots.readSnapshot('catalog')).toMatchObject({ whole: false })
    expect((await made.ask('/v1/packages/')).status).toBe(503)
    made.sandbox.faults.clear()
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    expect(made.store.snapshots.readSnapshot('catalog')).toMatchObject({ whole: true })
    expect(await differences(made)).toEqual([])
  })
})

longTest(
  'a list that had several pages and gives only one of a usual size loses no item: the run is partial',
  async () => {
    const made = await mirrored(TWO_PAGES)
    const held = idsOf(made, PATCHES)
    const upstream = (await (await made.askUpstream(`${PATCHES}?limit=25`)).json()) as {
      tickets: object[]
    }
    expect(upstream.tickets).toHaveLength(25)
    const body = JSON.stringify({ tickets: upstream.tickets })
    made.sandbox.faults.set(PATCHES, { kind: 'body', body, type: 'application/json' })
    const report = await made.run('catalog')
    expect(report).toMatchObject({ state: 'partial', facts: { incomplete: 1 } })
    expect(report.message).toMatch(/25 items, a usual page size.*; it had \d+ items on several pages/)
    expect(idsOf(made, PATCHES)).toEqual(held)
    made.sandbox.faults.clear()
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    expect(await differences(made)).toEqual([])
  },
)

describe('a list without an end', () => {
  const ways: [string, Fault, RegExp][] = [
    ['empty pages without end', { kind: 'endlessCursor' }, /upstream counts 1100 items, but its pages contain 0/],
    [
      'the same items without end',
      { kind: 'endlessCursor', items: 'repeated' },
      /page 2 only repeats items of earlier pages/,
    ],
  ]
  longTest.each(ways)(
    'that has %s ends there: what was read and what is stored stays, and the run is partial',
    async (_way, fault, why) => {
      const made = await mirrored(TWO_PAGES)
      const held = idsOf(made, PATCHES)
      const struck = made.sandbox.faults.set(PATCHES, fault)
      const report = await made.run('catalog')
      expect(report).toMatchObject({ state: 'partial', code: null, facts: { incomplete: 1 } })
      expect(report.message).toMatch(why)
      expect(struck.hits()).toBeLessThanOrEqual(12)
      expect(idsOf(made, PATCHES).sort()).toEqual(held.sort())
      made.sandbox.faults.clear()
      expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
      expect(idsOf(made, PATCHES)).toHaveLength(held.length)
    },
  )

  test('whose last page names itself is complete when its total is reached', async () => {
    const made = await mirrored(TWO_PAGES)
    made.sandbox.service.addTicket()
    const struck = made.sandbox.faults.set(PATCHES, { kind: 'repeatPage' })
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    expect(struck.hits()).toBeLessThanOrEqual(4)
    expect(idsOf(made, PATCHES)).toEqual(made.sandbox.service.ids('tickets'))
  })
})

longTest('a service that answers no list at all ends the run as failed; nothing is published', async () => {
  const made = await bench()
  made.sandbox.faults.set(/^\/v1\//, { kind: 'status', status: 503 })
  expect(await made.run('catalog')).toMatchObject({ state: 'failed', code: 'upstream_status' })
  expect(made.store.snapshots.readSnapshot('catalog')).toBeNull()
  made.sandbox.faults.clear()
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
})

longTest('a walk that misses a page restarts and completes', async () => {
  const made = await mirrored(TWO_PAGES)
  made.sandbox.service.addTicket()
  const struck = made.sandbox.faults.set(PATCHES, { kind: 'lostPage' }, { times: 1 })
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  expect(struck.hits()).toBe(1)
  expect(idsOf(made, PATCHES)).toEqual(made.sandbox.service.ids('tickets'))
})

longTest('repeatedly lost pages end the walk and not the run', async () => {
  const made = await mirrored(TWO_PAGES)
  const held = idsOf(made, PATCHES)
  made.sandbox.faults.set(PATCHES, { kind: 'lostPage' })
  const report = await made.run('catalog')
  expect(report).toMatchObject({ state: 'partial' })
  expect(lackingOf(report)[0]).toContain('its pages disappear while they are read')
  expect(idsOf(made, PATCHES)).toEqual(held)
  expect(asked(made).filter((path) => path.startsWith(PATCHES)).length).toBeLessThanOrEqual(8)
})

longTest('a failed list of tags of one image is requested again, although nothing else changed', async () => {
  const made = await mirrored()
  const [image = ''] = made.sandbox.service.ids('images')
  made.sandbox.service.addTag(image)
  made.sandbox.faults.set(/^\/v1\/images\/.*\/tags$/, { kind: 'status', status: 500 })
  const report = await made.run('catalog')
  expect(report.state).toBe('partial')
  made.sandbox.faults.clear()
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  expect(await differences(made)).toEqual([])
})

describe('a list that changes while it is walked', () => {
  const tag = (id: string): object => ({ id, name: id, image: { id: 1, repository: 'a' } })
  const page = (ids: string[], next: string | null, total: number): Fault => ({
    kind: 'body',
    type: 'application/json',
    body: JSON.stringify({
      data: ids.map(tag),
      cursor: { after: next, total_count: total, limit: 1000 },
    }),
  })
  /** Each page answers once, in this order; cursors are offsets, as some services have them. */
  function script(made: Bench, pages: Fault[]): void {
    made.sandbox.faults.clear()
    for (const one of pages) made.sandbox.faults.set(TAG_LIST, one, { times: 1 })
  }
  const NO_TAGS = { ...SMALL, tags: 0, images: 0, subscriptions: 0, avrs: 0 }
  const SUBSCRIBED = { env: { ...ALL, PATCHMIRROR_CATALOG_SCOPE: 'subscribed' } }

  test('by an item that moves to the front is walked once more, and keeps the item', async () => {
    const made = await bench(NO_TAGS, SUBSCRIBED)
    script(made, [page(['a', 'b'], '2', 4), page(['c', 'b2'], null, 4)])
    await made.run('catalog')
    expect(idsOf(made, '/v1/tags')).toEqual(['a', 'b', 'c', 'b2'])
    script(made, [
      page(['a', 'b'], '2', 4),
      page(['c'], null, 4), // b2 was changed and is now the first
      page(['b2', 'a'], '2', 4),
      page(['b', 'c'], null, 4),
    ])
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    expect(idsOf(made, '/v1/tags')).toEqual(['b2', 'a', 'b', 'c'])
  })

  test('so that an item is listed twice stores it once, and keeps it later', async () => {
    const made = await bench(NO_TAGS, SUBSCRIBED)
    const twice = [page(['a', 'b'], '2', 4), page(['b', 'c'], null, 4)]
    script(made, [...twice, ...twice])
    await made.run('catalog')
    expect(idsOf(made, '/v1/tags')).toEqual(['a', 'b', 'c'])
    script(made, [page(['x', 'a'], '2', 4), page(['b', 'c'], null, 4)])
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    expect(idsOf(made, '/v1/tags')).toEqual(['x', 'a', 'b', 'c'])
  })

  test('by removals and additions between the pages is stored as the pages list it', async () => {
    const made = await bench(NO_TAGS, SUBSCRIBED)
    script(made, [page(['a', 'b'], 'b', 4), page(['c', 'd'], null, 4)])
    await made.run('catalog')
    const changed = [page(['a', 'b'], 'b', 4), page(['d', 'e'], null, 4)]
    script(made, [...changed, ...changed])
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    expect(idsOf(made, '/v1/tags')).toEqual(['a', 'b', 'd', 'e'])
  })

  test.each([
    ['whose total falls', [page(['a', 'b'], '2', 4), page(['d'], null, 3)]],
    ['whose total stays', [page(['a', 'b'], '2', 4), page(['d', 'e'], null, 4)]],
    ['whose total rises', [page(['a', 'b'], '2', 4), page(['d', 'e', 'f'], null, 5)]],
  ])('and %s, while an item moves to a page already read, keeps the item', async (_case, moved) => {
    const made = await bench(NO_TAGS, SUBSCRIBED)
    script(made, [page(['a', 'b'], '2', 4), page(['c', 'd'], null, 4)])
    await made.run('catalog')
    // "a" was deleted between the two pages, and "c" moved to the first.
    const after = [page(['b', 'c'], '2', 3), page(['d'], null, 3)]
    script(made, [...moved, ...after, ...after])
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    expect(idsOf(made, '/v1/tags')).toEqual(['b', 'c', 'd'])
  })

  test('at each reading removes nothing and is partial, until it rests', async () => {
    const made = await bench(NO_TAGS, SUBSCRIBED)
    script(made, [page(['a', 'b'], '2', 4), page(['c', 'd'], null, 4)])
    await made.run('catalog')
    const moving = [page(['a', 'b'], '2', 4), page(['d'], null, 3)]
    const falling = [page(['b', 'c'], '2', 3), page([], null, 2)]
    script(made, [...moving, ...falling, ...moving])
    const report = await made.run('catalog')
    expect(report).toMatchObject({ state: 'partial', facts: { incomplete: 1 } })
    expect(idsOf(made, '/v1/tags').sort()).toEqual(['a', 'b', 'c', 'd'])
    const rest = [page(['b', 'c'], '2', 2), page([], null, 2)]
    script(made, [...rest, ...rest])
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    expect(idsOf(made, '/v1/tags')).toEqual(['b', 'c'])
  })

  test('or comes from a cache that is behind is not taken, and the run is partial', async () => {
    const made = await bench(NO_TAGS, SUBSCRIBED)
    script(made, [page(['a', 'b'], null, 2)])
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    script(made, [{ ...page(['a'], null, 1), headers: { age: '90000' } } as Fault])
    const report = await made.run('catalog')
    expect(report).toMatchObject({ state: 'partial' })
    expect(lackingOf(report)[0]).toContain('a cache answered for upstream')
    expect(idsOf(made, '/v1/tags')).toEqual(['a', 'b'])
    const shorter = page(['a'], null, 1)
    script(made, [shorter, shorter])
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    expect(idsOf(made, '/v1/tags')).toEqual(['a'])
  })

  test('so that one page lacks an item at one reading and not at the next keeps the item', async () => {
    const made = await bench(NO_TAGS, SUBSCRIBED)
    const [whole, behind] = [page(['a', 'b', 'c'], null, 3), page(['a', 'b'], null, 2)] as const
    script(made, [whole])
    await made.run('catalog')
    script(made, [behind, whole, whole])
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    expect(idsOf(made, '/v1/tags')).toEqual(['a', 'b', 'c'])
    script(made, [behind, behind])
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    expect(idsOf(made, '/v1/tags')).toEqual(['a', 'b'])
  })

  test('with a total that does not match is walked at most twice, and is not reported as complete', async () => {
    const made = await bench(NO_TAGS, SUBSCRIBED)
    const pages = [page(['a', 'b'], '2', 99), page(['c'], null, 99)]
    script(made, [...pages, ...pages])
    expect(await made.run('catalog')).toMatchObject({ state: 'partial', facts: { incomplete: 1 } })
    expect(idsOf(made, '/v1/tags')).toEqual(['a', 'b', 'c'])
    expect(made.sandbox.requests.count(TAG_LIST)).toBe(4)
    const before = contentsOf(made.dir)
    script(made, pages)
    expect(await made.run('catalog')).toMatchObject({ state: 'partial', facts: { incomplete: 1 } })
    expect(made.sandbox.requests.count(TAG_LIST)).toBe(6)
    expect(contentsOf(made.dir)).toEqual(before)
  })
})

longTest('a request that fails while the next page of a list is learned is sent again once', async () => {
  const made = await catalogBench({ ...SMALL, shape: 'other' })
  const { faults, requests } = made.sandbox
  faults.set('/v1/patches', { kind: 'html' }, { after: 1, times: 3 }) // the list itself comes first
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  faults.clear()
  expect(await differences(made)).not.toEqual([])
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  expect(await differences(made)).toEqual([])
  requests.clear()
  expect(await made.run('catalog')).toMatchObject({ message: 'nothing changed' })
  expect(requests.count('/v1/patches')).toBe(1)
})

function nested(depth: number): string {
  return `{"data":[{"id":${'['.repeat(depth)}${']'.repeat(depth)}}]}`
}

test('an image’s list of tags that is empty, while all its tags are listed, stays as it is stored', async () => {
  const tags = ['a', 'b'].map((id) => ({ id, name: id, image_id: 'i' }))
  let all = tags
  let own = tags
  const made = await plainBench({
    '/v1/images/': () => ({ body: { data: [{ id: 'i', name: 'python', n: own.length }] } }),
    '/v1/images/i': () => ({ body: { id: 'i' } }),
    '/v1/images/python/tags': () => ({ body: { data: own } }),
    '/v1/tags/': () => ({ body: { data: all } }),
    ...Object.fromEntries(tags.map(({ id }) => [`/v1/tags/${id}`, () => ({ body: { id } })])),
  })
  const served = async () => ((await (await made.ask('/v1/images/python/tags')).json()) as { data: unknown[] }).data
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  own = []
  for (const _ of [1, 2]) {
    const report = await made.run('catalog')
    expect(report).toMatchObject({ state: 'partial', facts: { lacking: 1 } })
    expect(lackingOf(report)).toEqual(['/v1/images/python/tags: it is empty, and /v1/tags lists 2 tags of the image'])
    expect(await served()).toEqual(tags)
  }
  all = tags.map((tag) => ({ ...tag, image_id: 'j' })) // they are another image's
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  expect(await served()).toEqual([])
})
