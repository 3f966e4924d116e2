import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { MatchResult } from '../../src/features/match/result.ts'
import { run } from '../support/command.ts'
import { openFilledStore } from '../support/filled-store.ts'
import { RELEASE_CLIENTS } from './release-clients.ts'
import type { Built } from './toolbox.ts'

/*
 * `patchmirror match`, osv-scanner, grype and Trivy judge the same SBOMs of distributions by the same records: packages with a
 * release and a source package. A difference that the table here does not name fails, and so does one that is no more.
 */

/** id | ecosystem | package | fixed version; all before it are affected */
const RECORDS = rowsOf(`
  D12-OPENSSL | Debian:12            | openssl      | 3.0.13-1~deb12u1
  D13-OPENSSL | Debian:13            | openssl      | 3.4.0-1
  D12-CURL    | Debian:12            | curl         | 7.88.1-10+deb12u5
  D13-CURL    | Debian:13            | curl         | 8.5.0-1
  D12-BASH    | Debian:12            | bash         | 5.2.15-2+deb12u1
  D13-WGET    | Debian:13            | wget         | 1.25.0-2
  D12-LVM2    | Debian:12            | lvm2         | 2.03.16-3
  D12-SHADOW  | Debian:12            | shadow       | 1:4.13+dfsg1-1+deb12u1
  U22-OPENSSL | Ubuntu:22.04:LTS     | openssl      | 3.0.2-0ubuntu1.15
  U22-GLIBC   | Ubuntu:22.04:LTS     | glibc        | 2.35-0ubuntu3.7
  U22-BASH    | Ubuntu:22.04:LTS     | bash         | 5.1-6ubuntu1.1
  U22-GNUPG2  | Ubuntu:Pro:22.04:LTS | gnupg2       | 2.2.27-3ubuntu2.1+esm1
  U24-CURL    | Ubuntu:24.04:LTS     | curl         | 8.5.0-2ubuntu10.1
  A18-OPENSSL | Alpine:v3.18         | openssl      | 3.1.4-r5
  A18-BUSYBOX | Alpine:v3.18         | busybox      | 1.36.1-r6
  A20-OPENSSL | Alpine:v3.20         | openssl      | 3.3.2-r1
  A20-MUSL    | Alpine:v3.20         | musl         | 1.2.5-r1
  L9-OPENSSL  | AlmaLinux:9          | openssl      | 1:3.0.7-25.el9_3
  L9-OPENSSL  | AlmaLinux:9          | openssl-libs | 1:3.0.7-25.el9_3
  L9-PERL     | AlmaLinux:9          | perl         | 4:5.32.1-481.el9
  L9-PERL     | AlmaLinux:9          | perl-Errno   | 1.30-481.el9
  L10-CURL    | AlmaLinux:10         | curl         | 8.9.1-5.el10
  R9-OPENSSL  | Rocky Linux:9        | openssl      | 1:3.0.7-25.el9_3
  R8-CURL     | Rocky Linux:8        | curl         | 7.99.0-1.el8
`)

