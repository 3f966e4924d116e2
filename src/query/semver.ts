import { SemVer } from 'semver'
import { createOrder } from './order.ts'

/**
 * Semantic Versioning: npm, Go, crates.io, Hex and others, and every range of type SEMVER. The order is that of npm's own
 * `semver` (the reference implementation for npm, no dependencies). Records and lockfiles are laxer than SemVer, so a
 * leading `v`, missing parts and leading zeros are read as osv.dev reads them: `v1.02` is 1.2.0.
 */
export const semverOrder = createOrder<SemVer>({
  read: readSemver,
  compare: (one, other) => one.compare(other),
})

/** Pub compares the build too: 1.0.0 comes before 1.0.0+1. */
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
