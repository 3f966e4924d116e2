import { expect } from 'vitest'
import { cursorAsked } from '../../sandbox/service/shapes/list.ts'
import { type Shape, type ShapeName, shaped } from '../../sandbox/service/shapes/shape.ts'
import { formOf } from '../walk.ts'
import { READING, allKnown } from './contract.ts'
import { type Difference, itemDifference, listDifference } from './differences.ts'
import { type CatalogBench, catalogBench } from './mirror.ts'
import { RULES, WEBHOOK_SECRET } from './rules.ts'
import { LONG } from '../tables.ts'

/** The shapes that the fast suite proves: the one of the contract. The long suite proves all, with more items. */
export const FAST_SHAPES: readonly ShapeName[] = ['wire']

const MANY = {
  images: 4,
  tags: 7,
  packages: 5,
  tickets: 23,
  avrs: 3,
  users: 4,
  subscriptions: 4,
}
/** Every list has two pages at least. */
const FEW = { images: 4, tags: 5, packages: 4, tickets: 10, avrs: 2, users: 4, subscriptions: 4 }
const SERVICE = LONG ? MANY : FEW
const ENV = {
  PATCHMIRROR_CATALOG_PERSONAL_DATA: 'apiKeys,users',
  PATCHMIRROR_CATALOG_SCOPE: 'all',
}
/** Small, so that every list has several pages upstream. */
const PAGES = { largestPage: 3 }

/** An artifact that was in the making at the first run is there at the next. */
async function syncAll(made: CatalogBench, { artifacts }: Shape): Promise<void> {
  for (const source of ['osv', 'feeds', 'catalog', 'identity'] as const) {
    let report = await made.run(source)
    for (let i = 0; i < artifacts.pending && report.state === 'partial'; i++) report = await made.run(source)
    expect(report).toMatchObject({ source, state: 'complete', code: null })
  }
}

async function differencesOf(made: CatalogBench, shape: Shape): Promise<Difference[]> {
  const known = allKnown(made)
  const found: Difference[] = []
  for (const { isList, path: row, requests } of READING) {
    const paths = requests(known).filter((path) => takesAfter(shape) || !path.includes('after='))
    expect({ row, paths }).not.toEqual({ row, paths: [] })
    for (const path of paths) {
      const difference = isList
        ? await listDifference(made, path, formOf(shape, path))
        : await itemDifference(made, path, shape.artifacts.types !== 'none')
      if (difference !== null) found.push(difference)
    }
  }
  return found
}

/** Returns whether the service reads `after`: one that pages by another parameter ignores it. */
function takesAfter({ patches: { next } }: Shape): boolean {
  return cursorAsked({ next }, new URLSearchParams('after=x')) !== ''
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

/** On what the completeness of the lists of each shape rests, where they have several pages (`upstream/lists/evidence.ts`). */
export const LIST_EVIDENCE: Readonly<Record<ShapeName, readonly string[]>> = {
  wire: ['proved: its total was reached'],
  other: ['proved: its total was reached'],
  link: [
    'proved: it has one item, and nothing speaks of more',
    'proved: its pages name the next one, and its last page names none',
  ],
  items: ['proved: its last page says that it is the last'],
  nested: ['proved: its last page says that it is the last'],
  camel: ['proved: its last page says that it is the last'],
  jsonapi: ['proved: its total was reached'],
  hal: ['proved: its total was reached'],
  headers: [
    'proved: it has one item, and nothing speaks of more',
    'proved: its pages name the next one, and its last page names none',
  ],
  keyed: [
    'proved: it has one item, and nothing speaks of more',
    'proved: its page is shorter than was asked for, the service keeps to "limit", and no other page was found',
    'proved: its pages name the next one, and its last page names none',
  ],
}

/** Returns the grades of the stored lists with their reasons, each once. */
function evidenceIn({ store }: CatalogBench): string[] {
  const all = store.catalog.listLists().map(({ id }) => {
    const text = store.catalog.readEvidence(id) ?? '{}'
    const { grade = 'none', why = '' } = JSON.parse(text) as { grade?: string; why?: string }
    return `${grade}: ${why}`
  })
  return [...new Set(all)].sort()
}

/** Mirrors a service of a shape, and compares every row and rule of the contract before and after changes. */
export async function proveContract(name: ShapeName): Promise<void> {
  const shape = shaped(name, { lists: PAGES, patches: PAGES })
  const service = { ...SERVICE, shape, webhookSecret: WEBHOOK_SECRET }
  const made = await catalogBench(service, { env: ENV })
  await syncAll(made, shape)
  expect(await differencesOf(made, shape)).toEqual([])
  expect(evidenceIn(made)).toEqual(LIST_EVIDENCE[name])
  for (const { by } of RULES) if (typeof by !== 'string') await by(made, shape)
  live(made.sandbox)
  await syncAll(made, shape)
  expect(await differencesOf(made, shape)).toEqual([])
}
