import type { StoredSignature } from '../../../src/base/domain/artifacts/signature.ts'
import { expect, test } from 'vitest'
import type { MatchFinding } from '../../../src/features/match/judging/finding.ts'
import { type JudgedImage, applyVex } from '../../../src/documents/vex/apply.ts'
import { readStatements } from '../../../src/documents/vex/statements.ts'

const IMAGE = 'pkg:oci/app@sha256%3A1?repository_url=registry.example.com/app'
/** What the clock shows. */
const NOW = Date.parse('2026-07-01T00:00:00Z')
const PURL = 'pkg:deb/debian/openssl@3.0.11-1?arch=amd64&distro=debian-12'

function finding(purl: string, more: Partial<MatchFinding> = {}, version = '3.0.11-1'): MatchFinding {
  return {
    id: 'DSA-1',
    aliases: ['CVE-1'],
    upstream: [],
    summary: '',
    modified: null,
    ...more,
    severity: { level: null, word: null, scoreLevel: null, score: null, stated: [] },
    source: null,
    component: {
      name: 'openssl',
      version,
      purl,
      refs: [],
      refCount: 0,
      release: null,
      sourcePackage: null,
      allReleases: false,
      recordsOf: null,
      binaryNameOnly: false,
    },
    ecosystems: ['Debian:12'],
    fixed: [],
    patches: [],
    patchCount: 0,
  }
}

interface Said {
  readonly status?: string
  readonly vulnerability?: unknown
  readonly products?: readonly unknown[]
  readonly timestamp?: string
  readonly subcomponents?: unknown
}

function openVex(...statements: readonly Said[]): object {
  return {
    '@context': 'https://openvex.dev/ns/v0.2.0',
    timestamp: '2026-01-01T00:00:00Z',
    statements: statements.map((one) => ({
      vulnerability: { name: 'CVE-1' },
      status: 'not_affected',
      products: [PURL],
      ...one,
    })),
  }
}

/** An image of no tag, by what its SBOM describes. */
const imageOf = (subjects: readonly string[]): JudgedImage => ({
  subjects,
  images: [],
  serial: null,
  tag: null,
})

/** Applies documents to one finding, and returns the numbers of the document that rules it out; null for none. */
function ruledOutBy(
  documents: readonly unknown[],
  one = finding(PURL),
  subjects: readonly string[] = [],
): number | null {
  const contents = documents.map((document) =>
    Buffer.from(typeof document === 'string' ? document : JSON.stringify(document)),
  )
  const reads = {
    listVexDocuments: () => contents.map(({ length }, at) => ({ digest: String(at), size: length, changed: 1 })),
    readVexContent: ({ digest }: { digest: string }) => contents[Number(digest)] ?? null,
  }
  const input = { reads, images: [imageOf(subjects)], now: NOW, check: () => undefined }
  const { findings, suppressed } = applyVex([one], input)
  expect(findings.length + suppressed.length).toBe(1)
  return suppressed[0] === undefined ? null : Number(suppressed[0].vex.document)
}

const isRuledOut = (said: Said, one?: MatchFinding, subjects?: readonly string[]): boolean =>
  ruledOutBy([openVex(said)], one, subjects) === 0

test('a statement rules a finding out only where it says not affected, or fixed', () => {
  const statuses = ['not_affected', 'fixed', 'affected', 'under_investigation', 'Fixed', '']
  const found = statuses.filter((status) => isRuledOut({ status }))
  expect(found).toEqual(['not_affected', 'fixed'])
})

