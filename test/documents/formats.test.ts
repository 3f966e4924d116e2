import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { readProvenance as readProvenances } from '../../src/features/pages/documents/provenance.ts'
import { readSboms } from '../../src/documents/sboms/read.ts'
import { readStatements, readVexDocuments } from '../../src/documents/vex/statements.ts'
import { describeAffected } from '../../src/features/lookup/reads/affected.ts'
import { longTest, test } from '../support/tables.ts'

const REAL_VEX = '../shared/data/vex'

const bytesOf = (value: unknown): Buffer => Buffer.from(JSON.stringify(value))
const readSbom = (value: unknown) => readSboms(bytesOf(value))[0]
const readProvenance = (value: unknown) => readProvenances(bytesOf(value))
const OPENVEX = { '@context': 'https://openvex.dev/ns/v0.2.0' }

/** The first VEX document of a value, with its statements in its own words. */
function readVex(value: unknown) {
  const [first] = readVexDocuments(bytesOf(value))
  return first === undefined ? null : { ...first, statements: first.statements.map((_, at) => first.wordsAt(at, 5)) }
}

const envelope = (predicate: object, predicateType: string, more: object = {}) => ({
  payloadType: 'application/vnd.in-toto+json',
  payload: Buffer.from(
    JSON.stringify({ _type: 'https://in-toto.io/Statement/v1', predicateType, predicate, ...more }),
  ).toString('base64'),
})

const CYCLONEDX = {
  bomFormat: 'CycloneDX',
  specVersion: '1.5',
  metadata: { component: { name: 'image', version: '1' }, timestamp: '2026-01-01T00:00:00Z' },
  components: [
    {
      type: 'library',
      group: 'org.a',
      name: 'core',
      version: '2',
      purl: 'pkg:maven/org.a/core@2',
      licenses: [{ license: { id: 'MIT' } }, { expression: 'A OR B' }],
      components: [{ name: 'inner' }],
    },
  ],
}

test('an SBOM is read in CycloneDX with its nested components, bare, in an envelope and in a list', () => {
  const bundle = { dsseEnvelope: envelope(CYCLONEDX, 'https://cyclonedx.org/bom') }
  for (const value of [CYCLONEDX, bundle, [bundle]]) {
    const found = readSbom(value)
    expect(found).toMatchObject({ format: 'CycloneDX 1.5', name: 'image', version: '1' })
    expect(found.components).toHaveLength(2)
    expect(found.components[0]).toMatchObject({
      name: 'org.a/core',
      version: '2',
      type: 'library',
      purl: 'pkg:maven/org.a/core@2',
      licences: 'MIT, A OR B',
    })
  }
})

test('an SBOM is read in SPDX 2 and 3', () => {
  const purl = { referenceType: 'purl', referenceLocator: 'pkg:deb/debian/tar@1' }
  const packages = [
    { name: 'tar', versionInfo: '1', licenseConcluded: 'NOASSERTION', licenseDeclared: 'GPL-3.0' },
    { name: 'zlib', externalRefs: [{ referenceType: 'cpe22Type' }, purl] },
  ]
  const spdx2 = readSbom({ spdxVersion: 'SPDX-2.3', name: 'image', packages })
  expect(spdx2).toMatchObject({ format: 'SPDX 2.3', name: 'image' })
  expect(spdx2.components).toHaveLength(2)
  expect(spdx2.components[0]?.licences).toBe('GPL-3.0')
  expect(spdx2.components[1]?.purl).toBe('pkg:deb/debian/tar@1')
  const graph = [
    { type: 'CreationInfo', specVersion: '3.0.1' },
    { type: 'software_Package', name: 'tar', software_packageVersion: '1' },
  ]
  expect(readSbom({ '@graph': graph })).toMatchObject({ format: 'SPDX 3.0.1', components: [{ name: 'tar' }] })
})

