import { expect, test } from 'vitest'
import AdmZip from 'adm-zip'
import { packageId } from '../../../../../src/features/scanners/views/vex/openvex.ts'
import { openVexBench, type VexBench } from './history.ts'

const ZLIB = 'pkg:deb/debian/zlib1g@1.2?arch=amd64'
const imageOf = (tag: string): string => `pkg:oci/${tag}@sha256%3A${tag.charCodeAt(0).toString(16).repeat(32)}`
const component = { '@id': ZLIB }
const part = (tag: string) => ({ '@id': imageOf(tag), subcomponents: [component] })

let count = 0
/** A document of a tag about CVE-1; `day`: null for one without a date. */
function stated(status: string, products: readonly unknown[], day: number, more: object = {}): Buffer {
  const one = { vulnerability: { name: 'CVE-1' }, products, status, ...more }
  const head = { '@context': 'https://openvex.dev/ns/v0.2.0', '@id': `${++count}`, author: 'x' }
  return Buffer.from(JSON.stringify({ ...head, timestamp: `2026-01-0${day}T00:00:00Z`, statements: [one] }))
}

interface Listed {
  readonly products: readonly {
    readonly '@id': string
    readonly subcomponents?: readonly { readonly '@id': string }[]
  }[]
  readonly vulnerability: { readonly name: string }
  readonly status: string
}

/** What Trivy leaves out of the findings of zlib in the image of a tag: it asks about the image, then about the component. */
function isRuledOut(bench: VexBench, tag: string): boolean {
  const zip = new AdmZip(bench.made().bytes)
  const index = JSON.parse(zip.readAsText('index.json')) as { packages: { id: string; location: string }[] }
  return [`${imageOf(tag)}?repository_url=elsewhere.example.com%2Fx`, ZLIB].some((purl) => {
    const found = index.packages.find(({ id }) => id === packageId(purl))
    if (found === undefined) return false
    const { statements } = JSON.parse(zip.readAsText(found.location)) as { statements: Listed[] }
    const [plain = ''] = purl.split('?repository_url')
    const matching = statements
      .toReversed()
      .filter(({ products }) =>
        products.some(
          ({ '@id': id, subcomponents = [] }) =>
            id === plain && (subcomponents.length === 0 || subcomponents.some((one) => one['@id'] === ZLIB)),
        ),
      )
    const last = matching.sort((a, b) => timeOf(a) - timeOf(b)).at(-1)
    return last?.status === 'not_affected' || last?.status === 'fixed'
  })
}

function timeOf(statement: object): number {
  return 'timestamp' in statement ? Date.parse(String(statement.timestamp)) : 0
}

/** Which of the tags a, b and c have their finding ruled out: `-`, else `+`. */
async function outcome(documents: readonly (readonly [string, Buffer])[]): Promise<string> {
  const bench = openVexBench((tag) => [imageOf(tag)])
  for (const [tag, content] of documents) bench.add(content, false, tag === '-' ? [] : [tag])
  await bench.make()
  return ['a', 'b', 'c'].map((tag) => (isRuledOut(bench, tag) ? '-' : '+')).join('')
}

test('what a document leaves open counts whether its signature is believed or not, and what it rules out does not', async () => {
  const documents: (readonly [string, Buffer])[] = [
    ['b', stated('not_affected', [component, part('b')], 1)],
    ['a', stated('affected', [component, part('b')], 2)],
    ['c', stated('fixed', [part('c')], 3)],
  ]
  expect(await outcome(documents)).toBe('++-')
  const bench = openVexBench((tag) => [imageOf(tag)])
  for (const [tag, content] of documents) bench.add(content, false, [tag])
  const [, a, c] = [...bench.documents.values()]
  if (a === undefined || c === undefined) throw new Error('no documents')
  for (const one of [a, c]) one.isDisbelieved = true
  await bench.make()
  expect(['a', 'b', 'c'].map((tag) => isRuledOut(bench, tag))).toEqual([false, false, false])
  c.isDisbelieved = false
  await bench.make()
  expect(isRuledOut(bench, 'c')).toBe(true)
  expect(bench.made().bytes.equals((await bench.fresh()).bytes)).toBe(true)
  Object.assign(a, { isDamaged: true })
  const known = await bench.make(true)
  expect(known).toMatchObject({ unread: 1 })
})