/** SBOM | package URL | source package and its version in Trivy's properties | what is right by the records */
const COMPONENTS = rowsOf(`
  debian    | deb/debian/libssl3@3.0.11-1~deb12u2?distro=debian-12&upstream=openssl              |                           | D12-OPENSSL
  debian    | deb/debian/libssl-dev@3.0.11-1~deb12u2?distro=debian-12&source=openssl             |                           | D12-OPENSSL
  debian    | deb/debian/openssl@3.0.13-1~deb12u1?distro=debian-12                               | openssl 3.0.13-1~deb12u1  |
  debian    | deb/debian/curl@7.88.1-10%2Bdeb12u4?distro=bookworm                                | curl 7.88.1-10+deb12u4    | D12-CURL
  debian    | deb/debian/libcurl4@7.88.1-10%2Bdeb12u5?distro=debian-12&upstream=curl             | curl 7.88.1-10+deb12u5    |
  debian    | deb/debian/bash@5.2.15-2%2Bb2?distro=debian-12.7                                   | bash 5.2.15-2             | D12-BASH
  debian    | deb/debian/wget@1.21.3-1?arch=amd64                                                | wget 1.21.3-1             |
  debian    | deb/debian/dmsetup@2:1.02.185-2?distro=debian-12&upstream=lvm2%402.03.16-2         | lvm2 2.03.16-2            | D12-LVM2
  debian    | deb/debian/passwd@1:4.13%2Bdfsg1-1%2Bb1?distro=debian-12                           | shadow 1:4.13+dfsg1-1     | D12-SHADOW
  ubuntu    | deb/ubuntu/libssl3@3.0.2-0ubuntu1.14?distro=ubuntu-22.04&upstream=openssl          | openssl 3.0.2-0ubuntu1.14 | U22-OPENSSL
  ubuntu    | deb/ubuntu/libc6@2.35-0ubuntu3.6?distro=ubuntu-22.04&upstream=glibc                |                           | U22-GLIBC
  ubuntu    | deb/ubuntu/bash@5.1-6ubuntu1?distro=jammy                                          | bash 5.1-6ubuntu1         | U22-BASH
  ubuntu    | deb/ubuntu/gnupg2@2.2.27-3ubuntu2.1?distro=ubuntu-22.04                            | gnupg2 2.2.27-3ubuntu2.1  | U22-GNUPG2
  ubuntu    | deb/ubuntu/curl@7.81.0-1ubuntu1.15?distro=ubuntu-22.04                             | curl 7.81.0-1ubuntu1.15   |
  alpine    | apk/alpine/libcrypto3@3.1.4-r4?distro=alpine-3.18.6&upstream=openssl               | openssl 3.1.4-r4          | A18-OPENSSL
  alpine    | apk/alpine/openssl@3.1.4-r5?distro=alpine-3.18.6                                   | openssl 3.1.4-r5          |
  alpine    | apk/alpine/busybox@1.36.1-r5?distro=3.18.6                                         | busybox 1.36.1-r5         | A18-BUSYBOX
  alpine    | apk/alpine/musl@1.2.4-r2?distro=alpine-3.18.6                                      | musl 1.2.4-r2             |
  almalinux | rpm/almalinux/openssl-libs@3.0.7-24.el9?distro=almalinux-9.4&epoch=1&upstream=openssl-3.0.7-24.el9.src.rpm |                           | L9-OPENSSL
  almalinux | rpm/almalinux/openssl@3.0.7-25.el9_3?distro=almalinux-9.4&epoch=1                  |                           |
  almalinux | rpm/almalinux/perl-Errno@1.30-481.el9?distro=almalinux-9.4&upstream=perl-5.32.1-481.el9.src.rpm |                           |
  almalinux | rpm/almalinux/curl@7.76.1-29.el9_4?distro=almalinux-9.4                            |                           |
  alma      | rpm/alma/openssl-libs@3.0.7-24.el9?distro=alma-9.4&epoch=1                         | openssl 1:3.0.7-24.el9    | L9-OPENSSL
  alma      | rpm/alma/openssl@3.0.7-25.el9_3?distro=alma-9.4&epoch=1                            | openssl 1:3.0.7-25.el9_3  |
  rocky     | rpm/rocky/openssl-libs@3.0.7-24.el9?distro=rocky-9.4&epoch=1&upstream=openssl-3.0.7-24.el9.src.rpm | openssl 1:3.0.7-24.el9    | R9-OPENSSL
  rocky     | rpm/rocky/openssl@3.0.7-24.el9?distro=rocky-9.4&epoch=1                            | openssl 1:3.0.7-24.el9    | R9-OPENSSL
  rocky     | rpm/rocky/curl@7.76.1-29.el9?distro=rocky-9.4                                      | curl 7.76.1-29.el9        |
`)

