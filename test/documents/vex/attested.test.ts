import { expect, test } from 'vitest'
import { imageNames } from '../../../src/documents/vex/images.ts'
import { statementsAbout } from '../../../src/features/scanners/vex/image-statements.ts'
import { readStatements } from '../../../src/documents/vex/statements.ts'
import { attestedOf, catalogOf, digestOf, findingOf, imageOf, isRuledOut, openVexOf } from './fixtures.ts'

const ZLIB = 'pkg:deb/debian/zlib1g@1.2'
const A = digestOf('a')
const B = digestOf('b')
const purlOf = (digest: string): string => `pkg:oci/app@${encodeURIComponent(digest)}`

/** What a statement may name to be about the component in an image. */
const PRODUCTS: readonly unknown[] = [
  ZLIB,
  'pkg:oci/app',
  { '@id': 'pkg:oci/app', subcomponents: [{ '@id': ZLIB }] },
  { '@id': purlOf(A), subcomponents: [{ '@id': ZLIB }] },
]

test.each(PRODUCTS)(
  'What an attestation rules out counts for the digest that it is about, and for no other: %j',
  (product) => {
    const ruledOut = (digest: string, image: ReturnType<typeof imageOf>, tags: readonly string[]): boolean =>
      isRuledOut([{ content: attestedOf(digest, openVexOf([product])), tags }], findingOf(ZLIB), image)
    const own = imageOf([purlOf(A)], { tag: 'a' })
    expect(ruledOut(A, own, ['a'])).toBe(true)
    expect(ruledOut(A, own, ['b'])).toBe(true)
    for (const tags of [['a'], ['b'], []]) expect(ruledOut(B, own, tags)).toBe(false)
    // Several subjects: which of them a component belongs to is not known.
    expect(ruledOut(A, imageOf([purlOf(A), purlOf(B)], { tag: 'a' }), ['a'])).toBe(false)
  },
)

test('What an attestation leaves open counts wherever it did, whatever the attestation is about', () => {
  const out = { content: openVexOf([ZLIB], 'not_affected', 1), tags: ['a'] }
  const open = { content: attestedOf(B, openVexOf([ZLIB], 'affected', 2)), tags: ['a'] }
  expect(isRuledOut([out, open], findingOf(ZLIB), imageOf([purlOf(A)], { tag: 'a' }))).toBe(false)
})

test('An attestation rules out by a component where no digest of the image is known, for its own tag alone', () => {
  const document = { content: attestedOf(B, openVexOf([ZLIB])), tags: ['a'] }
  expect(isRuledOut([document], findingOf(ZLIB), imageOf(['pkg:oci/app'], { tag: 'a' }))).toBe(true)
  expect(isRuledOut([document], findingOf(ZLIB), imageOf(['pkg:oci/app'], { tag: 'c' }))).toBe(false)
  expect(isRuledOut([document], findingOf(ZLIB), imageOf(['pkg:oci/app']))).toBe(false)
})

test('An attestation about an index counts for the platforms that the catalog lists of it, and one about a platform for that alone', () => {
  const arm = digestOf('2')
  const catalog = catalogOf({ id: 't1', digest: B, platforms: [{ digest: A, arch: 'amd64' }, { digest: arm }] })
  const ruledOut = (about: string, platform: string): boolean => {
    const images = imageNames(catalog, [purlOf(platform)], { tag: 't1', isUnsure: false })
    const image = imageOf([purlOf(platform)], { tag: 't1', images })
    return isRuledOut([{ content: attestedOf(about, openVexOf([ZLIB])), tags: ['t1'] }], findingOf(ZLIB), image)
  }
  expect([ruledOut(B, A), ruledOut(B, arm), ruledOut(A, A), ruledOut(A, arm), ruledOut(A, B)]).toEqual([
    true,
    true,
    true,
    false,
    false,
  ])
})

test('The digest that the catalog lists of a tag is no name for what rules out while the signed SBOM of the tag is not about it', () => {
  const catalog = catalogOf({ id: 't1', digest: B })
  const ruledOut = (isUnsure: boolean): boolean => {
    const images = imageNames(catalog, [purlOf(A)], { tag: 't1', isUnsure })
    const image = imageOf([purlOf(A)], { tag: 't1', images })
    return isRuledOut([{ content: attestedOf(B, openVexOf([purlOf(B)])), tags: ['t2'] }], findingOf(ZLIB), image)
  }
  expect([ruledOut(false), ruledOut(true)]).toEqual([true, false])
})

test('The VEX of a digest has what an attestation rules out of it, of its index, or of its platform alone', () => {
  const arm = digestOf('2')
  const images = [
    { digest: B, arch: '', isPlatform: false },
    { digest: A, arch: 'amd64', isPlatform: true },
    { digest: arm, arch: 'arm64', isPlatform: true },
  ]
  const found = (asked: string, about: string): string[] => {
    const content = Buffer.from(JSON.stringify(attestedOf(about, openVexOf([ZLIB, purlOf(about)]))))
    const document = { digest: 'x', size: 1, changed: 1, tags: ['t1'] }
    const image = { digest: asked, tags: [{ id: 't1', repository: 'app', images }] }
    const said = statementsAbout(image, [[document, readStatements(content) ?? []]], Date.parse('2026-07-01'))
    return said.map(({ digest, part }) => `${digest.slice(7, 8)} ${part ?? ''}`.trim())
  }
  expect(found(A, A)).toEqual([`a ${ZLIB}`, 'a'])
  expect(found(A, B)).toEqual([`a ${ZLIB}`, 'a'])
  expect(found(B, A)).toEqual(['a'])
  expect(found(arm, A)).toEqual([])
})
