import { expect, test } from 'vitest'
import { findingOf, imageOf, isRuledOut, openVexOf } from './fixtures.ts'

const ZLIB = 'pkg:deb/debian/zlib1g@1.2?arch=amd64'
const IMAGES = { a: imageNamed('a'), b: imageNamed('b'), c: imageNamed('c'), x: imageNamed('x') }

function imageNamed(name: string): string {
  return `pkg:oci/${name}@sha256%3A${name.charCodeAt(0).toString(16).repeat(32)}`
}

/** Whose document it is, and what it names: the image of that tag, the component, or the component in that image. */
type Place =
  | 'a image'
  | 'a component'
  | 'a part'
  | 'b image'
  | 'b component'
  | 'b part'
  | 'c image'
  | 'c component'
  | 'c part'
  | '- component'
  | '- image'

function documentOf(place: Place, status: string, day: number) {
  const [tag = '', form] = place.split(' ')
  const image = IMAGES[tag === '-' ? 'c' : (tag as 'a' | 'b' | 'c')]
  const products = {
    image: { '@id': image },
    component: { '@id': ZLIB },
    part: { '@id': image, subcomponents: [{ '@id': ZLIB }] },
  }
  const product = products[form as keyof typeof products]
  return { content: openVexOf([product], status, day), tags: tag === '-' ? [] : [tag] }
}

/** Whether a statement that rules out still does beside an open one that is older, newer and as old: `+` or `-` for each. */
function outcomes(image: ReturnType<typeof imageOf>, out: Place, open: Place): string {
  return [1, 3, 2]
    .map((day) => {
      const documents = [documentOf(out, 'not_affected', 2), documentOf(open, 'affected', day)]
      const orders = [documents, documents.toReversed()]
      const found = orders.map((order) => isRuledOut(order, findingOf(ZLIB), image))
      expect(found[0]).toBe(found[1]) // whatever is read first
      return found[0] === true ? '+' : '-'
    })
    .join('')
}

const OPEN: readonly Place[] = [
  'a image',
  'a component',
  'a part',
  'b image',
  'b component',
  'b part',
  'c image',
  'c component',
  'c part',
  '- component',
  '- image',
]

test('a statement counts where its document counts: for the SBOM of a tag its own, then of others those on the component', () => {
  const image = imageOf([IMAGES.a], { tag: 'a' })
  const own = ['+--', '+--', '+--', ...Array<string>(8).fill('+++')]
  const never = Array<string>(11).fill('---')
  const table: [Place, string[]][] = [
    ['a image', own],
    ['a component', own],
    ['a part', own],
    ['b image', never],
    // What tag b says otherwise later, or at the same time, and what others say at any time.
    ['b component', ['---', '---', '---', '+--', '+--', '+--', '---', '---', '---', '---', '+++']],
    ['b part', never],
    ['- component', ['---', '---', '---', '---', '---', '---', '---', '---', '---', '+--', '+++']],
  ]
  for (const [out, expected] of table)
    expect([out, OPEN.map((open) => outcomes(image, out, open))]).toEqual([out, expected])
})

test('for an SBOM of no known tag a statement on the component counts unless any tag says otherwise, one on its image always', () => {
  const image = imageOf([IMAGES.x])
  const never = Array<string>(11).fill('---')
  const table: [Place, string[]][] = [
    ['a image', never],
    ['a part', never],
    ['a component', ['+--', '+--', '+--', ...Array<string>(7).fill('---'), '+++']],
    ['b component', [...Array<string>(3).fill('---'), '+--', '+--', '+--', '---', '---', '---', '---', '+++']],
  ]
  for (const [out, expected] of table)
    expect([out, OPEN.map((open) => outcomes(image, out, open))]).toEqual([out, expected])
  const named = documentOf('a image', 'not_affected', 2)
  const open = documentOf('b component', 'affected', 3)
  expect(isRuledOut([named, open], findingOf(ZLIB), imageOf([IMAGES.a]))).toBe(true)
})

test('a document that names the image of another tag counts for that image, by its date', () => {
  const image = imageOf([IMAGES.a], { tag: 'a' })
  const named = (status: string, day: number) => ({
    content: openVexOf([{ '@id': IMAGES.a, subcomponents: [{ '@id': ZLIB }] }], status, day),
    tags: ['b'],
  })
  const own = (status: string, day: number) => documentOf('a component', status, day)
  const cases: [Parameters<typeof isRuledOut>[0], boolean][] = [
    [[named('not_affected', 2)], true],
    [[named('not_affected', 2), own('affected', 1)], true],
    [[named('not_affected', 2), own('affected', 2)], false],
    [[named('not_affected', 2), own('affected', 3)], false],
    [[named('affected', 3), own('not_affected', 2)], false],
  ]
  for (const [documents, expected] of cases)
    expect([documents, isRuledOut(documents, findingOf(ZLIB), image)]).toEqual([documents, expected])
})

test('another version, and what a tag has taken back itself, keeps no statement of others from counting', () => {
  const image = imageOf([IMAGES.x])
  const out = documentOf('b component', 'not_affected', 2)
  const about = (purl: string, status: string, day: number) => ({
    content: openVexOf([{ '@id': IMAGES.a, subcomponents: [{ '@id': purl }] }], status, day),
    tags: ['a'],
  })
  const cases: [Parameters<typeof isRuledOut>[0], boolean][] = [
    [[out, about('pkg:deb/debian/zlib1g@1.3', 'affected', 3)], true],
    [[out, about('pkg:deb/debian/zlib1g@1.2', 'affected', 1)], false],
    [[out, about('pkg:deb/debian/zlib1g', 'under_investigation', 1)], false],
    [[out, about(ZLIB, 'affected', 3), about(ZLIB, 'fixed', 4)], true],
    [[out, about(ZLIB, 'affected', 4), about(ZLIB, 'fixed', 4)], false],
  ]
  for (const [documents, expected] of cases)
    expect([documents, isRuledOut(documents, findingOf(ZLIB), image)]).toEqual([documents, expected])
})

test('a statement without a date rules out as the oldest one, and leaves open as the newest one', () => {
  const image = imageOf([IMAGES.a], { tag: 'a' })
  const undated = (place: Place, status: string) => {
    const { content, tags } = documentOf(place, status, 1)
    return { content: { ...content, timestamp: undefined, last_updated: undefined }, tags }
  }
  for (const place of ['a component', 'a image'] as const) {
    const said = (...documents: Parameters<typeof isRuledOut>[0]): boolean =>
      isRuledOut(documents, findingOf(ZLIB), image)
    expect(said(undated(place, 'affected'), documentOf(place, 'not_affected', 2))).toBe(false)
    expect(said(documentOf(place, 'not_affected', 2), undated(place, 'affected'))).toBe(false)
    expect(said(undated(place, 'not_affected'), documentOf(place, 'affected', 2))).toBe(false)
    expect(said(undated(place, 'not_affected'))).toBe(true)
    expect(said(undated(place, 'not_affected'), undated(place, 'affected'))).toBe(false)
  }
})
