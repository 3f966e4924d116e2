import { expect, test } from 'vitest'
import { readQuestion } from '../../../../src/documents/records/query.ts'
import {
  type ResultPage,
  type PageBounds,
  type QuerySource,
  search,
} from '../../../../src/features/scanners/records/search.ts'

/** A source of npm records by id; the ecosystems and names that it is asked for are not looked at. */
function sourceOf(records: Readonly<Record<string, object | string>>): QuerySource {
  return {
    listCandidates: (_ecosystem, _name, after, limit) =>
      Object.keys(records)
        .sort()
        .filter((id) => id > after)
        .slice(0, limit)
        .map((id) => ({ id })),
    readRecord(_ecosystem, id) {
      const record = records[id]
      if (record === undefined) return null
      const text = typeof record === 'string' ? record : JSON.stringify(record)
      return { content: Buffer.from(text), prefixes: [] }
    },
  }
}

function record(fixed: string, details = ''): object {
  const ranges = [{ type: 'SEMVER', events: [{ introduced: '0' }, { fixed }] }]
  const affected = [{ package: { ecosystem: 'npm', name: 'p' }, ranges }]
  return { modified: '2026-01-01T00:00:00Z', affected, details }
}

function bounds(more: Partial<PageBounds> = {}): PageBounds {
  const none = async (): Promise<void> => Promise.resolve()
  return { records: 1000, bytes: 1 << 20, isLate: () => false, pause: none, ...more }
}

const ask = (pageToken = '', version = '1.0.0') =>
  readQuestion({ package: { ecosystem: 'npm', name: 'p' }, version, page_token: pageToken })

const ids = ({ found }: ResultPage): string[] => found.map(({ id }) => id)

/** Ids R000, R001, … each of which is fixed in 2.0.0, but every third in 1.0.0. */
function many(count: number): Record<string, object> {
  const pairs = Array.from({ length: count }, (_, i): [string, object] => [
    `R${String(i).padStart(3, '0')}`,
    record(i % 3 === 0 ? '1.0.0' : '2.0.0'),
  ])
  return Object.fromEntries(pairs)
}

test('a search returns the records that affect the version, in the order of their ids', async () => {
  const source = sourceOf({ B: record('2.0.0'), A: record('1.0.0'), C: 'no JSON', D: '[1]' })
  const page = await search(source, ask(), bounds())
  expect(page).toMatchObject({ found: [{ id: 'B', modified: '2026-01-01T00:00:00Z' }], next: '' })
  expect(ids(await search(source, ask('', ''), bounds()))).toEqual(['A', 'B'])
})

test('pages of a search follow each other without gap or duplicate, whatever ends a page', async () => {
  const records = many(500)
  const whole = ids(await search(sourceOf(records), ask(), bounds()))
  expect(whole).toHaveLength(333)
  let looks = 0
  const ends: Partial<PageBounds>[] = [{ records: 7 }, { bytes: 2000 }, { isLate: () => ++looks % 2 === 0 }]
  for (const end of ends) {
    const all: string[] = []
    let pages = 0
    let token = ''
    do {
      const page = await search(sourceOf(records), ask(token), bounds(end))
      all.push(...ids(page))
      token = page.next
      pages++
    } while (token !== '')
    expect(all).toEqual(whole)
    expect(pages).toBeGreaterThan(3)
  }
})

test('a page token stays valid when records have changed meanwhile', async () => {
  const before = many(30)
  const first = await search(sourceOf(before), ask(), bounds({ records: 5 }))
  expect(ids(first)).toEqual(['R001', 'R002', 'R004', 'R005', 'R007'])
  const after: Record<string, object> = {
    ...before,
    R0005: record('2.0.0'),
    R0105: record('2.0.0'),
  }
  delete after['R007']
  delete after['R008']
  const second = await search(sourceOf(after), ask(first.next), bounds({ records: 3 }))
  expect(ids(second)).toEqual(['R010', 'R0105', 'R011'])
})

test('a page token of another query, a changed one and an invalid one are refused', async () => {
  const source = sourceOf(many(30))
  const { next } = await search(source, ask(), bounds({ records: 5 }))
  const bad = [next.slice(0, -1), `${next}=`, `A${next.slice(1)}`, 'x', '!', 'AAAAAAAA']
  for (const token of bad) await expect(search(source, ask(token), bounds())).rejects.toThrow('Invalid page token.')
  await expect(search(source, ask(next, '1.0.1'), bounds())).rejects.toThrow('Invalid page token.')
})

test('a long search works in slices by records and bytes, and stops where a pause ends it', async () => {
  let pauses = 0
  const pause = async (): Promise<void> => {
    pauses++
    return Promise.resolve()
  }
  await search(sourceOf(many(500)), ask(), bounds({ pause }))
  expect(pauses).toBe(7)
  pauses = 0
  const large = Object.fromEntries('abcdefgh'.split('').map((id) => [id, record('1.0.0', 'x'.repeat(150_000))]))
  await search(sourceOf(large), ask(), bounds({ pause }))
  expect(pauses).toBe(3)
  const stop = async (): Promise<void> => Promise.reject(new Error('left'))
  await expect(search(sourceOf(large), ask(), bounds({ pause: stop }))).rejects.toThrow('left')
})

test('a long record is searched in slices too, whichever part makes it long', async () => {
  const count = 3500
  const versions = Array.from({ length: count }, (_, i) => `9.9.${i}`)
  const events = versions.map((introduced) => ({ introduced }))
  const own = { ecosystem: 'npm', name: 'p' }
  const long = {
    versions: [{ package: own, versions }],
    events: [{ package: own, ranges: [{ type: 'SEMVER', events }] }],
    ranges: [{ package: own, ranges: versions.map(() => ({ type: 'SEMVER', events: [] })) }],
    packages: versions.map((name) => ({ package: { ...own, name } })),
  }
  for (const affected of Object.values(long)) {
    let pauses = 0
    const pause = async (): Promise<void> => {
      pauses++
      return Promise.resolve()
    }
    await search(sourceOf({ A: { affected } }), ask(), bounds({ pause }))
    expect(pauses).toBeGreaterThanOrEqual(3)
  }
})