test('a statement is about the vulnerability by its id, an alias, or the only one that the record is derived from', () => {
  const names: [unknown, Partial<MatchFinding>, boolean][] = [
    ['CVE-1', {}, true],
    [{ name: 'cve-1' }, {}, true],
    [{ name: 'DSA-1' }, {}, true],
    [{ '@id': 'DSA-1', name: 'X' }, {}, true],
    [{ name: 'X-1', aliases: ['GHSA-1', 'CVE-1'] }, {}, true],
    [{ name: 'CVE-2' }, {}, false],
    [{ name: 'CVE-2' }, { aliases: [], upstream: ['CVE-2'] }, true],
    [{ name: 'CVE-2' }, { upstream: ['CVE-2'] }, false], // CVE-1 is left
    [{ name: 'CVE-2' }, { aliases: [], upstream: ['CVE-2', 'CVE-3'] }, false],
    [{ name: 'CVE-2', aliases: ['cve-3'] }, { aliases: [], upstream: ['CVE-2', 'CVE-3'] }, true],
    [{ name: 'CVE-1' }, { aliases: ['CVE-1', 'CVE-2'] }, false],
    [{ name: 'GHSA-1' }, { aliases: ['CVE-1', 'CVE-2', 'GHSA-1'] }, false],
    [{ name: 'dsa-1' }, { aliases: ['CVE-1', 'CVE-2'] }, true], // the record itself
    [{ name: 'PYSEC-1' }, { aliases: ['CVE-1', 'PYSEC-1'] }, true],
    [{}, { aliases: [''] }, false],
    [null, {}, false],
  ]
  for (const [vulnerability, more, expected] of names)
    expect([vulnerability, more, isRuledOut({ vulnerability }, finding(PURL, more))]).toEqual([
      vulnerability,
      more,
      expected,
    ])
})

test('a product is meant only where package, version and qualifiers clearly agree', () => {
  const own = (purl: string) => [purl, { '@id': purl }, { identifiers: { purl } }]
  const rpm = 'pkg:rpm/redhat/bash@4.2-1?arch=x86_64&epoch=1'
  const maven = 'pkg:maven/org.a/b@1?type=jar&repository_url=https://maven.example.com'
  const cases: [string, string, boolean][] = [
    [PURL, PURL, true],
    [PURL, 'pkg:deb/debian/openssl@3.0.11-1?distro=debian-12&arch=amd64', true],
    [PURL, 'pkg:deb/debian/openssl@3.0.11-1', true],
    [PURL, 'pkg:deb/debian/openssl', true], // without a version: all of them
    [PURL, 'pkg:deb/debian/openssl?arch=amd64', true],
    [PURL, 'pkg:DEB/Debian/OpenSSL@3.0.11-1', true],
    [PURL, 'pkg:deb/debian/openssl@3.0.11', false],
    [PURL, 'pkg:deb/debian/openssl@3.0.11-1?arch=arm64', false],
    [PURL, 'pkg:deb/debian/openssl@3.0.11-1?distro=debian-13', false],
    [PURL, 'pkg:deb/debian/openssl@3.0.11-1?tag=x', false],
    [PURL, 'pkg:deb/ubuntu/openssl@3.0.11-1', false],
    [PURL, 'pkg:deb/debian/openssl@3.0.11-1#lib', false],
    [PURL, 'openssl', false],
    [PURL, 'pkg:deb', false],
    [PURL, `pkg:deb/debian/openssl@3.0.11-1?tag=${'x'.repeat(3000)}`, false],
    [rpm, 'pkg:rpm/redhat/bash@4.2-1?epoch=1', true],
    [rpm, 'pkg:rpm/redhat/bash@4.2-1', false], // another epoch
    [maven, 'pkg:maven/org.a/b@1', false], // another repository
    ['pkg:maven/org.a/b@1?type=jar', 'pkg:maven/org.a/b@1', true],
    ['pkg:pypi/some_name', 'pkg:pypi/Some-Name@3.0.11-1', true], // the version of the SBOM
  ]
  for (const [purl, product, expected] of cases)
    for (const form of own(product))
      expect([purl, form, isRuledOut({ products: [form] }, finding(purl))]).toEqual([purl, form, expected])
})

