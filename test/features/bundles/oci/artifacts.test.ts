import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect } from 'vitest'
import { exportCommand } from '../../../../src/features/bundles/cli/export.ts'
import { importCommand } from '../../../../src/features/bundles/cli/import.ts'
import { inspectCommand } from '../../../../src/features/bundles/cli/inspect.ts'
import { sharedBench } from '../../../support/shared-bench.ts'
import { digestOf, startRegistry } from '../../../support/registry.ts'
import { below, folder } from '../air-gap.ts'
import { spoken } from '../error-messages.ts'
import { keyPair, scratch } from '../fixtures.ts'
import { bothTest, longTest, telling, test } from '../../../support/tables.ts'

/** A mirror with some records; all tests export it. */
const above = sharedBench({ sandbox: { records: 5 } }, 'feeds', 'osv')

/** The key that signs, and is trusted. */
const signer = keyPair(scratch(), 'key')

/** Docker's settings of a test: an empty folder, so that those of the machine are not read. */
let docker = ''
beforeEach(() => void (docker = folder()))

/** Exports to a place. */
async function send(place: string, more: object = {}) {
  const { dir } = await above()
  const env = {
    PATCHMIRROR_DATA_DIR: dir,
    PATCHMIRROR_BUNDLE_SIGNING_KEYS: signer.path,
    DOCKER_CONFIG: docker,
  }
  return spoken(env, () => exportCommand(place, more))
}

/** Imports from a place into an empty mirror. */
async function take(place: string, there = below()) {
  const env = {
    PATCHMIRROR_DATA_DIR: there.dir,
    PATCHMIRROR_BUNDLE_TRUSTED_KEYS: signer.line,
    DOCKER_CONFIG: docker,
  }
  const outcome = await spoken(env, () => importCommand([place], {}))
  return { ...outcome, there }
}

const left = (dir: string): string[] => readdirSync(dir).filter((name) => name.startsWith('.pm-'))

