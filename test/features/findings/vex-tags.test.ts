import { rmSync } from 'node:fs'
import { expect, onTestFinished } from 'vitest'
import { bothTest, longTest, telling, test } from '../../support/tables.ts'
import Database from 'better-sqlite3'
import { join } from 'node:path'
import { listTags } from '../../../src/features/findings/answers.ts'
import { findingsPath } from '../../../src/store/findings/database.ts'
import { VEX_GAP, sbomGapWords } from '../../../src/store/findings/words.ts'
import {
  affecting,
  expectAgreement,
  matchSboms,
  openFindingsBench,
  readFindings,
  sbomOf,
  vexAbout,
} from './fixtures.ts'

const CVE = 'CVE-2026-77001'
const PURL = 'pkg:npm/shared@1.0.0'
const DIGEST = `sha256:${'5'.repeat(64)}`

/** Tags that list the same package with one finding, and what VEX says about it: `+` where it counts, `-` where it is ruled out. */
async function openTags(count: number) {
  const bench = await openFindingsBench()
  const { service } = bench.sandbox
  const all = service.ids('tags').filter((id) => service.documents('tag', id, 'vex').length > 0)
  const tags = all.slice(0, count)
  for (const [at, tag] of tags.entries()) {
    service.writeArtifact('tag', tag, 'sbom', sbomOf(`image${at}`, PURL))
    service.rotateArtifact('tag', tag, 'vex')
  }
  const state = async (documents: readonly (string | null)[]) => {
    for (const [at, content] of documents.entries())
      if (content !== null) service.writeArtifact('tag', tags[at] ?? '', 'vex', content)
    await bench.crawl()
    await bench.judge()
  }
  const seen = () =>
    tags
      .map((tag) => readFindings(bench.dir, (reads) => reads.readTag(tag)))
      .map((tag) => (tag?.suppressed === 1 ? '-' : '+'))
      .join('')
  await bench.publish({ 'T-1': { ...affecting('npm', 'shared', null), aliases: [CVE] } })
  return { bench, tags, state, seen }
}

/** What `match` and the findings say of the VEX of each tag that they do not know. */
async function gapsOf(bench: Awaited<ReturnType<typeof openTags>>['bench'], tags: readonly string[]) {
  const found = tags.map(async (tag) => {
    const [reasons = []] = await matchSboms(bench, tag, (_, { gaps }) => gaps.map(({ reason }) => reason))
    return reasons.includes(VEX_GAP)
  })
  const listed = tags.map((tag) => {
    const question = { query: new URLSearchParams({ tag }), now: 0, idsNamed: () => [] }
    const [one] = readFindings(bench.dir, (reads) => listTags(reads, question).tags)
    return one?.vexGap === VEX_GAP
  })
  expect(await Promise.all(found)).toEqual(listed)
  return listed
}

const component = [{ '@id': PURL }]
const nothing = vexAbout('CVE-1999-1', [{ '@id': 'pkg:npm/else@1' }], 'fixed')

longTest(
  'what the VEX of one tag rules out by a component stays a finding of another tag whose own VEX says otherwise',
  async () => {
    const { bench, state, seen } = await openTags(3)
    await state([vexAbout(CVE, component, 'not_affected', '2026-05-02T00:00:00Z'), nothing, nothing])
    expect(seen()).toBe('---')
    // However old: it is what the second tag says now. The third says nothing, and the others contradict each other.
    const affected = vexAbout(CVE, component, 'affected', '2026-01-01T00:00:00Z')
    await state([null, affected])
    expect(seen()).toBe('-++')
    await expectAgreement(bench)
    const part = [{ '@id': 'pkg:oci/image1@1', subcomponents: component }]
    await state([null, vexAbout(CVE, part, 'under_investigation', '2026-01-01T00:00:00Z')])
    expect(seen()).toBe('-++')
    const whole = [{ '@id': 'pkg:oci/image1@1' }]
    await state([null, vexAbout(CVE, whole, 'affected', '2026-01-01T00:00:00Z')])
    expect(seen()).toBe('-++')
    await state([null, vexAbout(CVE, whole, 'fixed', '2026-01-01T00:00:00Z')])
    expect(seen()).toBe('---')
  },
)

