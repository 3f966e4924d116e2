import { expect, test } from 'vitest'
import { digestOf, findingOf, imageOf, isRuledOut, openVexOf } from './fixtures.ts'

const ZLIB = 'pkg:deb/debian/zlib1g@1.2?arch=amd64'
const IMAGE = `pkg:oci/a@${encodeURIComponent(digestOf('a'))}`
const OTHER = `pkg:oci/b@${encodeURIComponent(digestOf('b'))}`
const CPE = { '@id': 'cpe:2.3:a:zlib:zlib:1.2:*:*:*:*:*:*:*' }

const openVex = (...subcomponents: readonly object[]) => openVexOf([{ '@id': IMAGE, subcomponents }], 'affected', 3)

const product = (id: string, purl?: string) => ({
  product_id: id,
  name: id,
  ...(purl !== undefined && { product_identification_helper: { purl } }),
})

const partOf = (part: string, of: string) => ({
  product_reference: part,
  relates_to_product_reference: of,
  full_product_name: { product_id: `${of}:${part}`, name: part },
})

/** The product `image` is named by a package URL three branches deep, `cpe` by none. */
function csaf(...known_affected: readonly string[]): object {
  const branches = [{ branches: [{ branches: [{ product: product('image', IMAGE) }] }] }]
  const full_product_names = [product('cpe'), product('module'), product('zlib', ZLIB), product('other', OTHER)]
  const relationships = [partOf('cpe', 'image'), partOf('zlib', 'module'), partOf('module:zlib', 'image')]
  return {
    document: { csaf_version: '2.0', tracking: { current_release_date: '2026-01-03T00:00:00Z' } },
    product_tree: { branches, full_product_names, relationships },
    vulnerabilities: [{ cve: 'CVE-1', product_status: { known_affected } }],
  }
}

function cycloneDx(ref: string): object {
  return {
    bomFormat: 'CycloneDX',
    metadata: { timestamp: '2026-01-03T00:00:00Z', component: { name: 'a', purl: IMAGE } },
    components: [{ 'bom-ref': 'plain', name: 'zlib1g', version: '1.2' }],
    vulnerabilities: [{ id: 'CVE-1', analysis: { state: 'exploitable' }, affects: [{ ref }] }],
  }
}

test.each([
  ['OpenVEX, a part by CPE', openVex(CPE), false],
  ['OpenVEX, one part of two by CPE', openVex({ '@id': 'pkg:deb/debian/q@1' }, CPE), false],
  ['OpenVEX, another part', openVex({ '@id': 'pkg:deb/debian/q@1' }), true],
  ['CSAF, a part without a package URL', csaf('image:cpe'), false],
  ['CSAF, a part of a part', csaf('image:module:zlib'), false],
  ['CSAF, a product without a package URL beside another image', csaf('cpe', 'other'), false],
  ['CSAF, a product that the tree does not have', csaf('none', 'other'), false],
  ['CSAF, another image', csaf('other'), true],
  ['CycloneDX, a part without a package URL', cycloneDx('plain'), false],
  ['CycloneDX, a part that the document does not have', cycloneDx('none'), false],
])(
  'a part that no package URL names may be the one that is found, where it is affected: %s',
  (_name, content, expected) => {
    const image = imageOf([IMAGE], { tag: 'a' })
    const out = { content: openVexOf([{ '@id': IMAGE }], 'not_affected', 1), tags: ['a'] }
    expect(isRuledOut([out], findingOf(ZLIB), image)).toBe(true)
    expect(isRuledOut([out, { content, tags: ['a'] }], findingOf(ZLIB), image)).toBe(expected)
  },
)

test('a part that is named stays affected beside one that is not, where the SBOM does not say what it describes', () => {
  const out = { content: openVexOf([{ '@id': ZLIB }], 'not_affected', 1), tags: ['a'] }
  const affected = (...subcomponents: readonly object[]) => ({
    content: openVexOf([{ '@id': 'pkg:generic/app@1', subcomponents }], 'affected', 3),
    tags: ['b'],
  })
  const unknown = imageOf([])
  expect(isRuledOut([out], findingOf(ZLIB), unknown)).toBe(true)
  expect(isRuledOut([out, affected({ '@id': ZLIB })], findingOf(ZLIB), unknown)).toBe(false)
  expect(isRuledOut([out, affected({ '@id': ZLIB }, CPE)], findingOf(ZLIB), unknown)).toBe(false)
})