test('a statement about an image rules out its components, those that it names where it names some', () => {
  const part = (...subcomponents: unknown[]) => [{ '@id': IMAGE, subcomponents }]
  const name = { '@id': 'pkg:deb/debian/openssl' }
  const cases: [readonly unknown[], readonly string[], boolean][] = [
    [[{ '@id': IMAGE }], [IMAGE], true],
    [part(name), [IMAGE], true],
    [part({ '@id': 'pkg:deb/debian/curl' }, name), [IMAGE], true],
    [part({ '@id': 'pkg:deb/debian/curl' }), [IMAGE], false],
    [part({ '@id': 'openssl' }), [IMAGE], false],
    [[{ '@id': IMAGE, subcomponents: 'openssl' }], [IMAGE], false],
    [[{ '@id': IMAGE }], [], false],
    [part(name), ['pkg:oci/app@sha256%3A2?repository_url=registry.example.com/app'], false],
    [part(name), ['pkg:oci/app@1?repository_url=registry.example.com/app'], false],
    [part(name), [IMAGE, 'pkg:oci/other@1'], false], // of which of them is the component?
    [[{ '@id': PURL, subcomponents: [{ '@id': 'pkg:deb/debian/zlib' }] }], [IMAGE], false],
  ]
  for (const [products, subjects, expected] of cases)
    expect([products, subjects, isRuledOut({ products }, undefined, subjects)]).toEqual([products, subjects, expected])
  const old = { vulnerability: 'CVE-1', products: [IMAGE], subcomponents: ['pkg:deb/debian/curl'] }
  expect(isRuledOut(old, undefined, [IMAGE])).toBe(false)
  expect(isRuledOut({ ...old, subcomponents: ['pkg:deb/debian/openssl'] }, undefined, [IMAGE])).toBe(true)
})

test('of several statements the newest counts, and of equally old ones that which rules nothing out', () => {
  const at = (day: number, status: string): Said => ({ status, timestamp: `2026-02-0${day}` })
  const cases: [readonly Said[], number | null][] = [
    [[at(1, 'affected'), at(2, 'fixed')], 1],
    [[at(2, 'fixed'), at(1, 'affected')], 0],
    [[at(2, 'under_investigation'), at(1, 'fixed')], null],
    [[at(1, 'fixed'), at(1, 'affected')], null],
    [[at(1, 'affected'), at(1, 'fixed')], null],
    [[at(1, 'fixed'), at(2, 'unheard of')], null],
    [[{ status: 'fixed', timestamp: 'once' }, at(1, 'affected')], null],
    [[{ status: 'affected', timestamp: 'once' }, at(1, 'fixed')], 1],
    [[{ status: 'fixed' }, at(1, 'affected')], null], // the document's own date
    [[at(1, 'affected'), { ...at(2, 'fixed'), products: ['pkg:deb/debian/openssl@9'] }], null],
  ]
  for (const [said, expected] of cases)
    expect([said, ruledOutBy(said.map((one) => openVex(one)))]).toEqual([said, expected])
})

test('each id of a record counts by its newest statement, and one that is left open keeps the finding', () => {
  const two = finding(PURL, { aliases: ['CVE-1', 'CVE-2'] })
  const about = (name: string, day: number, status = 'not_affected'): Said => ({
    vulnerability: { name },
    timestamp: `2026-02-0${day}`,
    status,
  })
  const cases: [readonly Said[], number | null][] = [
    [[about('CVE-1', 2), about('CVE-2', 1, 'affected')], null],
    [[about('CVE-1', 2), about('CVE-2', 1)], 0],
    [[about('CVE-1', 1), about('CVE-2', 2)], 1],
    [[about('CVE-1', 3), about('CVE-2', 1, 'affected'), about('CVE-2', 2)], 0],
    [[about('CVE-1', 1), about('CVE-2', 2), about('CVE-2', 3, 'under_investigation')], null],
    [[about('DSA-1', 2), about('CVE-2', 1, 'affected')], null],
    [[about('DSA-1', 2), about('CVE-2', 1)], 0],
  ]
  for (const [said, expected] of cases)
    expect([
      said,
      ruledOutBy(
        said.map((one) => openVex(one)),
        two,
      ),
    ]).toEqual([said, expected])
})

