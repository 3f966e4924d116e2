import { severityOf } from '../../../src/documents/records/severity.ts'
import { expect, test } from 'vitest'
import type { MatchFinding, MatchedComponent } from '../../../src/features/match/judging/finding.ts'
import type { MatchResult } from '../../../src/features/match/result.ts'
import { gapsOf } from '../../../src/features/match/gaps.ts'
import { sarifReport } from '../../../src/features/match/sarif.ts'
import { vulnerabilityReport } from '../../../src/features/match/vdr.ts'
import type { VexReason } from '../../../src/documents/vex/apply.ts'

const VECTOR = 'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:H'

function finding(id: string, component: MatchedComponent, fixed: readonly string[]): MatchFinding {
  return {
    id,
    aliases: ['CVE-1'],
    upstream: [],
    summary: 'One',
    modified: null,
    component,
    fixed,
    source: null,
    ecosystems: ['npm'],
    patches: [],
    patchCount: 0,
    severity: {
      level: 'high',
      word: null,
      scoreLevel: 'high',
      score: 7.5,
      stated: [{ type: 'CVSS_V3', score: VECTOR }],
    },
  }
}

const A: MatchedComponent = {
  name: 'a',
  version: '1',
  purl: 'pkg:npm/a@1',
  refs: ['a'],
  refCount: 1,
  release: null,
  sourcePackage: null,
  allReleases: false,
  recordsOf: null,
  binaryNameOnly: false,
}
const B: MatchedComponent = { ...A, name: 'b', version: '2', purl: 'pkg:npm/a@1' }

const VEX: VexReason = {
  status: 'not_affected',
  justification: 'vulnerable_code_not_in_execute_path',
  note: '',
  vulnerability: 'CVE-1',
  product: 'pkg:npm/a',
  statedAt: null,
  document: 'd1',
  signature: null,
}

const RESULT: MatchResult = {
  sbom: { format: 'SPDX 2.3', name: 'app', enveloped: false },
  snapshot: {
    id: 'abc',
    publishedAt: null,
    asOf: '2026-07-01T00:00:00.000Z',
    ageSeconds: 1,
    stale: null,
    quarantined: 0,
    withheld: null,
    scope: null,
    partial: false,
    missing: 0,
  },
  counts: {
    components: 3,
    packages: 3,
    vulnerable: 2,
    findings: 3,
    fixable: 2,
    notJudged: 1,
    suppressed: 2,
    allReleases: 0,
    binaryNameOnly: 0,
    rebuilt: 0,
    levels: { critical: 0, high: 3, medium: 0, low: 0, none: 0, unknown: 0 },
  },
  suppressed: [A, B].map((component) => ({ ...finding('G-3', component, []), vex: VEX })),
  vex: {
    notApplied: null,
    snapshot: 'def',
    asOf: '2026-07-01T00:00:00.000Z',
    stale: null,
    documents: 1,
    unread: 0,
    missing: 0,
  },
  patches: { notApplied: null, entries: 3, partial: null },
  gaps: [],
  withoutRecords: [],
  findings: [finding('G-1', A, ['1.1']), finding('G-1', B, []), finding('G-2', A, ['1.2', '2.0'])],
  notJudged: [
    {
      name: 'c',
      version: '',
      purl: null,
      refs: [],
      refCount: 0,
      release: null,
      sourcePackage: null,
      allReleases: false,
      recordsOf: null,
      binaryNameOnly: false,
      code: 'no_purl',
      reason: 'no purl',
    },
  ],
}

