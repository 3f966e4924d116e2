import { join } from 'node:path'
import { expect, test } from 'vitest'
import { platformGap } from '../../../src/documents/sboms/platforms.ts'
import { Database } from '../../../src/store/database/sqlite.ts'
import { commandHost } from '../../support/hosted.ts'
import { affecting, openFindingsBench, readFindings, sbomOf } from '../findings/fixtures.ts'

const command = commandHost()
const digestOf = (digit: string): string => `sha256:${digit.repeat(64)}`
const INDEX = digestOf('1')
const AMD = digestOf('a')
const ARM = digestOf('b')

/** The SBOM of an image with one package. */
function sbomFor(image: string, purl: string): string {
  const sbom = JSON.parse(sbomOf('i', purl)) as object
  const component = { type: 'container', name: 'i', purl: `pkg:oci/i@${encodeURIComponent(image)}` }
  return JSON.stringify({ ...sbom, metadata: { component } })
}

test('a platform of an image is judged by its own SBOM, and by that of another one not without a word', async () => {
  const bench = await openFindingsBench()
  const { dir, sandbox } = bench
  const [tag = '', other = ''] = sandbox.service.ids('tags')
  const manifests = [
    { digest: AMD, platform: { architecture: 'amd64', os: 'linux' } },
    { digest: ARM, platform: { architecture: 'arm64', os: 'linux' } },
  ]
  sandbox.service.change('tags', tag, { index_digest: INDEX, digest: INDEX, manifests })
  sandbox.service.writeArtifact('tag', tag, 'sbom', sbomFor(AMD, 'pkg:npm/left@1.0.0'))
  sandbox.service.writeArtifact('tag', other, 'sbom', sbomFor(ARM, 'pkg:npm/right@1.0.0'))
  await bench.crawl()
  await bench.publish({ 'A-1': affecting('npm', 'left', null), 'B-1': affecting('npm', 'right', null) })
  const match = async (name: string) => {
    const { out } = await command(['match', name, '--json'], { PATCHMIRROR_DATA_DIR: dir }, dir)
    const found = JSON.parse(out) as { findings?: { id: string }[]; gaps?: { code: string; reason: string }[] }
    const gaps = found.gaps?.filter(({ code }) => code === 'sbom').map(({ reason }) => reason)
    return { ids: found.findings?.map(({ id }) => id), gaps }
  }
  expect(await match(AMD)).toEqual({ ids: ['A-1'], gaps: [] })
  const part = 'the SBOM is of amd64: nothing is known of the other platform of the image (arm64)'
  expect(await match(INDEX)).toEqual({ ids: ['A-1'], gaps: [part] })
  await bench.judge()
  const listed = await command(['list', 'findings', '--json'], { PATCHMIRROR_DATA_DIR: dir }, dir)
  const { tags } = JSON.parse(listed.out) as { tags: { id: string; sbomGap: string | null }[] }
  const unlisted = `the SBOM is of ${ARM}, which the catalog does not list for the tag: it may be of another image, or of one platform of it`
  expect(tags.filter(({ sbomGap }) => sbomGap !== null)).toMatchObject([
    { id: other, sbomGap: unlisted },
    { id: tag, sbomGap: part },
  ])
  const uncertain = () => readFindings(dir, (reads) => reads.listTagsWith('B-2').uncertain)
  expect(uncertain()).toEqual([tag, other])
  const foreign = { ids: ['A-1'], gaps: [`the SBOM is of another platform of the image than ${ARM}`] }
  for (const name of [ARM, ARM.slice(0, 20), `registry.example.com/any@${ARM}`])
    expect([name, await match(name)]).toEqual([name, foreign])
  const db = new Database(join(dir, 'mirror.db'))
  const links = (id: string) => `(SELECT links FROM catalog_answer WHERE path = '/v1/tags/${id}/sbom')`
  db.exec(`UPDATE catalog_answer SET links = json_insert(${links(tag)}, '$[#]', json_extract(${links(other)}, '$[0]'))
    WHERE path = '/v1/tags/${tag}/sbom'`)
  db.close()
  expect(await match(ARM)).toEqual({ ids: ['B-1'], gaps: [] })
  expect(await match(AMD)).toEqual({ ids: ['A-1'], gaps: [] })
  expect((await command(['match', INDEX], { PATCHMIRROR_DATA_DIR: dir }, dir)).err).toContain('has 2 SBOMs')
  sandbox.service.change('tags', tag, { manifests: manifests.slice(0, 1) })
  await bench.crawl()
  await bench.judge()
  expect(uncertain()).toEqual([other])
})

test('an SBOM is of all platforms of an image where it describes the index, and of an unknown one where it names no digest', () => {
  const platform = (digest: string, arch: string) => ({ digest, arch, isPlatform: true })
  const index = { digest: INDEX, arch: '', isPlatform: false }
  const images = [index, platform(AMD, 'amd64'), platform(ARM, ''), platform(digestOf('c'), 'unknown')]
  const gapOf = (...sboms: string[]) =>
    platformGap(
      images,
      sboms.map((purl) => [purl]),
    )
  const purl = (digest: string, more = '') => `pkg:oci/i@${encodeURIComponent(digest)}${more}`
  const unknown = `the image has 2 platforms (amd64, ${ARM.slice(0, 19)}), and the SBOM does not say of which it is`
  expect(gapOf('pkg:oci/i@1')).toBe(unknown)
  const unlisted = `the SBOM is of ${digestOf('d')}, which the catalog does not list for the tag`
  expect(gapOf(purl(digestOf('d')))).toContain(unlisted)
  expect(platformGap([index], [[purl(digestOf('d'))]])).toContain(unlisted)
  expect([
    platformGap([], [[purl(digestOf('d'))]]),
    platformGap([index], [[purl(digestOf('d'))], ['pkg:oci/i@1']]),
  ]).toEqual([null, null])
  expect(gapOf(purl(digestOf('d')), purl(AMD), purl(ARM))).toBeNull()
  expect(gapOf(purl(INDEX))).toBeNull()
  expect(gapOf(purl(INDEX, '?arch=amd64'))).toContain('the SBOM is of amd64: nothing is known of the other platform')
  expect(gapOf(purl(AMD), purl(ARM))).toBeNull()
  const other = { ...platform(digestOf('e'), ''), isUnsure: true }
  expect(platformGap([index, platform(AMD, 'amd64'), other], [['pkg:oci/i@1']])).toBeNull()
})
