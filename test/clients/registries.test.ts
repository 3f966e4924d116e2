import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { inboxFolder } from '../../src/config/kinds/inbox.ts'
import { readReference } from '../../src/config/kinds/oci-reference.ts'
import { createTagWatch } from '../../src/features/bundles/boxes/tag-watch.ts'
import { exportCommand } from '../../src/features/bundles/cli/export.ts'
import { importCommand } from '../../src/features/bundles/cli/import.ts'
import { MANIFEST_TYPE } from '../../src/features/bundles/oci/artifact.ts'
import { openRepository, pullBlob, pushFile } from '../../src/features/bundles/oci/registry.ts'
import { below } from '../features/bundles/air-gap.ts'
import { spoken } from '../features/bundles/error-messages.ts'
import { keyPair, scratch } from '../features/bundles/fixtures.ts'
import { watch } from '../features/bundles/watched-inbox.ts'
import { loadQuick } from '../support/limits.ts'
import { digestOf } from '../support/registry.ts'
import { sharedBench } from '../support/shared-bench.ts'
import {
  CRANE_REGISTRY,
  DISTRIBUTION,
  REGISTRIES,
  loginFolder,
  presentTools,
  startRegistry,
  testFolder,
} from './registries.ts'

/* Bundles as artifacts, in registries and with the tools that other people write. */

const signer = keyPair(scratch(), 'key')
const above = sharedBench({ sandbox: { records: 50 } }, 'feeds', 'osv')

async function send(place: string, docker: string) {
  const env = {
    PATCHMIRROR_DATA_DIR: (await above()).dir,
    PATCHMIRROR_BUNDLE_SIGNING_KEYS: signer.path,
    DOCKER_CONFIG: docker,
  }
  return spoken(env, () => exportCommand(place, {}))
}

function take(place: string, docker: string, there = below()) {
  const env = { PATCHMIRROR_DATA_DIR: there.dir, PATCHMIRROR_BUNDLE_TRUSTED_KEYS: signer.line, DOCKER_CONFIG: docker }
  return spoken(env, () => importCommand([place], {}))
}

/** Returns a manifest as a registry gives it. */
async function manifestAt(repository: string, docker: string): Promise<Buffer> {
  const [address = '', ...names] = repository.split('/')
  const { auths } = JSON.parse(readFileSync(join(docker, 'config.json'), 'utf8')) as {
    auths: Record<string, { auth: string }>
  }
  const headers = { authorization: `Basic ${auths[address]?.auth ?? ''}`, accept: MANIFEST_TYPE }
  const answer = await fetch(`http://${address}/v2/${names.join('/')}/manifests/daily`, { headers })
  expect(answer.status).toBe(200)
  return Buffer.from(await answer.arrayBuffer())
}

/** Bytes of the bundle in an image layout: its largest blob. */
function bundleIn(layout: string): Buffer {
  const blobs = join(layout, 'blobs', 'sha256')
  const files = readdirSync(blobs).map((name) => readFileSync(join(blobs, name)))
  return files.sort((one, other) => other.length - one.length)[0] ?? Buffer.alloc(0)
}