/** The release of each SBOM's operating system. */
const SYSTEMS = {
  debian: '12.7',
  ubuntu: '22.04',
  alpine: '3.18.6',
  almalinux: '9.4',
  alma: '9.4',
  rocky: '9.4',
}

/** client | SBOM, component and record that it does not find (-), or finds alone (+) | reason */
const DIFFERENCES = rowsOf(`
  osv-scanner | - alma openssl-libs L9-OPENSSL      | no type of rpm: it maps no package URL of rpm to an ecosystem
  osv-scanner | - almalinux openssl-libs L9-OPENSSL | no type of rpm
  osv-scanner | - rocky openssl R9-OPENSSL          | no type of rpm
  osv-scanner | - rocky openssl-libs R9-OPENSSL     | no type of rpm
  osv-scanner | - alpine libcrypto3 A18-OPENSSL     | own name alone: it reads no source package in an SBOM
  osv-scanner | - debian dmsetup D12-LVM2           | own name alone
  osv-scanner | - debian libssl-dev D12-OPENSSL     | own name alone
  osv-scanner | - debian libssl3 D12-OPENSSL        | own name alone
  osv-scanner | - debian passwd D12-SHADOW          | own name alone
  osv-scanner | - ubuntu libc6 U22-GLIBC            | own name alone
  osv-scanner | - ubuntu libssl3 U22-OPENSSL        | own name alone
  osv-scanner | - debian bash D12-BASH              | point release: it looks for records of Debian:12.7
  osv-scanner | + debian wget D13-WGET              | all releases: it reads no operating system in an SBOM
  osv-scanner | - ubuntu gnupg2 U22-GNUPG2          | Pro: it looks for records of Ubuntu:22.04:LTS alone
  grype       | - alpine busybox A18-BUSYBOX        | bare release: it takes one only behind a distribution's name
  grype       | - debian curl D12-CURL              | code name: it takes none for a release
  grype       | - ubuntu bash U22-BASH              | code name
  grype       | - debian libssl-dev D12-OPENSSL     | upstream alone: it reads a source package in no other qualifier or property
  grype       | - debian passwd D12-SHADOW          | upstream alone
  grype       | - rocky openssl R9-OPENSSL          | Red Hat: Rocky Linux is judged by Red Hat's records, for which AlmaLinux's stand here
  grype       | + rocky openssl L9-OPENSSL          | Red Hat
  grype       | - rocky openssl-libs R9-OPENSSL     | Red Hat
  grype       | + rocky openssl-libs L9-OPENSSL     | Red Hat
  Trivy       | - almalinux openssl-libs L9-OPENSSL | system unknown: it knows AlmaLinux as alma alone
  Trivy       | - debian libssl-dev D12-OPENSSL     | own properties: it reads a source package in them alone
  Trivy       | - debian libssl3 D12-OPENSSL        | own properties
  Trivy       | - ubuntu libc6 U22-GLIBC            | own properties
  Trivy       | - rocky openssl-libs R9-OPENSSL     | binary names: it asks for no source packages of rpm
  Trivy       | - ubuntu gnupg2 U22-GNUPG2          | Pro: it judges by those records only where the system says that it is ESM
`)

const dir = mkdtempSync(join(tmpdir(), 'patchmirror-releases-'))
/** `SBOM component id` of what match finds. */
const ours = new Set<string>()
/** What each client needs, each with its name. */
const built = new Map<string, (readonly [string, Built])[]>()

