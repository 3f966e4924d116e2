import { expect, test } from 'vitest'
import { readStatements } from '../../../src/documents/vex/statements.ts'
import { readOpenVex } from '../../../src/features/scanners/views/vex/openvex.ts'

const dayOf = (day: number): string => `2026-01-0${day}T00:00:00Z`

/** The day by which the only statement of a document counts; 0: it has no date. */
function counted(document: object): number {
  const statements = readStatements(Buffer.from(JSON.stringify(document))) ?? []
  return Number(statements[0]?.at.slice(8, 10))
}

interface Dates {
  readonly timestamp?: string
  readonly last_updated?: string
}

function openVex(document: Dates, own: Dates): object {
  const statement = { vulnerability: { name: 'CVE-1' }, status: 'fixed', products: [{ '@id': 'pkg:npm/a@1' }], ...own }
  return { '@context': 'https://openvex.dev/ns/v0.2.0', ...document, statements: [statement] }
}

const OPENVEX: readonly (readonly [document: Dates, own: Dates, day: number])[] = [
  [{ timestamp: dayOf(1) }, {}, 1],
  [{ timestamp: dayOf(1), last_updated: dayOf(3) }, {}, 3],
  [{ timestamp: dayOf(1), last_updated: dayOf(3) }, { timestamp: dayOf(2) }, 2],
  [{ timestamp: dayOf(1), last_updated: dayOf(3) }, { timestamp: dayOf(2), last_updated: dayOf(4) }, 4],
  [{ timestamp: dayOf(5) }, { last_updated: dayOf(2) }, 2],
  [{ timestamp: dayOf(1) }, { timestamp: 'once' }, 1],
  [{ last_updated: dayOf(3) }, {}, 3],
  [{}, {}, 0],
]

test.each(OPENVEX)('A statement of OpenVEX counts by its most precise date: %j %j', (document, own, day) => {
  const content = openVex(document, own)
  expect(counted(content)).toBe(day)
  const read = readOpenVex(Buffer.from(JSON.stringify(content)))
  const written = read?.statements[0]?.timestamp ?? read?.timestamp
  expect(day === 0 ? '' : written).toBe(day === 0 ? '' : dayOf(day))
})

test('An analysis of CycloneDX counts by its own dates, then those of the vulnerability and the document', () => {
  const of = (analysis: object, vulnerability: object = {}): number => {
    const one = { id: 'CVE-1', ...vulnerability, analysis: { state: 'not_affected', ...analysis } }
    return counted({ bomFormat: 'CycloneDX', metadata: { timestamp: dayOf(1) }, vulnerabilities: [one] })
  }
  expect(of({ firstIssued: dayOf(3), lastUpdated: dayOf(4) }, { updated: dayOf(2) })).toBe(4)
  expect(of({ firstIssued: dayOf(3) }, { updated: dayOf(5) })).toBe(3)
  expect(of({ lastUpdated: 'soon' }, { updated: dayOf(2) })).toBe(2)
  expect(of({})).toBe(1)
})

test('A statement of CSAF counts by the current release of its document, else by the first one', () => {
  const of = (tracking: object): number => {
    const product = { product_id: 'p', name: 'p', product_identification_helper: { purl: 'pkg:npm/a@1' } }
    const vulnerabilities = [{ cve: 'CVE-1', product_status: { fixed: ['p'] } }]
    const tree = { full_product_names: [product] }
    return counted({ document: { csaf_version: '2.0', tracking }, product_tree: tree, vulnerabilities })
  }
  expect(of({ current_release_date: dayOf(3), initial_release_date: dayOf(1) })).toBe(3)
  expect(of({ initial_release_date: dayOf(1) })).toBe(1)
})

test('A VEX repository names a vulnerability by its id, where a document names it by a URL', () => {
  const url = 'https://nvd.nist.gov/vuln/detail/CVE-2024-1'
  const nameIn = (vulnerability: unknown): unknown => {
    const statement = { vulnerability, status: 'fixed', products: [{ '@id': 'pkg:npm/a@1' }] }
    const content = { '@context': 'https://openvex.dev/ns/v0.2.0', statements: [statement] }
    return readOpenVex(Buffer.from(JSON.stringify(content)))?.statements[0]?.['vulnerability']
  }
  expect(nameIn({ '@id': url })).toEqual({ '@id': url, name: 'CVE-2024-1' })
  expect(nameIn({ name: ` ${url}` })).toEqual({ name: 'CVE-2024-1' })
  expect(nameIn(url)).toEqual({ name: 'CVE-2024-1' })
  expect(nameIn({ '@id': url, name: 'CVE-2024-1' })).toEqual({ '@id': url, name: 'CVE-2024-1' })
})
