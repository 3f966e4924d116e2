import { expect, test } from 'vitest'
import { statedId } from '../../../src/documents/vex/apply.ts'
import { findingOf, imageOf, isRuledOut, openVexOf } from './fixtures.ts'

const FORMS: readonly (readonly [stated: string, id: string])[] = [
  ['CVE-2024-1234', 'cve-2024-1234'],
  [' cve-2024-1234\n', 'cve-2024-1234'],
  ['https://nvd.nist.gov/vuln/detail/CVE-2024-1234', 'cve-2024-1234'],
  ['https://nvd.nist.gov/vuln/detail/CVE-2024-1234/', 'cve-2024-1234'],
  ['https://nvd.nist.gov/vuln/detail/CVE-2024-1234#match-1', 'cve-2024-1234'],
  ['https://www.cve.org/CVERecord?id=CVE-2024-1234', 'cve-2024-1234'],
  ['https://cve.mitre.org/cgi-bin/cvename.cgi?name=CVE-2024-1234', 'cve-2024-1234'],
  ['https://osv.dev/vulnerability/CVE-2024-1234', 'cve-2024-1234'],
  ['https://api.osv.dev/v1/vulns/CVE-2024-1234', 'cve-2024-1234'],
  ['https://security-tracker.debian.org/tracker/CVE-2024-1234', 'cve-2024-1234'],
  ['HTTPS://GITHUB.COM/advisories/GHSA-XXXX-yyyy-2222', 'ghsa-xxxx-yyyy-2222'],
  ['https://github.com/acme/app/security/advisories/GHSA-xxxx-yyyy-2222?x=1', 'ghsa-xxxx-yyyy-2222'],
  ['https://pkg.go.dev/vuln/GO-2024-1234', 'go-2024-1234'],
  ['https://rustsec.org/advisories/RUSTSEC-2024-0001.html', 'rustsec-2024-0001'],
  ['https://access.redhat.com/errata/RHSA-2024:1234', 'rhsa-2024:1234'],
  // No id is in these.
  ['https://example.com/advisories', 'https://example.com/advisories'],
  ['https://example.com/advisories/2024', 'https://example.com/advisories/2024'],
  ['https://example.com/%E0%A4%A', 'https://example.com/%e0%a4%a'],
  ['https://', 'https://'],
]

test.each(FORMS)('The id of a vulnerability is read from %j', (stated, id) => {
  expect(statedId(stated)).toBe(id)
})

const PURL = 'pkg:npm/left@1'
const URL_OF_1 = 'https://nvd.nist.gov/vuln/detail/CVE-1'

test('A statement names its vulnerability by a URL, in each format', () => {
  const open = { '@context': 'https://openvex.dev/ns/v0.2.0', timestamp: '2026-01-02T00:00:00Z' }
  const statement = { status: 'not_affected', products: [PURL] }
  const analysis = { state: 'not_affected' }
  const affects = [{ ref: PURL }]
  const documents: readonly object[] = [
    { ...open, statements: [{ ...statement, vulnerability: { '@id': URL_OF_1, name: 'other' } }] },
    { ...open, statements: [{ ...statement, vulnerability: { '@id': URL_OF_1 } }] },
    { ...open, statements: [{ ...statement, vulnerability: URL_OF_1 }] },
    { ...open, statements: [{ ...statement, vulnerability: { name: ' cve-1 ' } }] },
    { bomFormat: 'CycloneDX', vulnerabilities: [{ id: URL_OF_1, analysis, affects }] },
    { bomFormat: 'CycloneDX', vulnerabilities: [{ source: { name: 'NVD', url: URL_OF_1 }, analysis, affects }] },
    {
      bomFormat: 'CycloneDX',
      vulnerabilities: [{ id: 'X', references: [{ id: '', source: { url: URL_OF_1 } }], analysis, affects }],
    },
  ]
  for (const content of documents)
    expect([content, isRuledOut([{ content }], findingOf(PURL), imageOf([]))]).toEqual([content, true])
  const left = { ...open, statements: [{ ...statement, status: 'affected', vulnerability: { '@id': URL_OF_1 } }] }
  const out = { content: openVexOf([PURL], 'not_affected', 1), tags: ['a'] }
  expect(isRuledOut([out, { content: left, tags: ['a'] }], findingOf(PURL), imageOf([], { tag: 'a' }))).toBe(false)
})
