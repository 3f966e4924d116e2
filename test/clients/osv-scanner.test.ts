import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { closeAll } from '../server/served.ts'
import { run } from '../support/command.ts'
import { UNREADABLE, serveFixes } from './mirror.ts'
import { buildScanner, scanFiles } from './scanner.ts'
import type { Built } from './toolbox.ts'

/*
 * osv-scanner in both generations of its local database, offline: what it finds, it finds in the mirror's derived views.
 * Its download address is fixed, so `patchmirror export-db` writes the files where it looks for them.
 */
const GENERATIONS = [
  { version: 'v2.4.0' }, // reads osv-scanner/{Ecosystem}/all.zip
  { version: 'v2.5.0' }, // reads osv-scalibr/{Ecosystem}/all.zip
  { version: 'v2.5.1' },
]

const VULNERABLE: Record<string, string> = {
  'package-lock.json': npmLock('4.2.1-root.io.1'),
  'requirements.txt': 'rootio-flask==2.0.1+root.io.1\n',
  'bom.cdx.json': systemSbom('7.88.1-10.root.io.1', '8.1-r00071', '7.81.0-1.root.io.1'),
}
const FIXED: Record<string, string> = {
  'package-lock.json': npmLock('4.2.1-root.io.2'),
  'requirements.txt': 'rootio-flask==2.0.1+root.io.2\n',
  'bom.cdx.json': systemSbom('7.88.1-10.root.io.2', '8.1-r00072', '7.81.0-1.root.io.2'),
}

const dir = mkdtempSync(join(tmpdir(), 'patchmirror-scanner-'))
const database = join(dir, 'db')

beforeAll(async () => {
  const mirror = await serveFixes()
  const env = { PATCHMIRROR_DATA_DIR: mirror.dir }
  const { code, err } = await run(['export-db', 'osv-scanner', database], env, dir)
  expect([code, err]).toEqual([0, ''])
  for (const [kind, files] of Object.entries({ vulnerable: VULNERABLE, fixed: FIXED }))
    for (const [name, text] of Object.entries(files)) lay(join(dir, kind, name), text)
})

afterAll(async () => {
  await closeAll()
  rmSync(dir, { recursive: true, force: true })
})

describe.each(GENERATIONS)('osv-scanner $version', ({ version }) => {
  let scanner: Built
  beforeAll(async () => {
    scanner = await buildScanner(version)
  })

  test('finds the vulnerable versions on the derived views, offline', async (context) => {
    if ('missing' in scanner) return context.skip(`osv-scanner ${version}: ${scanner.missing}`)
    expect(await scan(scanner.path, 'vulnerable')).toEqual([
      '@rootio/semver ROOT-APP-NPM-CVE-2024-1001',
      'rootio-curl ROOT-OS-ALPINE-318-CVE-2024-1005',
      'rootio-curl ROOT-OS-DEBIAN-12-CVE-2024-1004',
      'rootio-curl ROOT-OS-UBUNTU-2204-CVE-2024-1006',
      'rootio-flask ROOT-APP-PYPI-CVE-2024-1002',
    ])
  })

  test('finds nothing in the fixed versions', async (context) => {
    if ('missing' in scanner) return context.skip(`osv-scanner ${version}: ${scanner.missing}`)
    expect(await scan(scanner.path, 'fixed')).toEqual([])
  })
})

/** `package id` of each finding. */
async function scan(path: string, kind: string): Promise<string[]> {
  const files = Object.keys(VULNERABLE).map((name) => join(dir, kind, name))
  const { packages, err } = await scanFiles(path, database, files)
  expect(err).not.toMatch(/could not load db|Error/)
  return packages.flatMap(({ name, ids }) => ids.map((id) => `${name} ${id}`)).sort()
}

function lay(path: string, content: string | Buffer): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, content)
}

function npmLock(version: string): string {
  const name = '@rootio/semver'
  return JSON.stringify({
    name: 'app',
    version: '1.0.0',
    lockfileVersion: 3,
    packages: {
      '': { name: 'app', version: '1.0.0', dependencies: { [name]: version } },
      [`node_modules/${name}`]: { version, resolved: `https://registry.invalid/${version}.tgz` },
    },
  })
}

/** A CycloneDX SBOM of a Debian, an Alpine and an Ubuntu package. */
function systemSbom(debian: string, alpine: string, ubuntu: string): string {
  const component = (version: string, purl: string, name = 'rootio-curl') => {
    return { type: 'library', name, version, purl }
  }
  const other = `pkg:deb/debian/${UNREADABLE[2]}@1.3?arch=amd64&distro=debian-12` // of an unreadable bound
  return JSON.stringify({
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    version: 1,
    components: [
      component('1.3', other, UNREADABLE[2]),
      component(debian, `pkg:deb/debian/rootio-curl@${debian}?arch=amd64&distro=debian-12`),
      component(ubuntu, `pkg:deb/ubuntu/rootio-curl@${ubuntu}?arch=amd64&distro=ubuntu-22.04`),
      component(alpine, `pkg:apk/alpine/rootio-curl@${alpine}?arch=x86_64&distro=alpine-3.18.4`),
    ],
  })
}