test('a vulnerability report names each vulnerability once, with all components that it affects', () => {
  const report = vulnerabilityReport(RESULT, Date.UTC(2026, 6, 2))
  expect(report).toMatchObject({
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    metadata: {
      timestamp: '2026-07-02T00:00:00.000Z',
      component: { name: 'app' },
      properties: expect.arrayContaining([
        { name: 'patchmirror:snapshot:id', value: 'abc' },
        { name: 'patchmirror:notJudged', value: '1: no purl (c)' },
      ]) as unknown,
    },
    components: [
      { 'bom-ref': 'pkg:npm/a@1', name: 'a' },
      { 'bom-ref': 'pkg:npm/a@1#2', name: 'b' },
    ],
    vulnerabilities: [
      {
        id: 'G-1',
        recommendation: 'a 1: fixed in 1.1',
        references: [{ id: 'CVE-1' }],
        ratings: [{ method: 'CVSSv31', vector: VECTOR, severity: 'high', score: 7.5 }],
        affects: [{ ref: 'pkg:npm/a@1' }, { ref: 'pkg:npm/a@1#2' }],
      },
      { id: 'G-2', recommendation: 'a 1: fixed in 1.2, 2.0' },
      {
        id: 'G-3',
        affects: [
          { ref: 'pkg:npm/a@1', versions: [{ status: 'unaffected' }] },
          { ref: 'pkg:npm/a@1#2', versions: [{ status: 'unaffected' }] },
        ],
        analysis: { state: 'not_affected', justification: 'code_not_reachable' },
      },
    ],
  })
})

test('each vector is rated by its own score, and a word that no vector is scored for is a rating of its own', () => {
  const ratingsOf = (record: object) => {
    const one = { ...finding('G-4', A, []), severity: severityOf({ ...record }) }
    const { vulnerabilities } = vulnerabilityReport({ ...RESULT, findings: [one], suppressed: [] }, 0) as {
      vulnerabilities: { ratings: object[] }[]
    }
    return vulnerabilities.map(({ ratings }) => ratings)
  }
  const three = { type: 'CVSS_V3', score: 'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:H' }
  const four = { type: 'CVSS_V4', score: 'CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:H/VI:H/VA:H/SC:N/SI:N/SA:N' }
  const two = { type: 'CVSS_V2', score: 'AV:N/AC:L/Au:N/C:P/I:P/A:P' }
  expect(ratingsOf({ severity: [three, four] })).toEqual([
    [
      { severity: 'high', score: 7.5, method: 'CVSSv31', vector: three.score },
      { severity: 'critical', score: 9.3, method: 'CVSSv4', vector: four.score },
    ],
  ])
  expect(ratingsOf({ severity: [two], database_specific: { severity: 'CRITICAL' } })).toEqual([
    [
      { severity: 'high', score: 7.5, method: 'CVSSv2', vector: two.score },
      { severity: 'critical', method: 'other' },
    ],
  ])
  const unread = { ...two, score: 'AV:N/AC:L' }
  expect(ratingsOf({ severity: [unread], database_specific: { severity: 'HIGH' } })).toEqual([
    [
      { method: 'CVSSv2', vector: unread.score },
      { severity: 'high', method: 'other' },
    ],
  ])
})

test('where the word of a record and its score are of different levels, both formats have the two', () => {
  const severity = { ...finding('G-4', A, []).severity, level: 'critical', word: 'critical' } as const
  const odd: MatchResult = { ...RESULT, findings: [{ ...finding('G-4', A, []), severity }] }
  expect(vulnerabilityReport(odd, 0)).toMatchObject({
    vulnerabilities: [
      {
        ratings: [
          { method: 'CVSSv31', vector: VECTOR, severity: 'high', score: 7.5 },
          { method: 'other', severity: 'critical' },
        ],
      },
      { id: 'G-3' },
    ],
  })
  const properties = { severity: 'critical', severityWord: 'critical', 'security-severity': '7.5' }
  expect(sarifReport(odd, 'x')).toMatchObject({
    runs: [{ tool: { driver: { rules: [{ id: 'G-4', properties }, {}] } } }],
  })
})

test('both formats name components that are not judged, and say that a Go package may stand for its module', () => {
  const texts = (withoutRecords: readonly string[]) => {
    const { runs } = sarifReport({ ...RESULT, withoutRecords }, 'x') as {
      runs: { invocations: { toolExecutionNotifications: { message: { text: string } }[] }[] }[]
    }
    return runs[0]?.invocations[0]?.toolExecutionNotifications.map(({ message }) => message.text)
  }
  const missing = (purl: string, more = '') =>
    `no record here is about 1 package, in whatever version (${purl}): a misspelt name looks the same${more}`
  const unjudged = '1 component was not judged, or not completely (c): no purl'
  for (const purl of ['pkg:golang/a.example/b/c@v1', 'pkg:golang/a.example/b/c/v2@v2.0.0', 'pkg:npm/%40a/b@1'])
    expect(texts([purl])).toEqual([missing(purl), unjudged])
  const below = 'pkg:golang/a.example/b/c/d@v1'
  expect(texts([below])).toEqual([missing(below, ', and a Go package in place of its module'), unjudged])
})