test('what is dated in the future rules nothing out that another statement leaves open', () => {
  const at = (timestamp: string, status = 'not_affected'): Said => ({ timestamp, status })
  const affected = at('2026-02-01', 'affected')
  const cases: [readonly Said[], number | null][] = [
    [[at('2999-01-01'), affected], null],
    [[at('2026-07-02T00:00:01Z'), affected], null],
    [[at('2026-07-02T00:00:00Z'), affected], 0], // a day ahead: zones, and wrong clocks
    [[at('2999-01-01')], 0],
    [[at('2999-01-01'), at('once', 'affected')], null],
    [[at('2999-01-01', 'affected'), at('2026-02-01')], null],
  ]
  for (const [said, expected] of cases)
    expect([said, ruledOutBy(said.map((one) => openVex(one)))]).toEqual([said, expected])
})

function cycloneDx(state: string, affects: readonly unknown[], more = {}): object {
  const vulnerabilities = [{ id: 'X', references: [{ id: 'CVE-1' }], analysis: { state }, affects }]
  return { bomFormat: 'CycloneDX', specVersion: '1.6', vulnerabilities, ...more }
}

test('CycloneDX is read by its states, references and versions', () => {
  const ref = 'pkg:deb/debian/openssl'
  const versions = (...listed: unknown[]) => [{ ref, versions: listed }]
  const unaffected = { version: '3.0.11-1', status: 'unaffected' }
  const components = [{ components: [{ 'bom-ref': 'c1', purl: PURL }] }]
  const cases: [object, number | null][] = [
    [cycloneDx('not_affected', [{ ref }]), 0],
    [cycloneDx('false_positive', [{ ref }]), 0],
    [cycloneDx('resolved', [{ ref }]), 0],
    [cycloneDx('exploitable', [{ ref }]), null],
    [cycloneDx('in_triage', [{ ref }]), null],
    [cycloneDx('not_affected', [{ ref: `urn:cdx:1-2/1#${ref}` }]), 0],
    [cycloneDx('not_affected', [{ ref: 'c1' }]), null],
    [cycloneDx('not_affected', [{ ref: 'c1' }], { components }), 0],
    [cycloneDx('not_affected', versions(unaffected)), 0],
    [cycloneDx('not_affected', versions({ ...unaffected, version: '3' })), null],
    [cycloneDx('not_affected', versions({ version: '3.0.11-1' })), null], // affected, where no status is given
    [cycloneDx('not_affected', versions({ range: 'vers:deb/*', status: 'unaffected' })), null],
    [cycloneDx('not_affected', [{ ref, versions: '3.0.11-1' }]), null],
    [{ bomFormat: 'CycloneDX', vulnerabilities: [{ id: 'CVE-1', affects: [{ ref }] }] }, null],
  ]
  for (const [document, expected] of cases)
    expect([JSON.stringify(document), ruledOutBy([document])]).toEqual([JSON.stringify(document), expected])
  const timestamp = '2026-03-01T00:00:00Z'
  for (const affects of [[{ ref }], versions({ range: 'vers:deb/>1' }), versions({ version: '3.0.11-1' })])
    expect(ruledOutBy([openVex({}), cycloneDx('exploitable', affects, { metadata: { timestamp } })])).toBe(null)
})

test('in CycloneDX the version of a component counts where its package URL has none', () => {
  const of = (version: string, purl = 'pkg:deb/debian/openssl', more = {}): object =>
    cycloneDx('not_affected', [{ ref: 'c1', ...more }], {
      components: [{ 'bom-ref': 'c1', version, purl }],
    })
  const listed = { versions: [{ version: '3.0.11-1', status: 'unaffected' }] }
  const cases: [object, number | null][] = [
    [of('3.0.11-1'), 0],
    [of('1.0.0'), null],
    [of(''), 0],
    [of('1.0.0', PURL), 0], // the package URL counts first
    [of('1.0.0', undefined, listed), null],
    [of('3.0.11-1', undefined, listed), 0],
  ]
  for (const [document, expected] of cases)
    expect([JSON.stringify(document), ruledOutBy([document])]).toEqual([JSON.stringify(document), expected])
})

