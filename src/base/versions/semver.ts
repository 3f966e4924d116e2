import SemVer from 'semver/classes/semver.js'
import { type VersionOrder, compareDigits, compareText, createOrder } from './order.ts'

/**
 * Semantic Versioning: npm, crates.io, Hex and others, and ranges of type SEMVER. Versions are read by npm's own `semver`
 * (the reference implementation for npm, no dependencies). Records and lockfiles are laxer than SemVer, so a leading `v`,
 * missing parts and leading zeros are read as osv.dev reads them: `v1.02` is 1.2.0.
 */
export const semverOrder = createOrder<SemVer>({ read: readSemver, write, compare: comparePrecedence })

/** Pub compares the build too: 1.0.0 precedes 1.0.0+1. */
export const pubOrder = createOrder<SemVer>({
  read: readSemver,
  write,
  compare: compareWithBuild,
  refinesSemver: true,
})

/** Julia compares the build as well, which its packages of binaries count up, and reads `1.2rc1` as 1.2.0-rc1. */
export const juliaOrder = createOrder<SemVer>({
  read: (text) => readSemver(text) ?? readSemver(text.replace(/^(v?[\d.]+)(?=[a-z])/i, '$1-')),
  write,
  compare: compareWithBuild,
  refinesSemver: true,
})

/** Bitnami: what stands behind the hyphen is a revision, which comes behind the version without one. */
export const bitnamiOrder = createOrder<SemVer>({
  read: readSemver,
  write,
  compare: (one, other) =>
    one.compareMain(other) ||
    Number(one.prerelease.length > 0) - Number(other.prerelease.length > 0) ||
    compareIdentifiers(one.prerelease, other.prerelease),
  refinesSemver: true,
})

/** Go: SemVer's, and the releases of Go itself as their tags have them: `go1.21rc2` is 1.21.0-rc.2. */
export const goOrder = createOrder<SemVer>({
  read: (text) => readSemver(text) ?? readSemver(text.replace(/^(?:go)?([\d.]+?)(?:(rc|beta)(\d+))?$/, tagOf)),
  write: (version) => write(version).replace(/\+incompatible$/, ''),
  compare: comparePrecedence,
  refinesSemver: true,
})

/** The build stays: what patches a version may name the patch there alone. */
function write({ version, build }: SemVer): string {
  return build.length === 0 ? version : `${version}+${build.join('.')}`
}

function tagOf(_: string, numbers: string, word: string | undefined, count = ''): string {
  return word === undefined ? numbers : `${numbers}-${word}.${count}`
}

/** Returns the order of a range's versions by its type, in an ecosystem with an order of its own; null for commits. */
export function orderOfType(type: unknown, own: VersionOrder | null): VersionOrder | null {
  if (type === 'ECOSYSTEM') return own
  if (type !== 'SEMVER') return null
  return own?.refinesSemver === true ? own : semverOrder
}

function comparePrecedence(one: SemVer, other: SemVer): number {
  return (
    one.compareMain(other) ||
    Number(one.prerelease.length === 0) - Number(other.prerelease.length === 0) ||
    compareIdentifiers(one.prerelease, other.prerelease)
  )
}

function compareWithBuild(one: SemVer, other: SemVer): number {
  return comparePrecedence(one, other) || compareIdentifiers(one.build, other.build)
}

/** Ours, because npm's reads the numbers as floats: dates with a time of day outgrow 2^53. Numbers come before words. */
function compareIdentifiers(one: readonly (string | number)[], other: readonly (string | number)[]): number {
  const shared = Math.min(one.length, other.length)
  for (let i = 0; i < shared; i++) {
    const a = String(one[i])
    const b = String(other[i])
    if (a === b) continue
    const areNumbers = [isNumber(a), isNumber(b)]
    if (areNumbers[0] !== areNumbers[1]) return areNumbers[0] === true ? -1 : 1
    const difference = areNumbers[0] === true ? compareDigits(a, b) : compareText(a, b)
    if (difference !== 0) return difference
  }
  return one.length - other.length
}

function isNumber(identifier: string): boolean {
  return /^\d+$/.test(identifier)
}

const LAX = /^[vV=]*\s*(\d+)(?:\.(\d+))?(?:\.(\d+))?(-[^+]+)?(\+.*)?$/

function readSemver(text: string): SemVer | null {
  const [found, major = '0', minor = '0', patch = '0', before = '', build = ''] = LAX.exec(text) ?? []
  if (found === undefined) return null
  const core = [major, minor, patch].map((digits) => digits.replace(/^0+(?=\d)/, '')).join('.')
  try {
    return new SemVer(core + before + build, { loose: true })
  } catch {
    return null // such as parts beyond 2^53, or a prerelease with other characters
  }
}

/** Whether an order is SemVer's, or has more distinctions. */
export function isSemver(order: VersionOrder): boolean {
  return order === semverOrder || order.refinesSemver === true
}

interface PatchedVersion {
  readonly upstream: unknown
  /** The vendor's patch of that version; empty for upstream's own. */
  readonly patch: string
}

/**
 * A vendor's ecosystem whose base has an order, as SemVer's, that reads no patches: `4.2.1-root.io.2`, or `4.2.1-tuxcare.2`, is the
 * second patch of 4.2.1. SemVer alone takes that for a prerelease of 4.2.1, so that the unpatched 4.2.1 would pass for fixed; osv.dev
 * too orders it in front. So do RubyGems and NuGet; Packagist and apk cannot read it. Other orders put such versions right.
 */
export function vendorOrder(vendors: readonly string[], base: VersionOrder): VersionOrder<PatchedVersion> {
  const form = new RegExp(`^(.+?)[-+.](?:${vendors.join('|')})(?:\\.?io)?(?:\\.(\\d+))?$`, 'i')
  return createOrder<PatchedVersion>({
    read(text) {
      const [found, version = text, number = '0'] = form.exec(text) ?? []
      const patch = found === undefined ? '' : number
      const upstream = base.read(version)
      return upstream === null ? null : { upstream, patch }
    },
    compare: (one, other) =>
      base.compare(one.upstream, other.upstream) ||
      Number(one.patch !== '') - Number(other.patch !== '') ||
      compareDigits(one.patch, other.patch),
    refinesSemver: isSemver(base),
    hasRevisions: base.hasRevisions ?? false,
  })
}