describe('a bundle', () => {
  longTest('goes through a registry as an artifact, and nothing else stays on either side', async () => {
    const registry = await startRegistry()
    const place = `oci://${registry.host}/acme/mirror:daily`
    const sent = await send(place)
    expect(sent).toMatchObject({ code: 0 })
    const manifest = registry.manifests.get('daily') ?? Buffer.alloc(0)
    expect(sent.said).toContain(`artifact ${digestOf(manifest)}`)
    const { artifactType, config, layers, annotations } = JSON.parse(manifest.toString()) as Record<string, never>
    expect(artifactType).toBe('application/vnd.patchmirror.bundle.v1')
    expect(config).toEqual({
      mediaType: 'application/vnd.oci.empty.v1+json',
      digest: digestOf(Buffer.from('{}')),
      size: 2,
    })
    expect(layers).toMatchObject([{ mediaType: 'application/vnd.patchmirror.bundle.v1+zip' }])
    expect(annotations).toMatchObject({
      'vnd.patchmirror.kind': 'full',
      'vnd.patchmirror.osv.snapshot': expect.stringMatching(/^[\da-f]{64}$/) as string,
    })
    expect([...registry.blobs.keys()]).toHaveLength(2)
    const taken = await take(place)
    expect(taken).toMatchObject({ code: 0 })
    expect(taken.said).toContain('imported, signed by')
    for (const { dir } of [await above(), taken.there]) expect(left(dir)).toEqual([])
    const again = await take(`oci://${registry.host}/acme/mirror@${digestOf(manifest)}`, taken.there)
    expect(again.said).toContain('already imported')
    expect((await send(`oci://${registry.host}/acme/mirror`)).said).toContain('/acme/mirror:latest')
    const looked = await spoken({ PATCHMIRROR_DATA_DIR: taken.there.dir, DOCKER_CONFIG: docker }, () =>
      inspectCommand([place], { verify: true }),
    )
    expect(looked.said).toContain(`bundle:    ${place}`)
    expect(looked.said).toContain('all match the manifest')
  })

  longTest('goes into an image layout beside others, and a tag names the newest', async () => {
    const layout = join(folder(), 'usb')
    expect(await send(`oci:${layout}:one`)).toMatchObject({ code: 0 })
    expect(await send(`oci:${layout}:daily`)).toMatchObject({ code: 0 })
    expect(await send(`oci:${layout}:daily`)).toMatchObject({ code: 0 })
    const { manifests } = JSON.parse(readFileSync(join(layout, 'index.json'), 'utf8')) as { manifests: unknown[] }
    expect(manifests).toHaveLength(2)
    expect(JSON.parse(readFileSync(join(layout, 'oci-layout'), 'utf8'))).toEqual({ imageLayoutVersion: '1.0.0' })
    for (const name of readdirSync(join(layout, 'blobs', 'sha256')))
      expect(
        createHash('sha256')
          .update(readFileSync(join(layout, 'blobs', 'sha256', name)))
          .digest('hex'),
      ).toBe(name)
    expect(left(layout)).toEqual([])
    const { there, ...taken } = await take(`oci:${layout}:daily`)
    expect(taken).toMatchObject({ code: 0 })
    expect((await take(`oci:${layout}`, there)).said).toMatch(/not in the index .*it has one, daily/)
    const older = await take(`oci:${layout}:one`, there)
    expect(older.said).toContain('already imported')
    expect((await take(`oci:${layout}-other:two`, there)).said).toMatch(/there is no image layout at .*-other/)
    expect((await take(`oci:${layout}:two`, there)).said).toMatch(/not in the index .*it has one, daily/)
  })

  longTest('in a layout that lost bytes is refused, and what is there stays', async () => {
    const layout = folder()
    await send(`oci:${layout}:daily`)
    const index = JSON.parse(readFileSync(join(layout, 'index.json'), 'utf8')) as { manifests: { digest: string }[] }
    const artifact = join(layout, 'blobs', 'sha256', index.manifests[0]?.digest.slice(7) ?? '')
    const bytes = readFileSync(artifact)
    writeFileSync(artifact, bytes.toString().replace('"full"', '"fuLl"'))
    expect((await take(`oci:${layout}:daily`)).said).toMatch(/its manifest is missing or damaged/)
    writeFileSync(artifact, bytes)
    const { layers } = JSON.parse(bytes.toString()) as { layers: { digest: string }[] }
    const file = join(layout, 'blobs', 'sha256', layers[0]?.digest.slice(7) ?? '')
    writeFileSync(file, readFileSync(file).subarray(1))
    expect((await take(`oci:${layout}:daily`)).said).toMatch(
      /has \d+ bytes, and the manifest names \d+: copy the layout again/,
    )
    rmSync(file)
    expect((await take(`oci:${layout}:daily`)).said).toMatch(/is missing: copy the layout again/)
    writeFileSync(join(layout, 'index.json'), 'x')
    expect((await send(`oci:${layout}:daily`)).said).toMatch(/is not the index of an image layout/)
  })

  test('is no artifact and a file at once', async () => {
    const registry = await startRegistry()
    const place = `oci://${registry.host}/acme/mirror:daily`
    expect((await send(place, { split: '1 GB' })).said).toMatch(/--split cuts files/)
    expect((await send(place, { force: true })).said).toMatch(/--force replaces files/)
    expect(registry.seen).toEqual([])
  })
})

describe('a registry that wants a credential', () => {
  const login = { user: 'ann', password: 'p:w' }
  const remember = (host: string): void =>
    writeFileSync(
      join(docker, 'config.json'),
      JSON.stringify({ auths: { [host]: { auth: Buffer.from('ann:p:w').toString('base64') } } }),
    )

  bothTest.each(telling(['bearer', 'basic'] as const, 'bearer'))(
    'gets that of the settings of Docker (%s), which no message has',
    async (scheme) => {
      const registry = await startRegistry({ login: { ...login, scheme } })
      const place = `oci://${registry.host}/acme/mirror:daily`
      const refused = await send(place)
      expect(refused).toMatchObject({ code: 'upstream_auth' })
      expect(refused.said).toMatch(/no user name and password for .* are in .*config\.json/)
      remember(registry.host)
      expect(await send(place)).toMatchObject({ code: 0 })
      const taken = await take(place)
      expect(taken).toMatchObject({ code: 0 })
      expect(taken.said).not.toContain('p:w')
    },
  )

  longTest('is not sent where the registry points elsewhere', async () => {
    const other = await startRegistry()
    const registry = await startRegistry({
      login: { ...login, scheme: 'bearer' },
      realm: `http://localhost:${other.host.split(':')[1] ?? ''}/token`,
    })
    remember(registry.host)
    const refused = await send(`oci://${registry.host}/acme/mirror:daily`)
    expect(refused.said).toMatch(
      /sends clients to localhost:\d+ for a token, and a credential is only sent to the registry/,
    )
    expect(other.seen).toEqual([])
  })

  longTest('is told of a settings file that is not JSON, without its content', async () => {
    writeFileSync(join(docker, 'config.json'), '{"auths": secret-text')
    const registry = await startRegistry({ login: { ...login, scheme: 'basic' } })
    const refused = await send(`oci://${registry.host}/acme/mirror:daily`)
    expect(refused.said).toMatch(/cannot be read: it is not JSON/)
    expect(refused.said).not.toContain('secret-text')
  })
})