test('VEX statements are read in OpenVEX, CycloneDX and CSAF', () => {
  const open = readVex({
    ...OPENVEX,
    author: 'A',
    statements: [
      { vulnerability: { name: 'CVE-1' }, status: 'fixed', products: [{ '@id': 'pkg:a/b' }] },
      { vulnerability: 'CVE-2', status: 'not_affected', justification: 'no', products: ['x'] },
    ],
  })
  expect(open?.statements.map(({ vulnerability, products }) => [vulnerability, ...products])).toEqual([
    ['CVE-1', 'pkg:a/b'],
    ['CVE-2', 'x'],
  ])
  const affects = Array.from({ length: 9 }, (_, at) => ({ ref: `r${at}` }))
  const cyclone = readVex({
    bomFormat: 'CycloneDX',
    vulnerabilities: [{ id: 'CVE-3', analysis: { state: 'exploitable', detail: 'd' }, affects }],
  })
  expect(cyclone?.statements[0]).toMatchObject({
    status: 'exploitable',
    note: 'd',
    productCount: 9,
  })
  const csaf = readVex({
    document: { csaf_version: '2.0', publisher: { name: 'P' } },
    vulnerabilities: [{ cve: 'CVE-4', product_status: { known_affected: ['a'], fixed: ['b'], recommended: [] } }],
  })
  expect(csaf?.statements.map(({ status }) => status)).toEqual(['affected', 'fixed'])
})

test('products of CSAF are named by its product tree, and each statement has its own reason and remedy', () => {
  const product = (id: string, name?: string) => ({
    product: { product_id: id, name, product_identification_helper: { purl: `pkg:rpm/${id}` } },
  })
  const tree = {
    full_product_names: [{ product_id: 'os', name: 'Example OS 9' }],
    branches: [{ name: 'Vendor', branches: [{ branches: [product('tar', 'tar 1.34'), product('gzip')] }] }, 7],
    relationships: [
      {
        product_reference: 'tar',
        relates_to_product_reference: 'os',
        full_product_name: { product_id: 'os:tar', name: 'tar of Example OS 9' },
      },
      { product_reference: 'gzip', relates_to_product_reference: 'os', full_product_name: { product_id: 'os:gzip' } },
    ],
    product_groups: [{ group_id: 'all', product_ids: ['os:tar', 'os:gzip', 'gone'] }],
  }
  const entry = {
    ids: [{ system_name: 'Tracker', text: 'T-1' }],
    product_status: { known_not_affected: ['os:tar', 'os:gzip'], known_affected: ['tar'], fixed: [] },
    flags: [{ label: 'component_not_present', product_ids: ['os:gzip'] }],
    threats: [{ category: 'impact', details: 'not built in', product_ids: ['os:tar'] }],
    remediations: [{ category: 'no_fix_planned', details: 'old', product_ids: ['tar'], group_ids: ['all'] }],
  }
  const document = { csaf_version: '2.0' }
  const read = readVex({ document, product_tree: tree, vulnerabilities: [entry] })
  const rows = read?.statements.map(({ vulnerability, status, justification, note, products }) => [
    vulnerability,
    status,
    justification,
    note,
    ...products,
  ])
  expect(rows).toEqual([
    ['T-1', 'not_affected', '', 'not built in', 'tar of Example OS 9'],
    ['T-1', 'not_affected', 'component_not_present', '', 'pkg:rpm/gzip as a component of Example OS 9'],
    ['T-1', 'affected', '', 'no_fix_planned: old', 'tar 1.34'],
    ['T-1', 'not stated', '', 'no_fix_planned: old', 'gone'],
  ])
})

test.skipIf(!existsSync(REAL_VEX))('real CSAF documents have statements on named products', () => {
  const names = readdirSync(REAL_VEX).filter((name) => name.endsWith('.csaf.json'))
  for (const name of names) {
    const read = readVex(JSON.parse(readFileSync(join(REAL_VEX, name), 'utf8')))
    expect([name, read?.statements.length]).not.toEqual([name, 0])
    expect(read?.statements[0]?.products[0]).toContain(' as a component of Red Hat ')
  }
})

