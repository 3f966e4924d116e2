import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openReader } from '../../src/store/database/open.ts'
import { createReads } from '../../src/store/reads.ts'
import { makeOsvViews } from '../../src/features/scanners/views/osv/views.ts'
import { type Served, serve } from '../server/served.ts'
import { openFilledStore } from '../support/filled-store.ts'

/** Packages with a fix that the vendor made, as the service writes them: id, ecosystem, name, fixed version. */
export const FIXES: readonly (readonly [id: string, ecosystem: string, name: string, fixed: string])[] = [
  ['ROOT-APP-NPM-CVE-2024-1001', 'Root:npm', '@rootio/semver', '4.2.1-root.io.2'],
  ['ROOT-APP-PYPI-CVE-2024-1002', 'Root:PyPI', 'rootio-flask', '2.0.1+root.io.2'],
  ['ROOT-APP-MAVEN-CVE-2024-1003', 'Root:Maven', 'io.root.org.example:core', '5.3.0-root.io.2'],
  ['ROOT-OS-DEBIAN-12-CVE-2024-1004', 'Root:Debian:12', 'rootio-curl', '7.88.1-10.root.io.2'],
  ['ROOT-OS-ALPINE-318-CVE-2024-1005', 'Root:Alpine:3.18', 'rootio-curl', '8.1-r00072'],
  ['ROOT-OS-UBUNTU-2204-CVE-2024-1006', 'Root:Ubuntu:22.04', 'rootio-curl', '7.81.0-1.root.io.2'],
]

/** A record whose upper bound is no version of its ecosystem: it is not known to affect any. */
export const UNREADABLE = ['ROOT-OS-DEBIAN-12-CVE-2024-1007', 'Root:Debian:12', 'rootio-zlib'] as const

function unreadableRecord(): string {
  const [id, ecosystem, name] = UNREADABLE
  const record = JSON.parse(recordOf([id, ecosystem, name, '0'])) as {
    affected: { ranges: { events: object[] }[] }[]
  }
  const range = record.affected[0]?.ranges[0]
  if (range !== undefined) range.events = [{ introduced: '0' }, { last_affected: 'x:unknown' }]
  return JSON.stringify(record)
}

function recordOf([id, ecosystem, name, fixed]: (typeof FIXES)[number]): string {
  const [, distro = '', distro_version = ''] = ecosystem.split(':')
  return JSON.stringify({
    schema_version: '1.6.1',
    id,
    modified: '2026-01-02T03:04:05Z',
    published: '2026-01-01T00:00:00Z',
    upstream: [id.slice(id.indexOf('CVE'))],
    summary: `${name} is to be fixed`,
    affected: [
      {
        package: { ecosystem, name },
        ranges: [{ type: 'ECOSYSTEM', events: [{ introduced: '0' }, { fixed }] }],
        database_specific: { root_patched: true, total_fixed_versions: 1 },
      },
    ],
    database_specific: { distro: distro.toLowerCase(), distro_version, source: 'root' },
  })
}

/** A mirror with these fixes and their views, on a free port. Closed by `closeAll`. */
export async function serveFixes(): Promise<Served & { url: string; records: Map<string, string> }> {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-clients-'))
  const records = new Map(FIXES.map((fix) => [fix[0], recordOf(fix)]))
  records.set(UNREADABLE[0], unreadableRecord())
  const store = openFilledStore(dir)
  store.publishOsv(Object.fromEntries(records))
  store.publishFeeds({
    '/external/patch_feed': '{"alpine":[],"debian":[]}',
    '/external/globals/sys_matrix': '{"ecosystems":{}}',
    '/external/cve_feed': CVE_FEED,
  })
  store.close()
  const db = openReader(dir)
  if (db === null) throw new Error('no database')
  const pause = async (): Promise<void> => Promise.resolve()
  await makeOsvViews({ dataDir: dir, reads: createReads(db), vendors: ['Root'], pause })
  db.close()
  const env = { PATCHMIRROR_FEEDS_EXTRA_PATHS: '/external/cve_feed' }
  const served = await serve(() => undefined, { dir, env, debug: true })
  return { ...served, url: `http://127.0.0.1:${served.port}`, records }
}

/** The older form of the patch feed, which vuln-list-update reads. */
export const CVE_FEED = JSON.stringify({
  debian: [
    {
      distroversion: '12',
      packages: [
        {
          pkg: {
            name: 'curl',
            cves: {
              'CVE-2024-1004': {
                vulnerable_ranges: ['<7.88.1-10.root.io.2'],
                fixed_versions: ['7.88.1-10.root.io.2'],
                severity: 'HIGH',
              },
            },
          },
        },
      ],
    },
  ],
})