describe('a registry that lies', () => {
  /** A registry with one artifact, and a mirror that takes it. */
  async function stored() {
    const registry = await startRegistry()
    const place = `oci://${registry.host}/acme/mirror:daily`
    await send(place)
    return { registry, place }
  }

  longTest('about the bytes of the file is refused, and nothing is stored', async () => {
    const { registry, place } = await stored()
    const ways = [
      [{ blob: (bytes: Buffer) => Buffer.concat([bytes.subarray(1), Buffer.from('x')]) }, /does not have the digest/],
      [{ blob: () => 'endless' as const }, /has more than the \d+ bytes that the manifest names/],
      [{ blob: () => 'broken' as const }, /the file broke off \(.*\): try again/],
      [{ blob: (bytes: Buffer) => bytes.subarray(9) }, /broke off at byte \d+ of \d+: try again/],
    ] as const
    for (const [manner, said] of ways) {
      registry.behave(manner)
      const refused = await take(place)
      expect(refused.said).toMatch(said)
      expect(refused.said).not.toContain('.pm-')
      expect(refused.there.digest()).toBe(below().digest())
      expect(left(refused.there.dir)).toEqual([])
    }
  })

  longTest('about the manifest is refused', async () => {
    const { registry, place } = await stored()
    const digest = digestOf(registry.manifests.get('daily') ?? Buffer.alloc(0))
    const changed = (from: string, to: string) => (bytes: Buffer) => Buffer.from(bytes.toString().replace(from, to))
    registry.behave({ manifest: changed('"full"', '"fuLl"') })
    expect((await take(place.replace(':daily', `@${digest}`))).said).toMatch(/answers with a manifest of the digest/)
    registry.behave({ manifest: changed('vnd.patchmirror.bundle.v1"', 'vnd.other.v1"') })
    expect((await take(place)).said).toMatch(/it is of the type application\/vnd\.other\.v1, not a bundle/)
    registry.behave({ manifest: () => Buffer.from('{"manifests":[]}') })
    expect((await take(place)).said).toMatch(/it is of no type, not a bundle/)
    registry.behave({ manifest: () => Buffer.alloc(5 * 2 ** 20, ' ') })
    expect((await take(place)).said).toMatch(/has over 4194304 bytes/)
    registry.behave({ manifest: changed('+zip","digest":"sha256:', '+zip","digest":"sha512:') })
    expect((await take(place)).said).toMatch(/its layer has no SHA-256 digest/)
  })

  test('about where a file is, or an upload goes on, is not followed', async () => {
    const { registry, place } = await stored()
    registry.behave({ redirect: () => 'http://169.254.169.254/latest' })
    expect((await take(place)).said).toMatch(
      /redirects to http:\/\/169\.254\.169\.254 without TLS, and this is not followed/,
    )
    registry.behave({ location: 'http://other.example/upload' })
    registry.blobs.clear()
    expect((await send(place)).said).toMatch(/continues an upload at other\.example: it is not followed/)
    registry.behave({ location: '//other.example/upload' })
    expect((await send(place)).said).toMatch(/continues an upload at other\.example/)
    registry.behave({ location: '/%2F/../..//other.example/upload' })
    expect((await send(place)).said).toMatch(/continues at other\.example: it is not followed/)
  })

  longTest('by an old artifact under a tag is refused by the sequence', async () => {
    const { registry, place } = await stored()
    const old = registry.manifests.get('daily') ?? Buffer.alloc(0)
    const mirror = await above()
    mirror.sandbox.feed.change(1)
    await mirror.run('osv')
    await send(place)
    const { there } = await take(place)
    registry.manifests.set('daily', old)
    const refused = await take(place, there)
    expect(refused).toMatchObject({ code: 1 })
    expect(refused.said).toMatch(/rollback/)
  })

  longTest('with the bundle of somebody else is refused by the signature', async () => {
    const { registry, place } = await stored()
    const there = below()
    mkdirSync(there.dir, { recursive: true })
    const other = keyPair(folder(), 'other')
    const env = { PATCHMIRROR_DATA_DIR: there.dir, PATCHMIRROR_BUNDLE_TRUSTED_KEYS: other.line, DOCKER_CONFIG: docker }
    expect(registry.manifests.size).toBeGreaterThan(0)
    expect((await spoken(env, () => importCommand([place], {}))).code).not.toBe(0)
  })
})