test('a SARIF report has a rule for each vulnerability and a result for each finding', () => {
  const report = sarifReport(RESULT, 'my sbom.json')
  const { runs } = report as { runs: { results: { partialFingerprints: object }[] }[] }
  expect(report).toMatchObject({
    version: '2.1.0',
    runs: [
      {
        tool: {
          driver: {
            rules: [{ id: 'G-1', properties: { 'security-severity': '7.5' } }, { id: 'G-2' }, { id: 'G-3' }],
          },
        },
        results: [
          {
            ruleId: 'G-1',
            ruleIndex: 0,
            level: 'error',
            message: { text: 'a 1 is affected by G-1; fixed in 1.1' },
            locations: [{ physicalLocation: { artifactLocation: { uri: 'my%20sbom.json' } } }],
          },
          { message: { text: 'b 2 is affected by G-1; no fixed version is known' } },
          { ruleId: 'G-2', ruleIndex: 1, suppressions: [] },
          {
            ruleId: 'G-3',
            ruleIndex: 2,
            suppressions: [
              {
                kind: 'external',
                status: 'accepted',
                justification: 'VEX for pkg:npm/a (document d1): not_affected: vulnerable_code_not_in_execute_path',
              },
            ],
          },
          { ruleId: 'G-3' },
        ],
        invocations: [{ toolExecutionNotifications: [{ level: 'warning' }] }],
      },
    ],
  })
  const prints = runs.flatMap(({ results }) => results.map((one) => JSON.stringify(one.partialFingerprints)))
  expect(new Set(prints).size).toBe(5)
})

const NOTHING_NAMED = { packages: 1, judged: 1, isCompared: true, systems: [], unreadReleases: [], partEcosystems: [] }

test('VEX that is dated later than the clock is a gap, also where the records are not', () => {
  const now = Date.parse('2026-07-02T00:00:00Z')
  expect(gapsOf({ ...RESULT, ...NOTHING_NAMED }, now)).toEqual([])
  const vex = { ...RESULT.vex, asOf: '2026-07-03T00:00:00.000Z' }
  expect(gapsOf({ ...RESULT, ...NOTHING_NAMED, vex }, now)).toEqual([
    { code: 'vex', reason: expect.stringContaining('the VEX is dated 2026-07-03') as string },
  ])
})

test('both formats say what the mirror does not know', () => {
  const reason = 'partial: 6 listed records are missing or outdated'
  const snapshot = { ...RESULT.snapshot, partial: true, missing: 6 }
  const result: MatchResult = { ...RESULT, snapshot, gaps: [{ code: 'records', reason }] }
  expect(vulnerabilityReport(result, 0)).toMatchObject({
    metadata: {
      properties: expect.arrayContaining([
        { name: 'patchmirror:snapshot:partial', value: 'true' },
        { name: 'patchmirror:snapshot:missing', value: '6' },
        { name: 'patchmirror:gap:records', value: reason },
      ]) as object,
    },
  })
  const first = { level: 'warning', message: { text: reason } }
  expect(sarifReport(result, 'a.json')).toMatchObject({
    runs: [{ invocations: [{ toolExecutionNotifications: [first, {}] }], properties: { snapshot } }],
  })
})

