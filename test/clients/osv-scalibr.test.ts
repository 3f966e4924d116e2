import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Served, closeAll } from '../server/served.ts'
import { runTool } from '../support/tools.ts'
import { serveFixes } from './mirror.ts'
import { type Built, buildGo } from './toolbox.ts'

/* osv-scalibr's plug-in `vulnmatch/osvlocal`, which downloads the databases from the mirror's bucket by itself. */

const VERSION = 'v0.5.3'
const dir = mkdtempSync(join(tmpdir(), 'patchmirror-scalibr-'))
let scalibr: Built
let mirror: Served & { url: string }

beforeAll(async () => {
  mirror = await serveFixes()
  scalibr = await buildGo({
    package: 'github.com/google/osv-scalibr/binary/scalibr',
    version: VERSION,
  })
})

afterAll(async () => {
  await closeAll()
  rmSync(dir, { recursive: true, force: true })
})

/** Root filesystems as an image unpacks to them. */
const SYSTEMS: Record<string, Record<string, string>> = {
  debian: {
    'etc/os-release': 'ID=debian\nVERSION_ID="12"\nVERSION_CODENAME=bookworm\n',
    'var/lib/dpkg/status': dpkgStatus('7.88.1-10.root.io.1'),
  },
  ubuntu: {
    'etc/os-release': 'ID=ubuntu\nVERSION_ID="22.04"\nVERSION_CODENAME=jammy\n',
    'var/lib/dpkg/status': dpkgStatus('7.81.0-1.root.io.1'),
  },
  alpine: {
    'etc/os-release': 'ID=alpine\nVERSION_ID=3.18.4\n',
    'lib/apk/db/installed': 'C:Q1AAAA=\nP:rootio-curl\nV:8.1-r00071\nA:x86_64\no:rootio-curl\n\n',
  },
  'debian, fixed': {
    'etc/os-release': 'ID=debian\nVERSION_ID="12"\nVERSION_CODENAME=bookworm\n',
    'var/lib/dpkg/status': dpkgStatus('7.88.1-10.root.io.2'),
  },
}

test.for<[system: string, ids: string[]]>([
  ['debian', ['ROOT-OS-DEBIAN-12-CVE-2024-1004']],
  ['ubuntu', ['ROOT-OS-UBUNTU-2204-CVE-2024-1006']],
  ['alpine', ['ROOT-OS-ALPINE-318-CVE-2024-1005']],
  ['debian, fixed', []],
])(`osv-scalibr ${VERSION} downloads the databases and finds in %s: %j`, async ([system, ids], context) => {
  if ('missing' in scalibr) return context.skip(`osv-scalibr ${VERSION}: ${scalibr.missing}`)
  expect(await scan(scalibr.path, system)).toEqual(ids)
})

test(`osv-scalibr ${VERSION} asks for the checksum, and downloads no more than what changed`, async (context) => {
  if ('missing' in scalibr) return context.skip(`osv-scalibr ${VERSION}: ${scalibr.missing}`)
  await scan(scalibr.path, 'debian')
  mirror.requests.splice(0)
  await scan(scalibr.path, 'debian')
  const asked = mirror.requests as { method: string; url: string; statusCode: number }[]
  expect(asked.map(({ method, url, statusCode }) => [method, url, statusCode])).toEqual([
    ['HEAD', '/osv/Debian/all.zip', 200],
  ])
})

/** Ids of what it finds in one of the systems. */
async function scan(path: string, system: string): Promise<string[]> {
  const root = join(dir, system.replace(/\W+/g, '-'))
  for (const [name, text] of Object.entries(SYSTEMS[system] ?? {})) {
    mkdirSync(dirname(join(root, name)), { recursive: true })
    writeFileSync(join(root, name), text)
  }
  const report = join(dir, 'report.textproto')
  const local = `remote_host:'${mirror.url}/osv' download:true local_path:'${dir}/cache'`
  const { code, err } = await runTool(path, [
    ...['--root', root, '--plugins=os/dpkg,os/apk,vulnmatch/osvlocal'],
    ...[`--plugin-config=osvlocal:{${local}}`, '-o', `textproto=${report}`],
  ])
  expect([code, err]).toEqual([0, expect.not.stringContaining('could not load db')])
  const text = readFileSync(report, 'utf8')
  return [...text.matchAll(/\bid:\s+"(ROOT-[^"]+)"/g)].map(([, id = '']) => id)
}

function dpkgStatus(version: string): string {
  const fields = {
    Package: 'rootio-curl',
    Status: 'install ok installed',
    Architecture: 'amd64',
    Version: version,
    Maintainer: 'nobody',
    Description: 'a package',
  }
  return `${Object.entries(fields)
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n')}\n\n`
}
