import SemVer from 'semver/classes/semver.js'
import { type VersionOrder, createOrder, compareDigits } from './order.ts'

/**
 * Semantic Versioning: npm, Go, crates.io, Hex and others, and every range of type SEMVER. The order is that of npm's own
 * `semver` (the reference implementation for npm, no dependencies). Records and lockfiles are laxer than SemVer, so a
 * leading `v`, missing parts and leading zeros are read as osv.dev reads them: `v1.02` is 1.2.0.
 */
export const semverOrder = createOrder<SemVer>({
  read: readSemver,
  compare: (one, other) => one.compare(other),
})

/** Pub compares the build too: 1.0.0 precedes 1.0.0+1. */
export const pubOrder = createOrder<SemVer>({
  read: readSemver,
  compare: (one, other) => one.compare(other) || one.compareBuild(other),
})

const LAX = /^[vV=]*\s*(\d+)(?:\.(\d+))?(?:\.(\d+))?(-[^+]+)?(\+.*)?$/

function readSemver(text: string): SemVer | null {
  const [found, major = '0', minor = '0', patch = '0', before = '', build = ''] =
    LAX.exec(text) ?? []
  if (found === undefined) return null
  const core = [major, minor, patch].map((digits) => digits.replace(/^0+(?=\d)/, '')).join('.')
  try {
    return new SemVer(core + before + build, { loose: true })
  } catch {
    return null // such as parts beyond 2^53, or a prerelease with other characters
  }
}

interface PatchedVersion {
  readonly upstream: unknown
  /** The vendor's patch of that version; empty for upstream's own. */
  readonly patch: string
}

/**
 * A vendor's ecosystem with SemVer's order, where `4.2.1-root.io.2` is the second patch of 4.2.1. SemVer alone takes that
 * for a prerelease of 4.2.1, so that the unpatched 4.2.1 would pass for fixed; osv.dev too orders it in front. Elsewhere
 * the order of the base puts such versions right.
 */
export function vendorOrder(vendor: string): VersionOrder<PatchedVersion> {
  const form = new RegExp(`^(.+?)[-+.]${vendor}\\.io\\.(\\d+)$`, 'i')
  return createOrder<PatchedVersion>({
    read(text) {
      const [, version = text, patch = ''] = form.exec(text) ?? []
      const upstream = semverOrder.read(version)
      return upstream === null ? null : { upstream, patch }
    },
    compare: (one, other) =>
      semverOrder.compare(one.upstream as never, other.upstream as never) ||
      Number(one.patch !== '') - Number(other.patch !== '') ||
      compareDigits(one.patch, other.patch),
  })
}