beforeAll(async () => {
  for (const { name, needs } of RELEASE_CLIENTS) {
    const all: (readonly [string, Built])[] = []
    for (const [what, build] of Object.entries(needs)) all.push([what, await build()])
    built.set(name, all)
  }
  const env = { PATCHMIRROR_DATA_DIR: join(dir, 'data') }
  mkdirSync(join(dir, 'data'))
  const store = openFilledStore(join(dir, 'data'))
  store.publishOsv(Object.fromEntries([...Map.groupBy(RECORDS, ([id = '']) => id)].map(recordOf)))
  store.close()
  const { code, err } = await run(['export-db', 'osv-scanner', join(dir, 'db')], env, dir)
  expect([code, err]).toEqual([0, ''])
  const records = RECORDS.map(([id, ecosystem, name, fixed]) => ({ id, ecosystem, name, fixed }))
  writeFileSync(join(dir, 'records.json'), JSON.stringify(records))
  for (const [system, release] of Object.entries(SYSTEMS)) {
    writeFileSync(fileOf(system), JSON.stringify(sbomOf(system, release)))
    const ran = await run(['match', fileOf(system), '--json'], env, dir)
    const { findings, notJudged } = JSON.parse(ran.out) as MatchResult
    expect(notJudged.map(({ code: why }) => why)).toEqual(['no_package']) // the operating system
    for (const { component, id } of findings) ours.add(`${system} ${component.name} ${id}`)
  }
})

afterAll(() => rmSync(dir, { recursive: true, force: true }))

test('match finds what the records of the release say of a package and its source', () => {
  const right = COMPONENTS.flatMap(([system = '', purl = '', , id = '']) =>
    id === '' ? [] : [`${system} ${partsOf(purl).name} ${id}`],
  )
  expect([...ours].sort()).toEqual(right.sort())
})

test.for(RELEASE_CLIENTS)(
  '$name $version differs from match by named reasons alone',
  async ({ name, scan }, context) => {
    const paths: string[] = []
    for (const [what, one] of built.get(name) ?? []) {
      if ('missing' in one) return context.skip(`${what}: ${one.missing}`)
      paths.push(one.path)
    }
    const theirs = new Set<string>()
    for (const system of Object.keys(SYSTEMS))
      for (const [component, id] of await scan(paths, dir, fileOf(system))) theirs.add(`${system} ${component} ${id}`)
    const less = [...ours].filter((one) => !theirs.has(one)).map((one) => `- ${one}`)
    const more = [...theirs].filter((one) => !ours.has(one)).map((one) => `+ ${one}`)
    const named = DIFFERENCES.filter(([client, , reason = '']) => client === name && reason !== '')
    expect([...less, ...more].sort()).toEqual(named.map(([, difference]) => difference).sort())
  },
)

function rowsOf(table: string): string[][] {
  const lines = table.split('\n').filter((line) => line.trim() !== '')
  return lines.map((line) => line.split('|').map((cell) => cell.trim()))
}

function fileOf(system: string): string {
  return join(dir, `${system}.cdx.json`)
}

function recordOf([id, rows]: [string, readonly string[][]]): [string, string] {
  const affected = rows.map(([, ecosystem, name, fixed]) => {
    const ranges = [{ type: 'ECOSYSTEM', events: [{ introduced: '0' }, { fixed }] }]
    return { package: { ecosystem, name }, ranges }
  })
  const record = { schema_version: '1.6.1', id, modified: '2026-01-02T03:04:05Z', affected }
  return [id, JSON.stringify(record)]
}

function partsOf(purl: string): { name: string; version: string } {
  const [, name = '', version = ''] = /([^/]+)@([^?]+)/.exec(purl) ?? []
  return { name, version: decodeURIComponent(version) }
}

function sbomOf(wanted: string, release: string): object {
  const system = { type: 'operating-system', 'bom-ref': 'os', name: wanted, version: release }
  const own = COMPONENTS.filter(([name]) => name === wanted)
  const packages = own.map(([, path = '', source = '']) => {
    const purl = `pkg:${path}`
    const [name = '', version = ''] = source.split(' ')
    const properties = [
      { name: 'aquasecurity:trivy:SrcName', value: name },
      { name: 'aquasecurity:trivy:SrcVersion', value: version },
    ]
    const said = source === '' ? {} : { properties }
    return { type: 'library', 'bom-ref': purl, ...partsOf(path), purl, ...said }
  })
  const components = [system, ...packages]
  return { bomFormat: 'CycloneDX', specVersion: '1.5', version: 1, components }
}
