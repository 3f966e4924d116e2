import type { Config } from '../config/schema.ts'

/**
 * Ecosystems that scanners know by themselves (OSV schema, `affected[].package.ecosystem`). A vendor's own, such as
 * `Root`, is none of them.
 */
const BASES: ReadonlySet<string> = new Set([
  ...['AlmaLinux', 'Alpaquita', 'Alpine', 'Android', 'Azure Linux', 'BellSoft Hardened Containers'],
  ...['Bioconductor', 'Bitnami', 'Chainguard', 'CleanStart', 'ConanCenter', 'CRAN', 'crates.io'],
  ...['Debian', 'Echo', 'GHC', 'GitHub Actions', 'Go', 'Hackage', 'Hex', 'Homebrew', 'Julia'],
  ...['Kubernetes', 'Linux', 'Mageia', 'Maven', 'MinimOS', 'npm', 'NuGet', 'opam', 'openEuler'],
  ...['openSUSE', 'OSS-Fuzz', 'Packagist', 'Photon OS', 'Pub', 'PyPI', 'Red Hat', 'Rocky Linux'],
  ...['RubyGems', 'SUSE', 'SwiftURL', 'Ubuntu', 'VSCode', 'Wolfi'],
])

/** Vendors whose ecosystems the OSV schema has. */
const VENDORS: ReadonlySet<string> = new Set(['Root', 'TuxCare'])

/** Whether a folder's name is an ecosystem's, or a vendor's, of the OSV schema. */
export function isKnownEcosystem(name: string): boolean {
  return BASES.has(name) || VENDORS.has(name)
}

/** The vendors whose prefixes the settings have taken off; none where there are no derived views. */
export function derivedVendors({
  derived,
  vendors,
}: Pick<Config['views'], 'derived' | 'vendors'>): readonly string[] {
  return derived ? vendors : []
}

/** An ecosystem without its vendor's prefix. */
export interface Stripped {
  readonly prefix: string
  /** The ecosystem that the prefix stood before, such as `Debian`. */
  readonly base: string
  /** As scanners ask for it: several where they ask in several ways. At least one. */
  readonly ecosystems: readonly [string, ...string[]]
}

/**
 * Takes a vendor's prefix off: `Root:Debian:12` is `Debian:12` and `Root:npm` is `npm`. Null when there is none: what
 * stands before the first colon is a prefix only when `vendors` has it and an ecosystem of the OSV schema follows.
 */
export function stripPrefix(ecosystem: string, vendors: ReadonlySet<string>): Stripped | null {
  const colon = ecosystem.indexOf(':')
  const prefix = ecosystem.slice(0, Math.max(0, colon))
  if (!vendors.has(prefix) || BASES.has(prefix)) return null
  const [base = '', ...release] = ecosystem.slice(colon + 1).split(':')
  if (!BASES.has(base)) return null
  const suffix = release.join(':')
  if (suffix === '') return { prefix, base, ecosystems: [base] }
  const [first, ...more] = spellRelease(base, suffix)
  return { prefix, base, ecosystems: [`${base}:${first}`, ...more.map((one) => `${base}:${one}`)] }
}

/**
 * A release as osv-scanner and osv-scalibr derive it from a scanned system, for they compare the text: Alpine's with a `v`
 * and two numbers (`v3.18`), Debian's and Ubuntu's by number where a code name stands, all others as they are. An LTS release
 * of Ubuntu in two ways: a scanned file system asks for `22.04`, an SBOM for `22.04:LTS`.
 */
function spellRelease(base: string, suffix: string): [string, ...string[]] {
  if (base === 'Alpine') return [suffix.replace(/^(\d+\.\d+)(\.\d+)*$/, 'v$1')]
  if (base === 'Debian') return [DEBIAN.get(suffix) ?? suffix.replace(/^(\d+)(\.\d+)+$/, '$1')]
  if (base !== 'Ubuntu') return [suffix]
  const plain = suffix.replace(/:LTS$/, '')
  const release = UBUNTU_LTS.get(plain) ?? plain.replace(/^(\d+\.\d+)(\.\d+)+$/, '$1')
  // `Pro:…`, `FIPS:…` and the like name other packages than the plain release has: they stay what they are.
  if (!/^\d+\.\d+$/.test(release)) return [suffix]
  return isLongTerm(release) ? [release, `${release}:LTS`] : [release]
}

/** Ubuntu's LTS releases: those of April in even years. */
function isLongTerm(release: string): boolean {
  const [, year = ''] = /^(\d+)\.04$/.exec(release) ?? []
  return year !== '' && Number(year) % 2 === 0
}

const DEBIAN: ReadonlyMap<string, string> = new Map([
  ['jessie', '8'],
  ['stretch', '9'],
  ['buster', '10'],
  ['bullseye', '11'],
  ['bookworm', '12'],
  ['trixie', '13'],
  ['forky', '14'],
])

const UBUNTU_LTS: ReadonlyMap<string, string> = new Map([
  ['trusty', '14.04'],
  ['xenial', '16.04'],
  ['bionic', '18.04'],
  ['focal', '20.04'],
  ['jammy', '22.04'],
  ['noble', '24.04'],
  ['resolute', '26.04'],
])
