import { expect, test } from 'vitest'
import { findingOf, imageOf, isRuledOut, openVexOf } from './fixtures.ts'

const SERIAL = '3e671687-395b-41f5-a30f-a58921a69b79'
const PURL = 'pkg:deb/debian/libgcrypt20@1.9.4-3%2Bb1?arch=amd64'
const IMAGE = `pkg:oci/app@sha256%3A${'a'.repeat(64)}`

function analysis(ref: string, more: object = {}): object {
  const vulnerability = { id: 'CVE-1', analysis: { state: 'not_affected' }, affects: [{ ref }] }
  return { bomFormat: 'CycloneDX', specVersion: '1.5', vulnerabilities: [vulnerability], ...more }
}

const ruledOut = (content: unknown, more = {}, image = imageOf([])): boolean =>
  isRuledOut([{ content }], findingOf(PURL, more), image)

test('a BOM-Link is followed to a package URL, percent-encoded as a whole or not, and to a component of its own document', () => {
  const components = [{ 'bom-ref': 'pkg/1 é', purl: PURL, name: 'libgcrypt20' }]
  const own = { components, serialNumber: `urn:uuid:${SERIAL.toUpperCase()}`, version: 1 }
  const escaped = encodeURIComponent('pkg/1 é')
  const cases: [object, boolean][] = [
    [analysis(`urn:cdx:${SERIAL}/1#${PURL}`), true],
    [analysis(`urn:cdx:${SERIAL}/1#${encodeURIComponent(PURL)}`), true],
    [analysis(`urn:cdx:${SERIAL}/1#${encodeURIComponent(PURL).toLowerCase()}`), true],
    [analysis(`urn:cdx:${SERIAL}/1#${encodeURIComponent('pkg:deb/debian/libgcrypt20@1.8')}`), false],
    [analysis(`urn:cdx:${SERIAL}/1#pkg/1 é`, own), true],
    [analysis(`urn:cdx:${SERIAL}/1#${escaped}`, own), true],
    [analysis(`urn:cdx:${SERIAL}/2#${escaped}`, own), false], // another version of the document
    [analysis(`urn:cdx:${SERIAL.replace('3', '4')}/1#${escaped}`, own), false],
    [analysis(`urn:cdx:${SERIAL}/1#other`, own), false],
    [analysis(`urn:cdx:${SERIAL}/1#%E0%A4%A`), false],
  ]
  for (const [document, expected] of cases)
    expect([JSON.stringify(document), ruledOut(document)]).toEqual([JSON.stringify(document), expected])
})

test('a BOM-Link by serial number is followed to a component of the SBOM that is judged', () => {
  const serial = { serial: SERIAL, version: '1' }
  const refs = ['c 1']
  const linked = analysis(`urn:cdx:${SERIAL}/1#c%201`)
  expect(ruledOut(linked, { refs }, imageOf([], { serial }))).toBe(true)
  expect(ruledOut(linked, { refs: ['c2'] }, imageOf([], { serial }))).toBe(false)
  expect(ruledOut(linked, { refs }, imageOf([], { serial: { ...serial, version: '2' } }))).toBe(false)
  expect(ruledOut(linked, { refs }, imageOf([]))).toBe(false)
})