test('what rules out by a component stays out of the repository while the document of another tag says otherwise', async () => {
  const out = stated('not_affected', [component], 2)
  const cases: [string, readonly (readonly [string, Buffer])[], string][] = [
    ['alone', [['b', out]], '---'],
    [
      'affected, older',
      [
        ['b', out],
        ['a', stated('affected', [component], 1)],
      ],
      '+-+',
    ],
    [
      'affected, newer',
      [
        ['b', out],
        ['a', stated('affected', [component], 3)],
      ],
      '+-+',
    ],
    [
      'affected in its image',
      [
        ['b', out],
        ['a', stated('under_investigation', [part('a')], 1)],
      ],
      '+-+',
    ],
    [
      'affected as a whole',
      [
        ['b', out],
        ['a', stated('affected', [{ '@id': imageOf('a') }], 1)],
      ],
      '+-+',
    ],
    [
      'affected and taken back',
      [
        ['b', out],
        ['a', stated('affected', [part('a')], 1)],
        ['a', stated('fixed', [part('a')], 3)],
      ],
      '---',
    ],
    [
      'another version',
      [
        ['b', out],
        ['a', stated('affected', [{ '@id': 'pkg:deb/debian/zlib1g@1.3' }], 3)],
      ],
      '---',
    ],
    [
      'its own tag, newer',
      [
        ['b', out],
        ['b', stated('affected', [component], 3)],
      ],
      '+++',
    ],
    [
      'its own tag, as old',
      [
        ['b', out],
        ['b', stated('affected', [component], 2)],
      ],
      '+++',
    ],
    [
      'its own tag, older',
      [
        ['b', out],
        ['b', stated('affected', [component], 1)],
      ],
      '---',
    ],
    [
      'of no tag',
      [
        ['-', out],
        ['-', stated('affected', [component], 2)],
      ],
      '+++',
    ],
  ]
  for (const [name, documents, expected] of cases) expect([name, await outcome(documents)]).toEqual([name, expected])
})

test('a statement on an image applies to this image by its digest, and not to the whole where it names parts', async () => {
  const bare = imageOf('a').replace('pkg:oci/a@', 'pkg:oci/a@')
  const registry = `${bare}?repository_url=cr.example.com%2Fa`
  const cases: [string, Buffer, string][] = [
    ['with a registry', stated('fixed', [{ '@id': registry, subcomponents: [component] }], 1), '-++'],
    [
      'its parts beside the products',
      stated('fixed', [{ '@id': registry }], 1, { subcomponents: [{ '@id': 'pkg:deb/debian/curl@1' }] }),
      '+++',
    ],
    ['this part beside the products', stated('fixed', [{ '@id': registry }], 1, { subcomponents: [component] }), '-++'],
    ['no parts', stated('fixed', [{ '@id': registry, subcomponents: [] }], 1), '+++'],
    ['a whole', stated('fixed', [{ '@id': registry }], 1), '-++'],
  ]
  for (const [name, document, expected] of cases)
    expect([name, await outcome([['a', document]])]).toEqual([name, expected])
  const older: [string, Buffer] = ['a', stated('fixed', [part('a')], 1)]
  expect(await outcome([older, ['a', stated('affected', [component], 2)]])).toBe('+++')
  expect(await outcome([older, ['a', stated('affected', [component], 1)]])).toBe('+++')
  expect(await outcome([older, ['b', stated('affected', [component], 2)]])).toBe('-++')
})

test('a repository that follows changes of what is left out has the bytes of one that is made from the beginning', async () => {
  const bench = openVexBench((tag) => [imageOf(tag)])
  const out = bench.add(stated('not_affected', [component], 2), false, ['b'])
  bench.add(stated('fixed', [{ '@id': 'pkg:npm/else@1' }], 2), false, ['c'])
  const step = async (expected: string, work: () => unknown) => {
    work()
    await bench.make()
    expect(bench.made().bytes.equals((await bench.fresh()).bytes)).toBe(true)
    expect(['a', 'b', 'c'].map((tag) => (isRuledOut(bench, tag) ? '-' : '+')).join('')).toBe(expected)
  }
  await step('---', () => undefined)
  let open = ''
  await step('+-+', () => (open = bench.add(stated('affected', [part('a')], 1), false, ['a'])))
  bench.read.clear()
  await step('+--', () => bench.assign(out, ['b', 'c'])) // now also the document of c
  expect(bench.read.has(open)).toBe(false)
  await step('---', () => bench.documents.delete(open))
})

test('what rules out by a component stays out, but for the image of its tag, while VEX of another tag is not known', async () => {
  const bench = openVexBench((tag) => [imageOf(tag)])
  const seen = () => ['a', 'b', 'c'].map((tag) => (isRuledOut(bench, tag) ? '-' : '+')).join('')
  bench.add(stated('not_affected', [component], 2), false, ['b'])
  bench.add(stated('fixed', [part('c')], 2), false, ['c'])
  const own = bench.add(stated('affected', [part('a')], 1), true, ['a'])
  await bench.make()
  expect(seen()).toBe('+--')
  const damaged = bench.documents.get(own)
  if (damaged !== undefined) damaged.isDamaged = false
  await bench.make()
  expect(seen()).toBe('+--')
  bench.documents.delete(own)
  await bench.make()
  expect(seen()).toBe('---')
  bench.withoutVex.push('a')
  await bench.make()
  expect(seen()).toBe('+--')
  bench.withoutVex.pop()
  await bench.make()
  expect(seen()).toBe('---')
})
