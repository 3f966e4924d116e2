import { clean, compare, valid } from '@renovatebot/pep440'
import { remember } from '../text.ts'
import { apkOrder } from './apk.ts'
import { composerOrder } from './composer.ts'
import { debOrder, dpkgOrder } from './dpkg.ts'
import { gemOrder } from './gem.ts'
import { mavenOrder } from './maven.ts'
import { nugetOrder } from './nuget.ts'
import { type VersionOrder, compareDigits, createOrder, plainDigits } from './order.ts'
import { rpmOrder } from './rpm.ts'
import { bitnamiOrder, goOrder, isSemver, juliaOrder, pubOrder, semverOrder, vendorOrder } from './semver.ts'

/**
 * PyPI: PEP 440, by the library that Renovate keeps (a port of Python's `packaging`, no dependencies). Versions from before
 * PEP 440 have no order; they are found by the list of affected versions alone.
 */
const pypiOrder = createOrder<string>({
  read: (text) => valid(text),
  // its normal form has commas in a local version
  write: (text) =>
    (clean(text) ?? text).replaceAll(',', '.').replace(/^((?:\d+!)?\d+(?:\.\d+)*?)(?:\.0)+(?![.\d])/, '$1'),
  compare: (one, other) => compare(one, other),
  // PEP 440: what names 2.0.1 means 2.0.1+cu118 as well; not what patches it
  isBuildOf(version, named) {
    const [, plain, label = ''] = /^([^+]+)\+(.+)$/.exec(version.trim()) ?? []
    const isPatch = VENDORS.some((vendor) => label.toLowerCase().startsWith(vendor.toLowerCase()))
    if (plain === undefined || isPatch || named.includes('+')) return false
    return valid(plain) !== null && valid(named) !== null && compare(plain, named) === 0
  },
})

/** CRAN, Bioconductor, Hackage and GHC: numbers parted by dots or dashes, compared as lists; the longer list is later. */
const numbersOrder = createOrder<readonly string[]>({
  read(text) {
    return /^\d+(?:[.-]\d+)*$/.test(text) ? text.split(/[.-]/) : null
  },
  write: (parts) => parts.map(plainDigits).join('.'),
  compare(one, other) {
    for (let i = 0; i < Math.min(one.length, other.length); i++) {
      const difference = compareDigits(one[i] ?? '', other[i] ?? '')
      if (difference !== 0) return difference
    }
    return one.length - other.length
  },
})

/**
 * The ecosystems of the OSV schema and the order of their versions, as osv.dev's `_ecosystems.py` has them. Null: none is
 * known, so a version is affected when the record lists it, and by ranges of type SEMVER.
 */
const ORDERS = new Map<string, VersionOrder | null>(
  Object.entries({
    AlmaLinux: rpmOrder,
    Alpaquita: apkOrder,
    Alpine: apkOrder,
    Android: null,
    'Azure Linux': rpmOrder,
    'BellSoft Hardened Containers': apkOrder,
    Bioconductor: numbersOrder,
    Bitnami: bitnamiOrder,
    CRAN: numbersOrder,
    Chainguard: apkOrder,
    CleanStart: apkOrder,
    ConanCenter: null,
    Debian: debOrder,
    'Docker Hardened Images': semverOrder,
    Echo: debOrder,
    FreeBSD: null,
    GHC: numbersOrder,
    GIT: null,
    'GitHub Actions': semverOrder,
    Go: goOrder,
    Hackage: numbersOrder,
    Hex: semverOrder,
    Homebrew: null,
    Julia: juliaOrder,
    Kubernetes: null,
    Linux: null,
    Mageia: rpmOrder,
    Maven: mavenOrder,
    MinimOS: apkOrder,
    NuGet: nugetOrder,
    'OSS-Fuzz': null,
    Packagist: composerOrder,
    'Photon OS': null,
    Pub: pubOrder,
    PyPI: pypiOrder,
    'Red Hat': rpmOrder,
    'Rocky Linux': rpmOrder,
    RubyGems: gemOrder,
    SUSE: rpmOrder,
    SwiftURL: semverOrder,
    Ubuntu: debOrder,
    VSCode: semverOrder,
    Wolfi: apkOrder,
    WordPress: null,
    'crates.io': semverOrder,
    npm: semverOrder,
    openEuler: rpmOrder,
    openSUSE: rpmOrder,
    opam: dpkgOrder,
    vcpkg: null,
  }),
)

/** One or two numbers: the newest of such versions for an action (`v4`), a requirement in registries whose versions have three. */
const PARTIAL = /^[vV=]*\s*(\d+(?:\.\d+)?)(?:[-+].*)?$/

/**
 * Texts that an order reads though they name no single version, by ecosystem; of Packagist a branch, `4.4.x-dev`. Go modules that a
 * `replace` takes from a folder are required as `v0.0.0`, which comes behind all commits of a module without tags.
 */
