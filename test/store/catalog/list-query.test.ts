import fc from 'fast-check'
import { expect } from 'vitest'
import { createListCursors } from '../../../src/server/catalog/list-cursor.ts'
import type { Ordering } from '../../../src/server/catalog/list-query.ts'
import type { StagedEntry } from '../../../src/store/catalog/list-staging.ts'
import type { Writes } from '../../../src/store/writes.ts'
import { NOW, writes } from '../fixtures.ts'
import { longTest, test } from '../../support/tables.ts'

/** An item: which of its fields a list can be narrowed by, and one that is only in its body. */
interface Item {
  id: string
  colour: string | null
  weight: number | string | null
  version: number
}

const PATH = '/v1/things'
const PER_PAGE = 7

function entryOf({ id, colour, weight, version }: Item): StagedEntry {
  const body = JSON.stringify({ id, version, ...(weight !== null && { weight }) })
  const sha = Buffer.alloc(16)
  sha.write(`${version}${id}`)
  return { id, body: Buffer.from(body), sha, facets: [colour] }
}

/** What a sync publishes: the whole list, in upstream's pages. */
async function publish(store: Writes, items: readonly Item[]): Promise<void> {
  await store.transaction(() => {
    store.catalog.staging.dropWalk(PATH)
    for (let number = 0; number * PER_PAGE < items.length; number++) {
      const entries = items.slice(number * PER_PAGE, (number + 1) * PER_PAGE).map(entryOf)
      const page = { cursor: null, next: null, etag: null, lastModified: null }
      const row = { ...page, number, sha256: Buffer.alloc(32, number), entries: entries.length }
      store.catalog.staging.stagePage(PATH, row, entries)
    }
    store.catalog.replaceList(PATH, 'patches', '{}', [], NOW)
    return Promise.resolve({ commit: true })
  })
}

const ORDERS: readonly Ordering[] = [
  { facet: null, field: null, descending: false, text: '' },
  ...[true, false].flatMap((descending) => [
    { facet: 0, field: ['colour'], descending, text: `colour:${descending}` },
    { facet: null, field: ['weight'], descending, text: `weight:${descending}` },
  ]),
]

interface Walked {
  ids: string[]
  cursor: string | null
}

/** One page, as the API gives it. */
function page(store: Writes, order: Ordering, colours: string[], after: string | null, limit: number): Walked {
  const list = store.catalog.readList(PATH)
  if (list === null) throw new Error('no list')
  const where = colours.length === 0 ? [] : [{ facet: 0, values: colours }]
  const places = createListCursors(store, { list, order, where, byId: false })
  const from = places.read(after)
  const rows = store.catalog.listEntries({
    list: list.id,
    where,
    order,
    after: from.place,
    limit: limit + 1,
  })
  const shown = rows.slice(0, limit)
  const cursor = rows.length > limit ? places.write(shown, from) : null
  return { ids: shown.map(({ id }) => id), cursor }
}

const fields = {
  colour: fc.constantFrom('blue', 'green', 'red', null),
  weight: fc.constantFrom(null, -2, 0.5, 7, 9007199254740992000, 'a', 'Z', ''),
}
const items = fc.uniqueArray(fc.record({ id: fc.uuid(), ...fields, version: fc.constant(1) }), {
  selector: ({ id }) => id,
  minLength: 1,
  maxLength: 40,
})

/** What happens to a list between two pages; of neighbours never so many that a cursor has nothing to go by. */
const edits = fc.array(
  fc.oneof(
    fc.record({
      kind: fc.constant('add' as const),
      at: fc.nat(),
      item: fc.record({ id: fc.uuid(), ...fields, version: fc.constant(1) }),
    }),
    fc.record({
      kind: fc.constantFrom('remove' as const, 'change' as const, 'move' as const),
      at: fc.nat(),
      to: fc.nat(),
      ...fields,
    }),
  ),
  { maxLength: 30 },
)

type Script = typeof edits extends fc.Arbitrary<infer T> ? T : never

function edited(before: readonly Item[], script: Script): Item[] {
  const after = [...before]
  let touched = 0
  for (const edit of script) {
    const at = edit.at % (after.length + 1)
    if (edit.kind === 'add') {
      if (!after.some(({ id }) => id === edit.item.id)) after.splice(at, 0, edit.item)
      continue
    }
    const item = after[at]
    if (item === undefined || ++touched > 7) continue
    after.splice(at, 1)
    const changed = { ...item, colour: edit.colour, weight: edit.weight, version: item.version + 1 }
    if (edit.kind === 'change') after.splice(at, 0, changed)
    if (edit.kind === 'move') after.splice(edit.to % (after.length + 1), 0, changed)
  }
  return after
}

longTest('a walk during a publication neither loses nor repeats an unchanged item', async () => {
  const store = writes()
  await fc.assert(
    fc.asyncProperty(
      items,
      edits,
      fc.constantFrom(...ORDERS),
      fc.constantFrom<string[]>([], ['red'], ['blue', 'green']),
      fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 4 }),
      async (before, script, order, colours, limits) => {
        await publish(store, before)
        const seen: string[] = []
        let cursor: string | null = null
        for (const limit of limits) {
          const walked = page(store, order, colours, cursor, limit)
          seen.push(...walked.ids)
          cursor = walked.cursor
          if (cursor === null) break
        }
        const after = edited(before, script)
        await publish(store, after)
        while (cursor !== null) {
          const walked = page(store, order, colours, cursor, limits[0] ?? 1)
          seen.push(...walked.ids)
          cursor = walked.cursor
        }
        const stays = new Set(before.filter((item) => after.includes(item)).map(({ id }) => id))
        const wanted = page(store, order, colours, null, 1000).ids.filter((id) => stays.has(id))
        expect(seen.filter((id) => stays.has(id))).toEqual(wanted)
      },
    ),
    { numRuns: 600 },
  )
})

test('a walk whose first page was removed loses no later item', async () => {
  const store = writes()
  const item = (id: string): Item => ({ id, colour: null, weight: null, version: 1 })
  const plain: Ordering = { facet: null, field: null, descending: false, text: '' }
  await publish(store, [item('a'), item('b'), item('c')])
  const first = page(store, plain, [], null, 1)
  await publish(store, [item('b'), item('c')])
  expect(page(store, plain, [], first.cursor, 2).ids).toEqual(['b', 'c'])
})
