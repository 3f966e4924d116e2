import { expect, test } from 'vitest'
import { affecting, expectAgreement, openFindingsBench, readFindings, sbomOf, vexAbout } from './fixtures.ts'

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

const component = [{ '@id': PURL }]
const nothing = vexAbout('CVE-1999-1', [{ '@id': 'pkg:npm/else@1' }], 'fixed')

test('what the VEX of one tag rules out by a component stays a finding of another tag whose own VEX says otherwise', async () => {
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
})

test('a statement by the digest that the catalog has of a tag rules out a finding of this tag, once the catalog has it', async () => {
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
})

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
