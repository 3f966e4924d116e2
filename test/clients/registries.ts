import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { freePort } from '../support/free-ports.ts'
import { findTool, runTool, startTool } from '../support/tools.ts'
import { type Built, buildGo, tell } from './toolbox.ts'

const USER = 'ann'
const PASSWORD = 'a-password'
/** `ann:a-password`, as `htpasswd -B` writes it. */
const HTPASSWD = 'ann:$2b$05$gM4JG542VGbZL9JkG1VMtOfuoggoOYU5lR2Weyqiki9a/0TunILh6'
const TAG = 'daily'

/** A registry that other people write. */
interface RegistryProgram {
  readonly name: string
  readonly find: () => Promise<Built>
  /** Whether it asks for a user. */
  readonly isClosed: boolean
  /** Arguments that start it at an address (HOST:PORT), with its files in a folder. */
  readonly args: (address: string, folder: string) => readonly string[]
}

/** A tool that copies artifacts: its arguments for the tag `daily` of a repository (HOST:PORT/NAME). */
interface CopyTool {
  readonly name: string
  readonly find: () => Promise<Built>
  /** To an image layout: a folder. */
  readonly toLayout: (from: string, layout: string) => readonly string[]
  /** From a layout with this tag alone. */
  readonly fromLayout: (layout: string, to: string) => readonly string[]
  /** To another repository. */
  readonly toRegistry: (from: string, to: string) => readonly string[]
}

/** Finds crane: a tool, and a registry with code of its own. */
export function buildCrane(): Promise<Built> {
  return buildGo({ package: 'github.com/google/go-containerregistry/cmd/crane', version: 'v0.22.1' })
}

/** Finds skopeo. */
export function findSkopeo(): Promise<Built> {
  return Promise.resolve(installed('skopeo'))
}

/** The registry of crane. */
export const CRANE_REGISTRY: RegistryProgram = {
  name: "crane's registry v0.22.1",
  find: buildCrane,
  isClosed: false,
  args: (address, folder) => ['registry', 'serve', '--address', address, '--disk', folder],
}

/** Distribution, built from its module. */
export const DISTRIBUTION: RegistryProgram = {
  name: 'distribution v3.1.2',
  find: () => buildGo({ package: 'github.com/distribution/distribution/v3/cmd/registry', version: 'v3.1.2' }),
  isClosed: true,
  args: distributionArgs,
}

/** Registries that tests run against. */
export const REGISTRIES: readonly RegistryProgram[] = [
  {
    name: 'docker-registry of the system',
    find: () => Promise.resolve(installed('docker-registry')),
    isClosed: true,
    args: distributionArgs,
  },
  DISTRIBUTION,
  CRANE_REGISTRY,
]

/** Tools that carry a bundle. */
const COPY_TOOLS: readonly CopyTool[] = [
  {
    name: 'skopeo',
    find: findSkopeo,
    toLayout: (from, layout) => ['copy', '--src-tls-verify=false', `docker://${from}:${TAG}`, `oci:${layout}:${TAG}`],
    fromLayout: (layout, to) => ['copy', '--dest-tls-verify=false', `oci:${layout}:${TAG}`, `docker://${to}:${TAG}`],
    toRegistry: (from, to) => [
      'copy',
      '--src-tls-verify=false',
      '--dest-tls-verify=false',
      `docker://${from}:${TAG}`,
      `docker://${to}:${TAG}`,
    ],
  },
  {
    name: 'crane v0.22.1',
    find: buildCrane,
    toLayout: (from, layout) => ['pull', '--format=oci', '--annotate-ref', `${from}:${TAG}`, layout],
    fromLayout: (layout, to) => ['push', layout, `${to}:${TAG}`],
    toRegistry: (from, to) => ['copy', `${from}:${TAG}`, `${to}:${TAG}`],
  },
  {
    name: 'oras v1.3.6',
    find: () => buildGo({ package: 'oras.land/oras/cmd/oras', version: 'v1.3.6' }),
    toLayout: (from, layout) => ['copy', '--from-plain-http', `${from}:${TAG}`, '--to-oci-layout', `${layout}:${TAG}`],
    fromLayout: (layout, to) => ['copy', '--from-oci-layout', `${layout}:${TAG}`, '--to-plain-http', `${to}:${TAG}`],
    toRegistry: (from, to) => ['copy', '--from-plain-http', '--to-plain-http', `${from}:${TAG}`, `${to}:${TAG}`],
  },
  {
    name: 'regctl v0.11.7',
    find: () => buildGo({ package: 'github.com/regclient/regclient/cmd/regctl', version: 'v0.11.7' }),
    toLayout: (from, layout) => [
      ...['image', 'copy', ...plainHost(from)],
      ...[`${from}:${TAG}`, `ocidir://${layout}:${TAG}`],
    ],
    fromLayout: (layout, to) => ['image', 'copy', ...plainHost(to), `ocidir://${layout}:${TAG}`, `${to}:${TAG}`],
    toRegistry: (from, to) => [
      ...['image', 'copy', ...plainHost(from), ...plainHost(to)],
      ...[`${from}:${TAG}`, `${to}:${TAG}`],
    ],
  },
]

