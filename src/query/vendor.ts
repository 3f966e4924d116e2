import { type VersionOrder, compareDigits, createOrder } from './order.ts'
import { semverOrder } from './semver.ts'

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