test('a name or a summary makes no link in a SARIF report', () => {
  const named = { ...A, name: '[sign in](https://x.example)' }
  const odd = { ...finding('G-1', named, ['1.1']), summary: 'see [x[y](https://x.example) and a[0]' }
  const report = JSON.stringify(sarifReport({ ...RESULT, findings: [odd], withoutRecords: ['[a](b)'] }, 'x'))
  const texts = [...report.matchAll(/"text":("(?:\\.|[^"\\])*")/g)].map(([, text = '""']) => JSON.parse(text) as string)
  expect(texts).toContain('see \\[x\\[y](https://x.example) and a[0]')
  expect(texts).toContain('\\[sign in](https://x.example) 1 is affected by G-1; fixed in 1.1')
  expect(texts.filter((text) => text.includes('\\[a](b)'))).toHaveLength(1)
})

test('many components with one package URL, and one that is called like the second of them, keep references of their own', () => {
  const same = Array.from({ length: 20_000 }, () => ({ ...A }))
  const named = { ...A, purl: 'pkg:npm/a@1#2' }
  const findings = [...same, named, { ...A }].map((component) => finding('G-1', component, []))
  const report = vulnerabilityReport({ ...RESULT, findings }, 0) as {
    components: { 'bom-ref': string }[]
  }
  const refs = report.components.map((one) => one['bom-ref'])
  expect(new Set(refs).size).toBe(20_000 + 4) // and the two that are ruled out
})

test('a SARIF report names each tag of a rule once, and a file with a sign that means something in a URL', () => {
  const one = { ...finding('G-1', A, []), aliases: ['CVE-1', 'security', 'CVE-1'] }
  const report = sarifReport({ ...RESULT, findings: [one], suppressed: [] }, '/tmp/a:b/c#1?.json')
  expect(report).toMatchObject({
    runs: [
      {
        tool: {
          driver: { rules: [{ properties: { tags: ['security', 'vulnerability', 'CVE-1'] } }] },
        },
        results: [
          {
            locations: [{ physicalLocation: { artifactLocation: { uri: '/tmp/a%3Ab/c%231%3F.json' } } }],
          },
        ],
      },
    ],
  })
})

test('every format says by which source package a finding was found, and of how many packages less was known', () => {
  const component = { ...A, release: { name: 'Debian:12', from: 'purl' as const } }
  const result = {
    ...RESULT,
    counts: { ...RESULT.counts, allReleases: 2, binaryNameOnly: 1, rebuilt: 3 },
    findings: [{ ...finding('D-1', component, []), source: 'openssl' }],
    withoutRecords: ['pkg:npm/lodahs@1'],
  }
  const sarif = JSON.stringify(sarifReport(result, 'sbom.json'))
  expect(sarif).toContain('a 1 is affected by D-1; found by its source package openssl; no fixed')
  expect(sarif).toContain('"properties":{"sourcePackage":"openssl","release":"Debian:12"}')
  const report = JSON.stringify(vulnerabilityReport(result, 0))
  expect(report).toContain('"value":"pkg:npm/a@1: found by its source package openssl"')
  for (const text of [sarif, report]) {
    expect(text).toContain('2 packages were judged by the records of all releases')
    expect(text).toContain('1 package was judged by its binary name only')
    expect(text).toContain('3 packages were judged by the records of Red Hat, and VEX about its packages')
    expect(text).toContain('no record here is about 1 package, in whatever version (pkg:npm/lodahs@1)')
  }
})

test('an SBOM of which no component was judged has a gap', () => {
  const reasonOf = (packages: number) => gapsOf({ ...RESULT, ...NOTHING_NAMED, packages, judged: 0 }, 0)
  expect(reasonOf(0)).toContainEqual({
    code: 'components',
    reason: expect.stringContaining('has no components') as string,
  })
  expect(reasonOf(2)).toContainEqual({
    code: 'components',
    reason: expect.stringContaining('has no component that could be judged') as string,
  })
  expect(gapsOf({ ...RESULT, ...NOTHING_NAMED, isCompared: false }, 0)).toContainEqual({
    code: 'components',
    reason: expect.stringContaining('was wholly compared with any record') as string,
  })
})

test('operating systems that contradict each other, and releases that are not known, are gaps', () => {
  const named = { ...NOTHING_NAMED, systems: ['debian-12', 'alpine-3.18'], unreadReleases: ['debian-\u001b99'] }
  expect(gapsOf({ ...RESULT, ...named }, 0).filter(({ code }) => code === 'release')).toEqual([
    ...[
      'the SBOM names 2 operating systems (debian-12, alpine-3.18): none of them is taken for the release of components that name none',
      'components name a release that is not known here (debian-\\u001b99): they are judged by the records of all releases',
    ].map((reason) => ({ code: 'release', reason })),
  ])
})
