import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { MANIFEST_TYPE } from '../../src/features/bundles/oci/artifact.ts'
import { imagesCommand } from '../../src/features/images/command.ts'
import { spoken } from '../features/bundles/error-messages.ts'
import { catalogEnv } from '../support/catalog/mirror.ts'
import { createBench } from '../support/mirror.ts'
import { digestOf } from '../support/registry.ts'
import { runTool } from '../support/tools.ts'
import {
  CRANE_REGISTRY,
  REGISTRIES,
  buildCrane,
  expectToRun,
  findSkopeo,
  loginFolder,
  startRegistry,
  testFolder,
} from './registries.ts'
import { serveImage } from './registry.ts'

/* The lists of images, with skopeo, and what is said of the registries that it copies to. */

/** The registry that the lists name; skopeo's settings say where it is. */
const UPSTREAM = 'registry.example.com'

const INDEX_TYPE = 'application/vnd.oci.image.index.v1+json'

/** A mirror of a catalog with two tags of `library/python`, and how it is asked for its images. */
async function mirrorTags(docker: string) {
  const sandbox = { records: 1, service: { images: 1, tags: 2, packages: 1, tickets: 1 } }
  const bench = await createBench({ sandbox, envOf: catalogEnv, env: { PATCHMIRROR_CATALOG_SCOPE: 'all' } })
  onTestFinished(() => bench.close())
  const say = (options: Parameters<typeof imagesCommand>[0]) =>
    spoken({ PATCHMIRROR_DATA_DIR: bench.dir, DOCKER_CONFIG: docker }, () => imagesCommand(options))
  const { service } = bench.sandbox
  /** Has the tags name these digests, and mirrors them. */
  const name = async (...digests: readonly string[]): Promise<void> => {
    const tags = service.ids('tags')
    digests.forEach((digest, at) => service.change('tags', tags[at] ?? '', { digest }))
    await bench.run('catalog')
  }
  return { say, name }
}

/** Starts a registry with an image of `library/python`, and an index of it; returns its address and their digests. */
async function serveUpstream(crane: string) {
  const image = await serveImage({ 'etc/os-release': 'ID=debian\n' })
  onTestFinished(() => image.close())
  const address = await startRegistry(CRANE_REGISTRY, crane)
  const one = `${address}/library/python:one`
  await expectToRun('crane', crane, ['copy', `127.0.0.1:${image.port}/any@${image.digest}`, one])
  const { out: manifest } = await runTool(crane, ['manifest', one])
  const platform = { architecture: 'amd64', os: 'linux' }
  const entry = { mediaType: MANIFEST_TYPE, size: manifest.length, digest: image.digest, platform }
  const index = Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: INDEX_TYPE, manifests: [entry] }))
  const put = { method: 'PUT', headers: { 'content-type': INDEX_TYPE }, body: index }
  expect((await fetch(`http://${address}/v2/library/python/manifests/all`, put)).status).toBe(201)
  return { address, image: image.digest, index: digestOf(index) }
}

describe.each(REGISTRIES)('$name', (registry) => {
  test('has the images of a list when skopeo has copied them, and lacks those of a later one', async ({ skip }) => {
    const found = await registry.find()
    if ('missing' in found) return skip(found.missing)
    const crane = await buildCrane()
    if ('missing' in crane) return skip(crane.missing)
    const skopeo = await findSkopeo()
    if ('missing' in skopeo) return skip(skopeo.missing)
    const upstream = await serveUpstream(crane.path)
    const target = await startRegistry(registry, found.path)
    const { docker, env } = loginFolder(target)
    const { say, name } = await mirrorTags(docker)
    await name(upstream.image, upstream.index)
    const check = `${target}/mirror/${UPSTREAM}`
    expect((await say({ check })).said).toMatch(/: 2 images: 0 in the registry, 2 missing, 0 not known/)

    const list = join(testFolder(), 'images.yaml')
    const conf = join(testFolder(), 'registries.conf')
    writeFileSync(list, (await say({ format: 'skopeo', rewrite: `=${UPSTREAM}/` })).said)
    writeFileSync(conf, `[[registry]]\nprefix = "${UPSTREAM}"\nlocation = "${upstream.address}"\ninsecure = true\n`)
    const args = ['sync', '--all', '--scoped', '--src', 'yaml', '--dest', 'docker', '--dest-tls-verify=false']
    await expectToRun('skopeo', skopeo.path, ['--registries-conf', conf, ...args, list, `${target}/mirror`], env)
    expect(await say({ check })).toMatchObject({ code: 0 })

    const later = `sha256:${'ab'.repeat(32)}`
    await name(later)
    expect((await say({ check })).said).toMatch(/: 2 images: 1 in the registry, 1 missing, 0 not known/)
    const rest = await say({ check, format: 'skopeo', rewrite: `=${UPSTREAM}/` })
    expect(rest.said.match(/sha256:[\da-f]{64}/g)).toEqual([later])
  })
})
