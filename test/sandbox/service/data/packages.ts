import { seconds } from '../../feed/generate.ts'
import { PACKAGES, TARGETS, patchedName, patchedVersion } from '../../feed/vocabulary.ts'
import { type Entry, type Origin, idFor, randomFor } from './collection.ts'
import { NEWEST } from './tickets.ts'
import { exactly } from '../replies.ts'

/** A remediated package (wire facts, records). */
export interface Package {
  id: string
  name: string
  src_name: string
  version: string
  ecosystem: string
  arch: string
  os_distro_release: string
  package_purl: string
  created_at: string
  updated_at: string
}

/** What one package's own page adds. */
export interface PackageDetail {
  licenses: readonly string[]
  cves: readonly string[]
  build_number: object
}

const DAY = 86_400_000
const LICENCES = ['MIT', 'Apache-2.0', 'BSD-3-Clause', 'GPL-2.0-or-later', 'curl'] as const

/** The first packages of a seed; several are versions of the same package, some are the same for two machines. */
export function generatePackages(origin: Origin, count: number): Entry<Package>[] {
  return Array.from({ length: count }, (_, i) => generatePackage(origin, i))
}

/** The i-th package of a seed. */
export function generatePackage(origin: Origin, i: number): Entry<Package> {
  const twin = i % 2 === 1 && i % 5 === 1 // the same version as the one before, for another machine
  const random = randomFor(origin.seed, 'package', twin ? i - 1 : i)
  const target = random.pick(TARGETS)
  const source = random.pick(PACKAGES[target.feed])
  const updated = NEWEST - random.int(300) * DAY
  const base = `${random.between(1, 9)}.${random.int(30)}.${random.int(10)}`
  const language = target.distroVersion === '' // built once for all machines: no twins
  const version = patchedVersion(target, base, 1 + (twin && !language ? i - 1 : i))
  const name = patchedName(target.feed, source)
  const machine = twin ? 'aarch64' : 'x86_64'
  const arch = language ? 'noarch' : machine
  const listed: Package = {
    id: idFor(origin, 'package', i),
    name,
    src_name: source,
    version,
    ecosystem: target.feed,
    arch,
    os_distro_release: target.distroVersion,
    package_purl: purlOf(target.feed, name, version, arch),
    created_at: seconds(updated - 40 * DAY),
    updated_at: seconds(updated),
  }
  const year = random.between(2019, 2025)
  const detail: PackageDetail = {
    licenses: [random.pick(LICENCES)],
    cves: Array.from({ length: random.between(1, 3) }, (_, n) => `CVE-${year}-${2000 + n * 17}`),
    build_number: exactly(`90071992547${random.between(40993, 99999)}`),
  }
  return { id: listed.id, seq: i, lastModified: updated, listed, detail }
}

const PURL_TYPES: Readonly<Record<string, string>> = {
  alpine: 'apk/alpine',
  debian: 'deb/debian',
  ubuntu: 'deb/ubuntu',
}

/** The package URL of a version, percent-encoded as the purl specification has it. */
export function purlOf(ecosystem: string, name: string, version: string, arch?: string): string {
  const type = PURL_TYPES[ecosystem] ?? ecosystem
  const path = name.split(/[/:]/).map(encodeURIComponent).join('/')
  const qualifier = arch === undefined || arch === 'noarch' ? '' : `?arch=${arch}`
  return `pkg:${type}/${path}@${encodeURIComponent(version)}${qualifier}`
}