test('in CycloneDX that describes an image, an analysis of its component is about that image alone', () => {
  const other = 'pkg:oci/other@sha256%3A2?repository_url=registry.example.com/other'
  const image = { 'bom-ref': 'image', purl: IMAGE }
  const of = (component: object | null, ref = 'c1', state = 'not_affected'): object =>
    cycloneDx(state, [{ ref }], {
      metadata: { timestamp: '2026-03-01T00:00:00Z', ...(component === null ? {} : { component }) },
      components: [{ 'bom-ref': 'c1', purl: PURL }],
    })
  const cases: [object, readonly string[], number | null][] = [
    [of(image), [IMAGE], 0],
    [of(image), [other], null],
    [of(image), [], null],
    [of(image), [IMAGE, other], null],
    [of(image, PURL), [other], null],
    [of(image, `urn:cdx:1-2/1#${PURL}`), [other], null],
    [of(image, 'image'), [IMAGE], 0],
    [of(image, 'image'), [other], null],
    [of({ name: 'app' }), [IMAGE], null],
    [of({ 'bom-ref': 'c1', purl: PURL }), [other], 0],
    [of(null), [other], 0],
  ]
  for (const [document, subjects, expected] of cases)
    expect([JSON.stringify(document), subjects, ruledOutBy([document], undefined, subjects)]).toEqual([
      JSON.stringify(document),
      subjects,
      expected,
    ])
  const open = (component: object, ...subjects: string[]): boolean =>
    ruledOutBy([openVex({}), of(component, 'c1', 'exploitable')], undefined, subjects) === null
  expect(open(image, IMAGE)).toBe(true)
  expect(open(image, other)).toBe(false)
  expect(open(image, other, IMAGE)).toBe(true)
  expect(open(image)).toBe(true) // which image the SBOM describes is not known
  expect(open({ name: 'app' }, other)).toBe(true)
})

test('a CycloneDX analysis that rules nothing out is about all versions, unless it names each exactly', () => {
  const ref = 'pkg:deb/debian/openssl'
  const one = { version: '1.0.0' }
  const cases: [unknown, boolean][] = [
    [[one], false],
    [[one, { version: '3.0.11-1' }], true],
    ['3.0.11-1', true],
    [{ version: '1.0.0' }, true],
    [[one, '2.0.0'], true],
    [[one, null], true],
    [[one, { version: 2 }], true],
    [[one, { status: 'affected' }], true],
    [[{ ...one, range: 'vers:deb/*' }], true],
    [[{ ...one, status: 'unaffected' }], true],
    [[one, { version: '3.0.11-1', status: 'unaffected' }], false],
    [null, true],
  ]
  const metadata = { timestamp: '2026-03-01T00:00:00Z' }
  for (const [versions, isOpen] of cases) {
    const document = cycloneDx('exploitable', [{ ref, versions }], { metadata })
    expect([versions, ruledOutBy([openVex({}), document]) === null]).toEqual([versions, isOpen])
  }
})

test('a document of more values than a thread has memory for is not parsed, nor one in its envelope', () => {
  const document = JSON.stringify(openVex({}))
  const many = (count: number): string => `${document.slice(0, -1)},"more":[${'[],'.repeat(count)}0]}`
  const payload = (text: string): string => JSON.stringify({ payload: Buffer.from(text).toString('base64') })
  expect(ruledOutBy([many(1_000)])).toBe(0)
  expect(ruledOutBy([payload(many(1_000))])).toBe(0)
  const tooMany = many(1_100_000)
  for (const text of [tooMany, payload(tooMany), JSON.stringify({ predicate: tooMany })])
    expect(ruledOutBy([text])).toBe(null)
})

