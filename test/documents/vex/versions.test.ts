import { expect, test } from 'vitest'
import { digestOf, findingOf, imageOf, isRuledOut, openVexOf } from './fixtures.ts'

const NAME = 'pkg:oci/app?repository_url=r.example.com/app'
const IMAGE = `pkg:oci/app@${encodeURIComponent(digestOf('a'))}?repository_url=r.example.com/app`
const own = imageOf([IMAGE], { tag: 'own' })
const ZLIB = 'pkg:deb/debian/zlib1g@1.2'

const rulesOut = (content: unknown): boolean => isRuledOut([{ content, tags: ['other'] }], findingOf(ZLIB), own)

const hashed = (digit: string, more: object = {}) => ({ '@id': NAME, hashes: { 'sha-256': digit.repeat(64) }, ...more })

test('An image that is named without a digest and with a hash is the one of that hash alone', () => {
  expect(rulesOut(openVexOf([hashed('a')]))).toBe(true)
  expect(rulesOut(openVexOf([hashed('b')]))).toBe(false)
  expect(rulesOut(openVexOf([hashed('b', { subcomponents: [{ '@id': ZLIB }] })]))).toBe(false)
})

test('Another name of an image that a statement rules out is not that of a component elsewhere', () => {
  const other = `pkg:oci/other@${encodeURIComponent(digestOf('b'))}`
  expect(rulesOut(openVexOf([{ '@id': other, identifiers: { purl: ZLIB } }]))).toBe(false)
  expect(rulesOut(openVexOf([{ '@id': IMAGE, identifiers: { purl: ZLIB } }]))).toBe(true)
})

/** A CSAF document in which a branch names a version, and a package URL may name none. */
function csafOf(category: string, name: string, purl: string, group: string) {
  const product = { product_id: 'p', name: 'zlib1g', product_identification_helper: { purl } }
  const inner = { category: 'architecture', name: 'amd64', product }
  return {
    document: { csaf_version: '2.0', tracking: { current_release_date: '2026-01-09T00:00:00Z' } },
    product_tree: { branches: [{ category, name, branches: [inner] }] },
    vulnerabilities: [{ cve: 'CVE-1', product_status: { [group]: ['p'] } }],
  }
}

test.each(['known_not_affected', 'fixed'])(
  'What CSAF names as %s is so in the versions of its branch alone',
  (group) => {
    const plain = 'pkg:deb/debian/zlib1g'
    expect(rulesOut(csafOf('product_version', '1.2', plain, group))).toBe(true)
    expect(rulesOut(csafOf('product_version', '1.3', plain, group))).toBe(false)
    expect(rulesOut(csafOf('product_version_range', 'vers:deb/>=1.3', plain, group))).toBe(false)
    expect(rulesOut(csafOf('product_version_range', 'vers:deb/>=1.0', ZLIB, group))).toBe(true)
    expect(rulesOut(csafOf('product_name', 'zlib1g', plain, group))).toBe(true)
  },
)

test('What CSAF names as affected in a range of versions is open in each version', () => {
  const affected = csafOf('product_version_range', 'vers:deb/<1.3', 'pkg:deb/debian/zlib1g', 'known_affected')
  const out = { content: openVexOf([ZLIB]), tags: ['other'] }
  expect(isRuledOut([out], findingOf(ZLIB), own)).toBe(true)
  expect(isRuledOut([out, { content: affected, tags: ['own'] }], findingOf(ZLIB), own)).toBe(false)
})

test('by the name of an image alone its own tag rules out, and another tag does not', () => {
  const products = [{ '@id': NAME, subcomponents: [{ '@id': ZLIB }] }]
  const said = (tags: readonly string[]) => isRuledOut([{ content: openVexOf(products), tags }], findingOf(ZLIB), own)
  expect([['own'], ['own', 'other'], [], ['other']].map(said)).toEqual([true, true, true, false])
})

test('what a document of the tag leaves open in an image by a tag counts, for no other tag', () => {
  const part = (image: string) => [{ '@id': image, subcomponents: [{ '@id': ZLIB }] }]
  const open = openVexOf(part('pkg:oci/app@1.2?repository_url=r.example.com/app'), 'affected', 2)
  const said = (tags: readonly string[]) =>
    isRuledOut(
      [
        { content: openVexOf(part(IMAGE)), tags: ['own'] },
        { content: open, tags },
      ],
      findingOf(ZLIB),
      own,
    )
  expect([['own'], ['other']].map(said)).toEqual([false, true])
})