/** Returns the tools that are there, each with what runs it; the others are named. `env`: of the tools. */
export async function presentTools(env: Record<string, string>) {
  const present: { tool: CopyTool; run: (args: readonly string[]) => Promise<void> }[] = []
  for (const tool of COPY_TOOLS) {
    const found = await tool.find()
    if ('missing' in found) tell(`not tried: ${tool.name}: ${found.missing}`)
    else present.push({ tool, run: (args) => expectToRun(tool.name, found.path, args, env) })
  }
  return present
}

/** Runs a tool to its end. Fails the test, with what the tool says, where it fails. */
export async function expectToRun(
  name: string,
  path: string,
  args: readonly string[],
  env: Record<string, string> = {},
) {
  const ran = await runTool(path, args, { env })
  expect(`${name}: ${ran.code} ${ran.code === 0 ? '' : ran.err}`).toBe(`${name}: 0 `)
}

function installed(name: string): Built {
  const path = findTool(name)
  return path === null ? { missing: `${name} is not installed` } : { path }
}

function plainHost(repository: string): string[] {
  return ['--host', `reg=${repository.split('/')[0] ?? ''},tls=disabled`]
}

function distributionArgs(address: string, folder: string): string[] {
  writeFileSync(join(folder, 'users'), `${HTPASSWD}\n`)
  const settings = join(folder, 'settings.yml')
  const lines = [
    'version: 0.1',
    `storage: { filesystem: { rootdirectory: ${join(folder, 'blobs')} } }`,
    `http: { addr: ${address}, secret: test }`,
    `auth: { htpasswd: { realm: test, path: ${join(folder, 'users')} } }`,
    'log: { level: error }',
  ]
  writeFileSync(settings, `${lines.join('\n')}\n`)
  return ['serve', settings]
}

/** Makes a folder that is removed when the test ends. */
export function testFolder(): string {
  const made = mkdtempSync(join(tmpdir(), 'patchmirror-registry-'))
  onTestFinished(() => rmSync(made, { recursive: true, force: true }))
  return made
}

/** Starts a registry until the test ends; returns its address (HOST:PORT). `path`: of its program. */
export async function startRegistry({ args }: RegistryProgram, path: string): Promise<string> {
  const address = `127.0.0.1:${await freePort()}`
  const server = startTool(path, args(address, testFolder()))
  onTestFinished(() => server.stop())
  const answers = (): Promise<boolean> =>
    fetch(`http://${address}/v2/`).then(
      () => true,
      () => false,
    )
  await expect.poll(answers, { message: server.said() }).toBe(true)
  return address
}

/** Credentials of the user for these registries: a folder with Docker's settings, for tools in their environment. */
export function loginFolder(...addresses: readonly string[]): { docker: string; env: Record<string, string> } {
  const docker = testFolder()
  const auth = Buffer.from(`${USER}:${PASSWORD}`).toString('base64')
  const auths = Object.fromEntries(addresses.map((address) => [address, { auth }]))
  writeFileSync(join(docker, 'config.json'), JSON.stringify({ auths }))
  return { docker, env: { DOCKER_CONFIG: docker, REGISTRY_AUTH_FILE: join(docker, 'config.json') } }
}