longTest(
  'a statement by the digest that the catalog has of a tag rules out a finding of this tag, once the catalog has it',
  async () => {
    const { bench, tags, state, seen } = await openTags(2)
    const products = [{ '@id': `pkg:oci/any@${encodeURIComponent(DIGEST)}`, subcomponents: component }]
    await state([vexAbout(CVE, products, 'fixed'), nothing])
    expect(seen()).toBe('++')
    bench.sandbox.service.change('tags', tags[1] ?? '', { digest: DIGEST })
    await state([])
    expect(seen()).toBe('+-')
    await expectAgreement(bench)
    bench.sandbox.service.change('tags', tags[1] ?? '', { digest: DIGEST.replaceAll('5', '6') })
    await state([])
    expect(seen()).toBe('++')
  },
)

test('VEX about the source package that an SBOM names beside the package URL counts for the findings of its tag', async () => {
  const { bench, tags, state, seen } = await openTags(1)
  const listed = 'pkg:deb/debian/libssl3@3.0.11-1?arch=amd64&distro=debian-12'
  const properties = [
    { name: 'aquasecurity:trivy:SrcName', value: 'openssl' },
    { name: 'aquasecurity:trivy:SrcVersion', value: '3.0.11' },
    { name: 'aquasecurity:trivy:SrcRelease', value: '1' },
  ]
  const sbom = JSON.parse(sbomOf('image0')) as object
  const components = [{ type: 'library', name: 'libssl3', version: '3.0.11-1', purl: listed, properties }]
  bench.sandbox.service.writeArtifact('tag', tags[0] ?? '', 'sbom', JSON.stringify({ ...sbom, components }))
  await bench.publish({ 'T-2': { ...affecting('Debian:12', 'openssl', null), aliases: [CVE] } })
  const binary = { '@id': listed }
  await state([vexAbout(CVE, [binary], 'not_affected', '2026-05-01T00:00:00Z')])
  expect(seen()).toBe('-')
  const source = { '@id': 'pkg:deb/debian/openssl@3.0.11-1?arch=source&distro=debian-12' }
  await state([vexAbout(CVE, [source], 'not_affected')])
  expect(seen()).toBe('-')
  await state([vexAbout(CVE, [source], 'affected')])
  expect(seen()).toBe('+')
  await expectAgreement(bench)
})

longTest(
  'what VEX rules out by a component stays a finding of a tag while a document of its own is damaged',
  async () => {
    const { bench, tags, state, seen } = await openTags(3)
    const part = [{ '@id': 'pkg:oci/image1@1', subcomponents: component }]
    await state([
      vexAbout(CVE, component, 'not_affected', '2026-05-02T00:00:00Z'),
      vexAbout(CVE, part, 'affected'),
      nothing,
    ])
    expect(seen()).toBe('-++')
    const db = new Database(join(bench.dir, 'mirror.db'))
    onTestFinished(() => void db.close())
    const digest = bench.store.vex.listVexDocuments().find((one) => one.tags?.includes(tags[1] ?? ''))?.digest
    const bytes = db.prepare('SELECT bytes FROM catalog_chunk WHERE digest = ?').pluck().get(digest)
    const put = db.prepare('UPDATE catalog_chunk SET bytes = ? WHERE digest = ?')
    put.run(Buffer.alloc(8), digest)
    rmSync(findingsPath(bench.dir))
    await bench.judge()
    expect(seen()).toBe('-+-')
    expect(await gapsOf(bench, tags)).toEqual([false, true, false])
    await expectAgreement(bench)
    put.run(bytes, digest)
    await bench.judge()
    expect(seen()).toBe('-++')
    expect(await gapsOf(bench, tags)).toEqual([false, false, false])
    put.run(Buffer.alloc(8), digest)
    await state([null, null, vexAbout('CVE-1999-1', component, 'fixed')])
    expect(seen()).toBe('-+-')
    await expectAgreement(bench)
  },
)