test('a statement on many products is compared with many findings in steps of both, not of each pair', () => {
  const products = Array.from({ length: 400 }, (_, at) => `pkg:npm/p${at}@1`)
  const findings = Array.from({ length: 400 }, (_, at) => finding(`pkg:npm/p${at + 399}@1`, {}, '1'))
  const content = Buffer.from(JSON.stringify(openVex({ products })))
  let checks = 0
  const input = {
    reads: {
      listVexDocuments: () => [{ digest: 'd', size: content.length, changed: 1 }],
      readVexContent: () => content,
    },
    images: [imageOf([])],
    now: NOW,
    check: () => (checks += 1),
  }
  expect(applyVex(findings, input).suppressed.map(({ vex }) => vex.product)).toEqual([products[399]])
  expect(checks).toBeGreaterThan(1_000)
  expect(checks).toBeLessThan(4_000)
})

test('a document in an envelope is read, and what is none of them is counted', () => {
  const payload = Buffer.from(JSON.stringify({ predicate: openVex({}) })).toString('base64')
  expect(ruledOutBy([{ payload }])).toBe(0)
  for (const text of ['', '[]', 'null', '{"document":{}}', '{"payload":"!"}'])
    expect(readStatements(Buffer.from(text))).toBe(null)
})

test('the reason names what was stated, when, and in which document, in texts of bounded length', () => {
  const said = { note: 'n'.repeat(5000), justification: 'component_not_present' }
  const document = Buffer.from(JSON.stringify(openVex({ ...said, impact_statement: said.note } as Said)))
  const reads = {
    listVexDocuments: () => [
      { digest: 'd1', size: document.length, changed: 1 },
      { digest: 'd2', size: 2 ** 40, changed: 1 },
      { digest: 'd3', size: 1, changed: 1 },
    ],
    readVexContent: ({ digest }: { digest: string }) => (digest === 'd1' ? document : null),
  }
  const input = { reads, images: [imageOf([])], now: NOW, check: () => undefined }
  const { suppressed, documents, unread } = applyVex([finding(PURL)], input)
  expect([documents, unread]).toEqual([3, 2])
  expect(suppressed[0]?.vex).toEqual({
    status: 'not_affected',
    justification: 'component_not_present',
    note: 'n'.repeat(1000),
    vulnerability: 'CVE-1',
    product: PURL,
    statedAt: '2026-01-01T00:00:00Z',
    document: 'd1',
    signature: null,
  })
})

test('a document whose signature is enforced and not verified rules nothing out, and still says what is affected', () => {
  const said: Said[] = [{}, { status: 'affected', timestamp: '2026-02-01T00:00:00Z' }]
  const contents = said.map((one) => Buffer.from(JSON.stringify(openVex(one))))
  const seen = (given: readonly (StoredSignature | null)[]): readonly unknown[] => {
    const reads = {
      listVexDocuments: () => given.map((signature, at) => ({ digest: String(at), size: 9, changed: 1, signature })),
      readVexContent: ({ digest }: { digest: string }) => contents[Number(digest)] ?? null,
    }
    const input = { reads, images: [imageOf([])], now: NOW, check: () => undefined }
    return applyVex([finding(PURL)], input).suppressed.map(({ vex }) => vex.signature)
  }
  const verified = { state: 'verified', signer: 'key', reason: null, subject: null } as const
  const failed = { state: 'failed', signer: null, reason: 'why', subject: null } as const
  expect(seen([null])).toEqual([null])
  expect(seen([{ ...failed, isEnforced: false }])).toEqual([failed])
  expect(seen([{ ...verified, isEnforced: true }])).toEqual([verified])
  expect(seen([{ ...failed, isEnforced: true }])).toEqual([])
  expect(
    seen([
      { ...verified, isEnforced: true },
      { ...failed, isEnforced: true },
    ]),
  ).toEqual([])
})
