import { describe, expect } from 'vitest'
import { plainBench, tickets } from '../../../support/catalog/plain-service.ts'
import { bothTest, longTest, telling, test } from '../../../support/tables.ts'

const PATH = '/v1/patches'

/** A mirror of a list of tickets, of which the service gives `count`, and states `total` where that is given. */
async function listed(count: number, total?: unknown) {
  let say = { count, total }
  const made = await plainBench({
    [PATH]: () => ({
      body: say.total === undefined ? tickets(say.count) : { data: tickets(say.count), total: say.total },
    }),
  })
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  const served = async (): Promise<number> => {
    const body: unknown = await (await made.ask(PATH)).json()
    return (Array.isArray(body) ? body : (body as { data: unknown[] }).data).length
  }
  return { made, served, give: (now: number, sum?: unknown) => void (say = { count: now, total: sum }) }
}

describe('a list that loses half of its items at once, and states neither its total nor its end,', () => {
  const KEPT = 'it has 8 items, and had 16; 8 stored items that it lacks stay until the next sync finds the same'
  const UNSTATED: [string, unknown][] = [
    ['with no envelope', undefined],
    ['with a total of -1', -1],
    ['with a total of null', null],
  ]
  bothTest.each(telling(UNSTATED, 'with no envelope', 'with a total of -1'))(
    '%s, is believed when a second sync finds the same',
    async (_, total) => {
      const { made, served, give } = await listed(16, total)
      give(8, total)
      const partial = { state: 'partial', message: expect.stringContaining(KEPT) as string }
      expect(await made.run('catalog')).toMatchObject(partial)
      expect(await served()).toBe(16)
      expect((await made.ask(PATH)).headers.get('x-mirror-incomplete')).toBe(KEPT)
      expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
      expect(await served()).toBe(8)
      expect((await made.ask(PATH)).headers.has('x-mirror-incomplete')).toBe(false)
    },
  )

  test('is not believed for what a refresh finds seconds later', async () => {
    const tags = tickets(12).map(({ ticket_id: id }) => id)
    let count = 12
    const made = await plainBench({
      '/v1/tags/': () => ({ body: tags.slice(0, count).map((id) => ({ id })) }),
      ...Object.fromEntries(tags.map((id) => [`/v1/tags/${id}`, () => ({ body: { id } })])),
    })
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    count = 6
    const served = async (): Promise<unknown> => (await made.ask('/v1/tags/')).json()
    for (const kind of ['sync', 'refresh'] as const) {
      expect(await made.run('catalog', { kind })).toMatchObject({ state: 'partial' })
      expect(await served()).toHaveLength(12)
    }
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    expect(await served()).toHaveLength(6)
  })

  longTest('is whole again as soon as the service has them, and is kept anew when it loses others', async () => {
    const { made, served, give } = await listed(16)
    give(8)
    expect(await made.run('catalog')).toMatchObject({ state: 'partial' })
    give(6)
    expect(await made.run('catalog')).toMatchObject({ state: 'partial' })
    expect(await served()).toBe(16)
    give(16)
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    expect(await served()).toBe(16)
    give(6)
    expect(await made.run('catalog')).toMatchObject({ state: 'partial' })
  })

  const BELIEVED: [string, number, number, boolean][] = [
    ['that is less than half of it', 16, 9, false],
    ['those are few', 6, 2, false],
    ['its total says so', 16, 8, true],
  ]
  bothTest.each(telling(BELIEVED, 'its total says so'))(
    'is believed at once where %s',
    async (_, before, now, isTotal) => {
      const { made, served, give } = await listed(before, isTotal ? before : undefined)
      give(now, isTotal ? now : undefined)
      expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
      expect(await served()).toBe(now)
    },
  )
})

test('a list that has more items than it counts loses nothing until a second sync finds the same', async () => {
  const { made, served, give } = await listed(16, 16)
  give(15, 9)
  const report = await made.run('catalog')
  expect(report.message).toContain(
    'upstream counts 9 items, but its pages contain 15; 1 stored item that it lacks stays',
  )
  expect([report.state, await served()]).toEqual(['partial', 16])
  expect(await made.run('catalog')).toMatchObject({ state: 'partial' })
  expect(await served()).toBe(15)
  give(15, 15)
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
})