const OPEN: ReadonlyMap<string | null, RegExp> = new Map([
  ['GitHub Actions', PARTIAL],
  ['Go', /^v?(0\.0\.0)$/],
  ['Hex', PARTIAL],
  ['Packagist', /^v?(\d+(?:\.\d+)*)(?:\.[x*])+[.-]?dev$/i],
  ['Pub', PARTIAL],
  ['crates.io', PARTIAL],
  ['npm', PARTIAL],
])

/** Returns with what each version begins that a text may be, `4` for `v4`; null: it names a single one. */
export function openVersion({ base }: Ecosystem, version: string): string | null {
  return OPEN.get(base)?.exec(version.trim())?.[1] ?? null
}

/**
 * Returns a version in the one form of all its spellings, as the ecosystem compares them: `1.0-rc1` of PyPI is `1.0rc1`. What is no
 * single version stays. So does a build that the order ignores: what patches a version may name the patch there alone.
 */
export function canonicalVersion(ecosystem: Ecosystem, version: string): string {
  const { order } = ecosystem
  if (order?.write === undefined) return version
  const key = openVersion(ecosystem, version) === null ? order.read(version) : null
  if (key === null) return version.trim().replace(/^v(?=\d)/i, '')
  const written = order.write(key)
  const build = written.includes('+') ? '' : (/\+(?!incompatible$).*$/s.exec(version.trim())?.[0] ?? '')
  return written + build
}

/**
 * Vendors that the schema names, whose ecosystems are `Vendor:Base:…`. Others are taken by the same form, ordered as their
 * base.
 */
const VENDORS = ['Root', 'TuxCare']

/** Orders that do not read a vendor's patches, beside SemVer's. */
const WITHOUT_PATCHES: ReadonlySet<VersionOrder | null> = new Set([apkOrder, composerOrder, gemOrder, nugetOrder])

/** Orders of the patches of all vendors, by the order of the base, where that does not read them: a record may be of several. */
const PATCHED = new Map(
  [...ORDERS.values()].flatMap((order) =>
    order !== null && (isSemver(order) || WITHOUT_PATCHES.has(order)) ? [[order, vendorOrder(VENDORS, order)]] : [],
  ),
)

/**
 * Ecosystems whose names may have a release, or another part, behind a colon: those of which the OSV schema says it (1.7.5,
 * `affected[].package`), and three whose records have it: Android, Azure Linux, Docker Hardened Images.
 */
const RELEASED = new Set(
  [
    ['AlmaLinux', 'Alpaquita', 'Alpine', 'Android', 'Azure Linux', 'BellSoft Hardened Containers', 'Debian'],
    ['Docker Hardened Images', 'FreeBSD', 'Mageia', 'Maven', 'Packagist', 'Photon OS', 'Red Hat', 'Rocky Linux'],
    ['SUSE', 'Ubuntu', 'VSCode', 'openEuler', 'openSUSE'],
  ].flat(),
)

/** Whether the name of an ecosystem may have a release behind it, as `Debian:12` and the URL of a repository of Maven. */
export function hasReleases(base: string): boolean {
  return RELEASED.has(base)
}

/** An ecosystem as records and queries name it, such as `Debian:12`, `Root:Alpine:3.18` or `npm`. */
export interface Ecosystem {
  readonly name: string
  /** Null for a vendor's own that names no base. */
  readonly base: string | null
  readonly order: VersionOrder | null
}

/** Returns the names that an ecosystem, or the one that a vendor patches, may begin with. */
export function ecosystemNames(): { readonly names: string[]; readonly vendors: string[] } {
  return { names: [...ORDERS.keys()], vendors: [...VENDORS] }
}

/** Names that are remembered: each element of `affected` has one, and mostly the same. */
const REMEMBERED = { results: 1_000, characters: 100 }

/** Names by their lower case; two of them differ by more than case. */
const SPELLINGS = new Map([...ORDERS.keys(), ...VENDORS].map((name) => [name.toLowerCase(), name]))

/** Returns the name of an ecosystem in the case of the OSV schema: `Root:Debian:12` of `root:debian:12`. What is no name of one stays. */
export const schemaSpelling = remember(spell, REMEMBERED)

function spell(name: string): string {
  const [first = '', ...rest] = name.split(':')
  const known = SPELLINGS.get(first.trim().toLowerCase()) ?? first
  return [known, ...(rest.length > 0 && !ORDERS.has(known) ? [spell(rest.join(':'))] : rest)].join(':')
}

/** Null for an ecosystem that the OSV schema does not define, and that is no vendor's of one it defines. */
export const findEcosystem = remember(ecosystemOf, REMEMBERED)

function ecosystemOf(name: string): Ecosystem | null {
  const [first = '', second = ''] = name.split(':')
  const order = ORDERS.get(first)
  if (order !== undefined) return { name, base: first, order }
  const based = ORDERS.get(second)
  if (based === undefined) return VENDORS.includes(first) ? { name, base: null, order: null } : null
  const patched = based !== null && VENDORS.includes(first) ? PATCHED.get(based) : undefined
  return { name, base: second, order: patched ?? based }
}