test('A BOM-Link that has a package URL rules out in the SBOM that it names alone, and leaves open in any', () => {
  const link = `urn:cdx:${SERIAL}/1#${encodeURIComponent(PURL)}`
  const serial = { serial: SERIAL, version: '1' }
  const other = { serial: SERIAL.replace('3', '4'), version: '1' }
  expect(ruledOut(analysis(link), {}, imageOf([], { serial }))).toBe(true)
  expect(ruledOut(analysis(link), {}, imageOf([]))).toBe(true) // which SBOM it is cannot be compared
  expect(ruledOut(analysis(link), {}, imageOf([], { serial: other }))).toBe(false)
  const bomOf = (of: string, more = {}) => ({ bomFormat: 'CycloneDX', serialNumber: `urn:uuid:${of}`, ...more })
  const ofTag = (bom: object): boolean =>
    isRuledOut([{ content: analysis(link), tags: ['t1'] }], findingOf(PURL), imageOf([IMAGE], { tag: 't1' }), {
      t1: bom,
    })
  expect(ofTag(bomOf(SERIAL))).toBe(true)
  expect(ofTag(bomOf(other.serial))).toBe(false)
  const signed = { payload: Buffer.from(JSON.stringify({ predicate: bomOf(other.serial) })).toString('base64') }
  expect(ofTag(signed)).toBe(false) // an SBOM in an envelope is one as well
  expect(ofTag({ bomFormat: 'CycloneDX' })).toBe(true)
  // In the SBOM of this serial number it is a component of what that describes.
  expect(ofTag(bomOf(SERIAL, { metadata: { component: { purl: IMAGE } } }))).toBe(true)
  expect(ofTag(bomOf(SERIAL, { metadata: { component: { purl: 'pkg:oci/other@1' } } }))).toBe(false)
  const open = {
    ...analysis(link),
    vulnerabilities: [{ id: 'CVE-1', analysis: { state: 'exploitable' }, affects: [{ ref: link }] }],
  }
  const documents = [
    { content: openVexOf([PURL], 'not_affected', 1) },
    { content: { ...open, metadata: { timestamp: '2026-02-01T00:00:00Z' } }, tags: ['t1'] },
  ]
  expect(isRuledOut(documents, findingOf(PURL), imageOf([IMAGE], { serial: other, tag: 't1' }))).toBe(false)
})

test('a BOM-Link by serial number is followed to the SBOM of the tag whose document it is in, for its image alone', () => {
  const sbom = (component: object | null) => ({
    bomFormat: 'CycloneDX',
    serialNumber: `urn:uuid:${SERIAL}`,
    ...(component !== null && { metadata: { component } }),
    components: [{ 'bom-ref': 'c1', purl: PURL }],
  })
  const documents = [{ content: analysis(`urn:cdx:${SERIAL}/1#c1`), tags: ['t1'] }]
  const found = (component: object | null, subject: string) =>
    isRuledOut(documents, findingOf(PURL), imageOf([subject]), { t1: sbom(component) })
  expect(found(null, IMAGE)).toBe(true)
  expect(found({ purl: IMAGE }, IMAGE)).toBe(true)
  expect(found({ purl: IMAGE }, IMAGE.replaceAll('a'.repeat(64), 'b'.repeat(64)))).toBe(false)
  expect(isRuledOut(documents, findingOf(PURL), imageOf([IMAGE]))).toBe(false)
})

test('an empty list of subcomponents is not the whole product: it rules nothing out, and leaves the whole product open', () => {
  const old = (subcomponents: unknown) => ({
    '@context': 'openvex',
    timestamp: '2026-01-01T00:00:00Z',
    statements: [{ vulnerability: 'CVE-1', products: [IMAGE], subcomponents, status: 'fixed' }],
  })
  const image = imageOf([IMAGE])
  expect(ruledOut(openVexOf([{ '@id': IMAGE }]), {}, image)).toBe(true)
  expect(ruledOut(openVexOf([{ '@id': IMAGE, subcomponents: [] }]), {}, image)).toBe(false)
  expect(ruledOut(openVexOf([{ '@id': PURL, subcomponents: [] }]))).toBe(false)
  expect(ruledOut(old(undefined), {}, image)).toBe(true)
  expect(ruledOut(old([]), {}, image)).toBe(false)
  const open = openVexOf([{ '@id': IMAGE, subcomponents: [] }], 'affected', 2)
  const documents = [{ content: openVexOf([{ '@id': IMAGE }]) }, { content: open }]
  expect(isRuledOut(documents, findingOf(PURL), image)).toBe(false)
})

interface Csaf {
  readonly status?: object
  readonly relationships?: readonly object[]
  readonly cpe?: string
  readonly tracking?: object
}