describe.each(REGISTRIES)('$name', (registry) => {
  test('keeps a bundle, and tools carry it on with the same bytes', async ({ skip }) => {
    const found = await registry.find()
    if ('missing' in found) return skip(found.missing)
    const address = await startRegistry(registry, found.path)
    const { docker, env } = loginFolder(address)
    const repository = `${address}/acme/mirror`
    const place = `oci://${repository}:daily`
    const absent = await take(place, docker)
    expect(absent).toMatchObject({ code: 'upstream_not_found' })
    expect(await send(place, docker)).toMatchObject({ code: 0 })
    if (registry.isClosed) expect(await take(place, testFolder())).toMatchObject({ code: 'upstream_auth' })
    const there = below()
    expect(await take(place, docker, there)).toMatchObject({ code: 0 })
    const digest = digestOf(await manifestAt(repository, docker))
    expect((await take(`oci://${repository}@${digest}`, docker, there)).said).toContain('already imported')
    let first: Buffer | null = null
    for (const { tool, run } of await presentTools(env)) {
      const layout = join(testFolder(), 'layout')
      await run(tool.toLayout(repository, layout))
      const bytes = bundleIn(layout)
      expect(bytes.equals((first ??= bytes))).toBe(true)
      const outcome = await take(`oci:${layout}:daily`, docker)
      expect(`${tool.name}: ${outcome.said}`).toContain('imported, signed by')
    }
  })

  test('takes a bundle that tools bring in an image layout, with the same manifest', async ({ skip }) => {
    const found = await registry.find()
    if ('missing' in found) return skip(found.missing)
    const address = await startRegistry(registry, found.path)
    const { docker, env } = loginFolder(address)
    const layout = join(testFolder(), 'layout')
    const sent = await send(`oci:${layout}:daily`, docker)
    expect(sent).toMatchObject({ code: 0 })
    for (const { tool, run } of await presentTools(env)) {
      const target = `${address}/${tool.name.split(' ')[0] ?? ''}/mirror`
      await run(tool.fromLayout(layout, target))
      expect(sent.said).toContain(`artifact ${digestOf(await manifestAt(target, docker))}`)
      const outcome = await take(`oci://${target}:daily`, docker)
      expect(`${tool.name}: ${outcome.said}`).toContain('imported, signed by')
    }
  })

  test('takes a file in several pieces, and gives it back', async ({ skip }) => {
    const found = await registry.find()
    if ('missing' in found) return skip(found.missing)
    const address = await startRegistry(registry, found.path)
    vi.stubEnv('DOCKER_CONFIG', loginFolder(address).docker)
    onTestFinished(() => void vi.unstubAllEnvs())
    const reference = readReference(`oci://${address}/acme/mirror:daily`)
    if (reference?.kind !== 'registry') throw new Error('it is a tag')
    const repository = openRepository((await above()).config, reference, 'pull,push')
    onTestFinished(() => repository.session.close())
    const sent = join(testFolder(), 'sent')
    const taken = join(testFolder(), 'taken')
    const bytes = randomBytes(40 * 2 ** 20 + 7)
    writeFileSync(sent, bytes)
    const pieces: number[] = []
    await pushFile(repository, sent, digestOf(bytes), (done) => pieces.push(done))
    expect(pieces).toHaveLength(3)
    await pullBlob(repository, { digest: digestOf(bytes), size: bytes.length }, taken, () => undefined)
    expect(readFileSync(taken).equals(bytes)).toBe(true)
  })

  test('has its tag followed by an inbox', async ({ skip }) => {
    const found = await registry.find()
    if ('missing' in found) return skip(found.missing)
    const address = await startRegistry(registry, found.path)
    const { docker } = loginFolder(address)
    vi.stubEnv('DOCKER_CONFIG', docker)
    onTestFinished(() => void vi.unstubAllEnvs())
    const place = `oci://${address}/acme/mirror:daily`
    const { inbox, settled, look } = follow(place)
    await look()
    expect(inbox.status().problem).toBe('upstream_not_found')
    expect(await send(place, docker)).toMatchObject({ code: 0 })
    await look()
    await look()
    expect(settled).toMatchObject([{ outcome: 'imported' }])
    expect(inbox.status()).toMatchObject({ imported: 1, problem: null })
    const bench = await above()
    bench.sandbox.feed.change(1)
    await bench.run('osv')
    expect(await send(place, docker)).toMatchObject({ code: 0 })
    await look()
    expect(settled).toMatchObject([{ outcome: 'imported' }, { outcome: 'imported' }])
  })
})

/** An inbox of an empty mirror that follows a tag; `look` looks as the daemon does, two minutes later. */
function follow(place: string) {
  const mirror = below()
  const env = { PATCHMIRROR_DATA_DIR: mirror.dir, PATCHMIRROR_BUNDLE_INBOX: place }
  const { config } = loadQuick({ env: { ...env, PATCHMIRROR_BUNDLE_TRUSTED_KEYS: signer.line }, cwd: '/' })
  const tag = readReference(place)
  if (tag?.kind !== 'registry') throw new Error(`${place} is a tag`)
  const box = inboxFolder(config) ?? ''
  mkdirSync(box, { recursive: true })
  let minutes = 0
  const elapsed = (): number => minutes * 60_000
  const fetch = createTagWatch(config, tag, box, { elapsed })
  const { inbox, settled } = watch(box, mirror, { elapsed, fetch, keys: [signer] })
  const look = async (): Promise<void> => {
    minutes += 2
    for (let looks = 0; looks < 3; looks++) await inbox.look()
  }
  return { inbox, settled, look }
}

describe.each([
  [DISTRIBUTION, CRANE_REGISTRY],
  [CRANE_REGISTRY, DISTRIBUTION],
])('a bundle', (from, to) => {
  test(`goes from ${from.name} to ${to.name} with the same bytes`, async ({ skip }) => {
    const one = await from.find()
    const other = await to.find()
    if ('missing' in one) return skip(one.missing)
    if ('missing' in other) return skip(other.missing)
    const here = await startRegistry(from, one.path)
    const there = await startRegistry(to, other.path)
    const { docker, env } = loginFolder(here, there)
    const source = `${here}/acme/mirror`
    expect(await send(`oci://${source}:daily`, docker)).toMatchObject({ code: 0 })
    const manifest = await manifestAt(source, docker)
    for (const { tool, run } of await presentTools(env)) {
      const target = `${there}/${tool.name.split(' ')[0] ?? ''}/mirror`
      await run(tool.toRegistry(source, target))
      expect((await manifestAt(target, docker)).equals(manifest)).toBe(true)
      const outcome = await take(`oci://${target}:daily`, docker)
      expect(`${tool.name}: ${outcome.said}`).toContain('imported, signed by')
    }
  })
})