test('provenance is read from SLSA 0.2 and 1, whatever contains the statement', () => {
  const old = envelope(
    {
      builder: { id: 'https://b' },
      invocation: { configSource: { uri: 'git+https://s', digest: { sha1: 'ab' } } },
      materials: [{ uri: 'pkg:a', digest: { sha256: 'cd' } }],
    },
    'https://slsa.dev/provenance/v0.2',
    { subject: [{ name: 'image', digest: { sha256: 'ef' } }] },
  )
  expect(readProvenance({ provenance_summary: { provenance: [{ envelope: old }] } })).toMatchObject([
    {
      builder: 'https://b',
      sources: [{ uri: 'git+https://s', digest: 'sha1:ab' }],
      materials: [{ uri: 'pkg:a', digest: 'sha256:cd' }],
      subjects: [{ uri: 'image', digest: 'sha256:ef' }],
    },
  ])
  const predicate = {
    buildDefinition: { buildType: 't', externalParameters: { workflow: { repository: 'https://r', ref: 'main' } } },
    runDetails: { builder: { id: 'https://c' }, metadata: { invocationId: 'i' } },
  }
  const attestations = [{ bundle: { dsseEnvelope: envelope(predicate, 'v1') } }]
  expect(readProvenance({ attestations })).toMatchObject([
    { builder: 'https://c', sources: [{ uri: 'https://r main' }], invocation: 'i' },
  ])
})

test('documents of any other shape are refused without a fault', () => {
  let deep: unknown = CYCLONEDX
  for (let at = 0; at < 50; at++) deep = { bundle: [deep] }
  const shapes = [null, 7, 'x', [], {}, { statements: 7 }, { ...OPENVEX, statements: 7 }, { bomFormat: 'x' }, deep]
  for (const value of shapes) {
    expect(() => readSbom(value)).toThrow(/the SBOM cannot be read: it is none/)
    expect(readVex(value)).toBeNull()
    expect(readProvenance(value)).toEqual([])
  }
  const torn = { payload: '%%' }
  expect(() => readVex(torn)).toThrow('the VEX document cannot be read: it is empty')
  expect(readProvenance(torn)).toEqual([])
  const malformed = { bomFormat: 'CycloneDX', specVersion: '1.5', vulnerabilities: 'x', metadata: [] }
  expect(readVex(malformed)?.statements).toEqual([])
})

test('of several VEX documents in one file all statements are read, each in its own place', () => {
  const named = (name: string) => ({ vulnerability: { name }, status: 'fixed', products: [{ '@id': 'pkg:npm/a@1' }] })
  const file = [
    { ...OPENVEX, statements: [named('CVE-1'), 7, named('CVE-2')] },
    envelope({ ...OPENVEX, statements: [named('CVE-3')] }, 'x'),
  ]
  const lines = Buffer.from(file.map((one) => JSON.stringify(one)).join('\n'))
  for (const bytes of [bytesOf(file), lines])
    expect(readStatements(bytes)?.map(({ vulnerabilities, place }) => [...vulnerabilities, place])).toEqual([
      ['CVE-1', 0],
      ['CVE-2', 2],
      ['CVE-3', 3],
    ])
})

test('names of members that every object has, and values that are no text, are data like any other', () => {
  const csaf = (status: string) => ({
    document: { csaf_version: '2.0' },
    vulnerabilities: [{ cve: 'CVE-1', product_status: JSON.parse(`{"${status}": ["a"]}`) as unknown }],
  })
  for (const status of ['constructor', 'toString', '__proto__'])
    expect(readVex(csaf(status))).toMatchObject({ statements: [] })
  const sbom = readSbom({ ...CYCLONEDX, components: [{ name: [[]], version: { toString: 1 } }] })
  expect(sbom.components[0]).toMatchObject({ name: '', version: '' })
  const deep = JSON.parse('['.repeat(100_000) + ']'.repeat(100_000)) as unknown
  const events = [{ constructor: 'x', introduced: { toString: 1, valueOf: 1 } }]
  expect(describeAffected({ ranges: [{ events }], versions: [{ toString: 1 }, deep] })).toMatchObject({
    affected: ['from {"toString":1,"valueOf":1}', 'versions {"toString":1}, …'],
  })
})

longTest('an envelope with more values than a document may have is not read', () => {
  const enveloped = (count: number) => {
    const payload = `{"_type":"https://in-toto.io/Statement/v1","predicate":[${'0,'.repeat(count)}0]}`
    return { payload: Buffer.from(payload).toString('base64') }
  }
  expect(readProvenance(enveloped(10))).toHaveLength(1)
  expect(readProvenance(enveloped(2_000_000))).toEqual([])
})