function csafOf({ status = { known_not_affected: ['p'] }, relationships = [], cpe = '', tracking = {} }: Csaf) {
  const product = (id: string, helper: object) => ({ product_id: id, name: id, product_identification_helper: helper })
  const inner = { product: product('image', { purl: IMAGE }) }
  return {
    document: { csaf_version: '2.0', tracking: { current_release_date: '2026-01-02T00:00:00Z', ...tracking } },
    product_tree: {
      full_product_names: [product('p', { purl: PURL }), product('system', { cpe })],
      branches: [{ category: 'vendor', name: 'v', branches: [inner] }],
      relationships,
    },
    vulnerabilities: [{ cve: 'CVE-1', product_status: status }],
  }
}

test('CSAF is read by its products, their status, and what they are components of', () => {
  const related = (of: string, category = 'default_component_of') => [
    {
      category,
      product_reference: 'p',
      relates_to_product_reference: of,
      full_product_name: { name: 'both', product_id: 'both' },
    },
  ]
  const both = { known_not_affected: ['both'] }
  const system = { status: both, relationships: related('system', 'installed_on') }
  const part = { status: both, relationships: related('image') }
  const cases: [Csaf, readonly string[], boolean][] = [
    [{}, [], true],
    [{ status: { fixed: ['p'] } }, [], true],
    [{ tracking: { status: 'interim' } }, [], true],
    [{ tracking: { status: 'draft' } }, [], false],
    [{ status: { first_fixed: ['p'] } }, [], true],
    [{ status: { known_affected: ['p'] } }, [], false],
    [{ status: { under_investigation: ['p'] } }, [], false],
    [{ status: { recommended: ['p'] } }, [], false],
    [{ status: { known_not_affected: ['p'], known_affected: ['p'] } }, [], false],
    [{ status: { known_not_affected: ['unheard of'] } }, [], false],
    [{ status: { known_not_affected: ['image'] } }, [IMAGE], true],
    [part, [IMAGE], true],
    [part, [IMAGE.replaceAll('a'.repeat(64), 'b'.repeat(64))], false],
    [part, [], false],
    [{ ...system, cpe: 'cpe:/o:redhat:enterprise_linux:9::baseos' }, [], true],
    [{ ...system, cpe: 'cpe:/a:redhat:enterprise_linux:9::appstream' }, [], true], // a part of the operating system
    [{ ...system, cpe: 'cpe:2.3:a:redhat:enterprise_linux:9:*:appstream:*:*:*:*:*' }, [], true],
    [{ ...system, cpe: 'cpe:/a:redhat:rhel_eus:9.2::appstream' }, [], true],
    [{ ...system, cpe: 'cpe:/a:redhat:rhel_eus_long_life:6.7' }, [], true],
    [{ ...system, cpe: 'cpe:/a:redhat:enterprise_linux_ai:9' }, [], false],
    [{ ...system, cpe: 'cpe:/a:example:enterprise_linux:9' }, [], false],
    [{ ...system, cpe: 'cpe:/a:redhat:openshift:4' }, [], false], // which product that is is not known
    [{ ...system, status: { known_affected: ['both'] } }, [], false],
  ]
  for (const [csaf, subjects, expected] of cases)
    expect([csaf, ruledOut(csafOf(csaf), {}, imageOf(subjects))]).toEqual([csaf, expected])
  const open = { content: csafOf({ ...system, status: { known_affected: ['both'] } }) }
  const before = { content: openVexOf([{ '@id': PURL }]) }
  expect(isRuledOut([before, open], findingOf(PURL), imageOf([]))).toBe(false)
  expect(isRuledOut([before], findingOf(PURL), imageOf([]))).toBe(true)
  const draft = { content: csafOf({ tracking: { status: 'draft' }, status: { known_affected: ['p'] } }) }
  expect(isRuledOut([before, draft], findingOf(PURL), imageOf([]))).toBe(false)
})
