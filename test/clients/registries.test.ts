import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { exportCommand } from '../../src/features/bundles/cli/export.ts'
import { importCommand } from '../../src/features/bundles/cli/import.ts'
import { below } from '../features/bundles/air-gap.ts'
import { spoken } from '../features/bundles/error-messages.ts'
import { keyPair, scratch } from '../features/bundles/fixtures.ts'
import { freePort } from '../support/free-ports.ts'
import { sharedBench } from '../support/shared-bench.ts'
import { findTool, runTool, startTool } from '../support/tools.ts'
import { type Built, buildGo } from './toolbox.ts'

/* Bundles as artifacts, in registries and with the tools that other people write. */

const USER = 'ann'
const PASSWORD = 'a-password'
/** `ann:a-password`, as `htpasswd -B` writes it. */
const HTPASSWD = 'ann:$2b$05$gM4JG542VGbZL9JkG1VMtOfuoggoOYU5lR2Weyqiki9a/0TunILh6'

const REGISTRIES: readonly (readonly [name: string, find: () => Promise<Built>])[] = [
  ['docker-registry of the system', () => Promise.resolve(installed('docker-registry'))],
  [
    'distribution v3.1.2',
    () => buildGo({ package: 'github.com/distribution/distribution/v3/cmd/registry', version: 'v3.1.2' }),
  ],
]

/** Tools that copy an artifact from a registry into an image layout: their arguments. */
const COPIES: readonly (readonly [
  name: string,
  find: () => Promise<Built>,
  args: (from: string, to: string) => string[],
])[] = [
  [
    'skopeo',
    () => Promise.resolve(installed('skopeo')),
    (from, to) => ['copy', '--src-tls-verify=false', `docker://${from}:daily`, `oci:${to}:daily`],
  ],
  [
    'crane v0.22.1',
    () => buildGo({ package: 'github.com/google/go-containerregistry/cmd/crane', version: 'v0.22.1' }),
    (from, to) => ['pull', '--format=oci', '--annotate-ref', `${from}:daily`, to],
  ],
  [
    'oras v1.3.6',
    () => buildGo({ package: 'oras.land/oras/cmd/oras', version: 'v1.3.6' }),
    (from, to) => ['copy', '--from-plain-http', `${from}:daily`, '--to-oci-layout', `${to}:daily`],
  ],
  [
    'regctl v0.11.7',
    () => buildGo({ package: 'github.com/regclient/regclient/cmd/regctl', version: 'v0.11.7' }),
    (from, to) => [
      'image',
      'copy',
      '--host',
      `reg=${from.split('/')[0] ?? ''},tls=disabled`,
      `${from}:daily`,
      `ocidir://${to}:daily`,
    ],
  ],
]

function installed(name: string): Built {
  const path = findTool(name)
  return path === null ? { missing: `${name} is not installed` } : { path }
}

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), 'patchmirror-registry-'))
  onTestFinished(() => rmSync(made, { recursive: true, force: true }))
  return made
}

const signer = keyPair(scratch(), 'key')
const above = sharedBench({ sandbox: { records: 50 } }, 'feeds', 'osv')

/** Starts a registry with a user, and returns its host and the folder of Docker's settings for it. */
async function startRegistry(path: string) {
  const data = folder()
  const port = await freePort()
  const host = `127.0.0.1:${port}`
  writeFileSync(join(data, 'users'), `${HTPASSWD}\n`)
  const lines = [
    'version: 0.1',
    `storage: { filesystem: { rootdirectory: ${join(data, 'blobs')} } }`,
    `http: { addr: ${host}, secret: test }`,
    `auth: { htpasswd: { realm: test, path: ${join(data, 'users')} } }`,
    'log: { level: error }',
  ]
  writeFileSync(join(data, 'settings.yml'), `${lines.join('\n')}\n`)
  const server = startTool(path, ['serve', join(data, 'settings.yml')])
  onTestFinished(() => server.stop())
  const answers = (): Promise<boolean> =>
    fetch(`http://${host}/v2/`).then(
      () => true,
      () => false,
    )
  await expect.poll(answers, { message: server.said() }).toBe(true)
  const docker = join(data, 'docker')
  mkdirSync(docker)
  const auth = Buffer.from(`${USER}:${PASSWORD}`).toString('base64')
  writeFileSync(join(docker, 'config.json'), JSON.stringify({ auths: { [host]: { auth } } }))
  return { host, docker }
}

function take(place: string, docker: string) {
  const there = below()
  const env = { PATCHMIRROR_DATA_DIR: there.dir, PATCHMIRROR_BUNDLE_TRUSTED_KEYS: signer.line, DOCKER_CONFIG: docker }
  return spoken(env, () => importCommand([place], {}))
}

/** Bytes of the bundle in an image layout: its largest blob. */
function bundleIn(layout: string): Buffer {
  const blobs = join(layout, 'blobs', 'sha256')
  const files = readdirSync(blobs).map((name) => readFileSync(join(blobs, name)))
  return files.sort((one, other) => other.length - one.length)[0] ?? Buffer.alloc(0)
}

describe.each(REGISTRIES)('%s', (_, find) => {
  test('keeps a bundle, and tools carry it on with the same bytes', async ({ skip }) => {
    const found = await find()
    if ('missing' in found) return skip(found.missing)
    const { host, docker } = await startRegistry(found.path)
    const repository = `${host}/acme/mirror`
    const place = `oci://${repository}:daily`
    const env = {
      PATCHMIRROR_DATA_DIR: (await above()).dir,
      PATCHMIRROR_BUNDLE_SIGNING_KEYS: signer.path,
      DOCKER_CONFIG: docker,
    }
    expect(await spoken(env, () => exportCommand(place, {}))).toMatchObject({ code: 0 })
    const nobody = await take(place, folder())
    expect(nobody).toMatchObject({ code: 'upstream_auth' })
    expect(await take(place, docker)).toMatchObject({ code: 0 })
    const copied: string[] = []
    const missing: string[] = []
    let first: Buffer | null = null
    for (const [name, tool, args] of COPIES) {
      const built = await tool()
      if ('missing' in built) {
        missing.push(`${name}: ${built.missing}`)
        continue
      }
      const layout = join(folder(), 'layout')
      const ran = await runTool(built.path, args(repository, layout), {
        env: { DOCKER_CONFIG: docker, REGISTRY_AUTH_FILE: join(docker, 'config.json') },
      })
      expect(`${name}: ${ran.code} ${ran.code === 0 ? '' : ran.err}`).toBe(`${name}: 0 `)
      const bytes = bundleIn(layout)
      expect(bytes.equals((first ??= bytes))).toBe(true)
      const outcome = await take(`oci:${layout}:daily`, docker)
      expect(`${name}: ${outcome.said}`).toContain('imported, signed by')
      copied.push(name)
    }
    if (missing.length > 0) process.stderr.write(`not tried: ${missing.join('; ')}\n`)
    expect(copied.length + missing.length).toBe(COPIES.length)
  })
})
