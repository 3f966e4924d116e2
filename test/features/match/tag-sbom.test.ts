import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Database } from '../../../src/store/database/sqlite.ts'
import { commandHost } from '../../support/hosted.ts'
import { affecting, openFindingsBench, sbomOf } from '../findings/fixtures.ts'

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
  expect(await match(INDEX)).toEqual({ ids: ['A-1'], gaps: [] })
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
})