longTest(
  'what VEX rules out by a component stays a finding of a tag while a path of its own VEX could not be fetched',
  async () => {
    const { bench, tags, state, seen } = await openTags(2)
    const [, tag = ''] = tags
    const whole = [{ '@id': 'pkg:oci/image1@1' }]
    await state([vexAbout(CVE, component, 'not_affected'), nothing])
    expect(seen()).toBe('--')
    bench.sandbox.faults.set(`/v1/tags/${tag}/vex`, { kind: 'status', status: 503 })
    bench.sandbox.service.writeArtifact('tag', tag, 'vex', vexAbout(CVE, whole, 'affected'))
    expect((await bench.run('catalog')).state).toBe('partial')
    await bench.judge()
    expect(seen()).toBe('-+')
    expect(await gapsOf(bench, tags)).toEqual([false, true])
    await expectAgreement(bench)
    bench.sandbox.faults.clear()
    await state([null, nothing])
    expect(seen()).toBe('--')
    expect(await gapsOf(bench, tags)).toEqual([false, false])
  },
)

const INCOMPLETE: readonly [string, object, string | null][] = [
  [
    'CycloneDX, of its components',
    { bomFormat: 'CycloneDX', specVersion: '1.6', compositions: [{ aggregate: 'incomplete_first_party_only' }] },
    'incomplete_first_party_only',
  ],
  [
    'CycloneDX, of vulnerabilities, or as unknown',
    {
      bomFormat: 'CycloneDX',
      specVersion: '1.6',
      compositions: [{ aggregate: 'unknown' }, { aggregate: 'incomplete', vulnerabilities: ['v'] }],
    },
    null,
  ],
  [
    'SPDX 3, of what something needs',
    {
      '@context': 'https://spdx.org/rdf/3.0.1/spdx-context.jsonld',
      '@graph': [
        { type: 'CreationInfo', '@id': '_:c', specVersion: '3.0.1', created: '2026-01-01T00:00:00Z' },
        { type: 'SpdxDocument', spdxId: 'urn:d', creationInfo: '_:c', name: 'd', rootElement: ['urn:p'] },
        { type: 'software_Package', spdxId: 'urn:p', creationInfo: '_:c', name: 'p', software_packageUrl: PURL },
        {
          type: 'Relationship',
          spdxId: 'urn:r',
          creationInfo: '_:c',
          from: 'urn:p',
          to: ['urn:p'],
          relationshipType: 'dependsOn',
          completeness: 'incomplete',
        },
      ],
    },
    'incomplete',
  ],
]

bothTest.each(telling(INCOMPLETE, 'CycloneDX, of its components'))(
  'an SBOM that calls itself incomplete is a gap: %s',
  async (_, sbom, word) => {
    const { bench, tags } = await openTags(1)
    const [tag = ''] = tags
    bench.sandbox.service.writeArtifact('tag', tag, 'sbom', JSON.stringify(sbom))
    await bench.crawl()
    await bench.judge()
    const said = word === null ? [] : [sbomGapWords(word)]
    expect(await matchSboms(bench, tag, (__, { gaps }) => gaps.filter(({ code }) => code === 'sbom'))).toEqual([
      said.map((reason) => ({ code: 'sbom', reason })),
    ])
    const question = { query: new URLSearchParams({ tag }), now: 0, idsNamed: () => [] }
    expect(readFindings(bench.dir, (reads) => listTags(reads, question).tags)).toMatchObject([
      { sbomGap: said[0] ?? null, notJudgedReason: null },
    ])
  },
)
