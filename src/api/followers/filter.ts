import { MirrorError } from '../../core/errors.ts'
import type { PackageName } from '../../differences/facts.ts'
import { isMeant } from '../../identity/meant.ts'
import { normalName } from '../../identity/names.ts'
import { purlNames, readPurl } from '../../identity/package.ts'
import { findEcosystem } from '../../query/orders/ecosystems.ts'

/** The packages that a client asks about. */
export interface PackageFilter {
  /** Whether a package of a record is one of them. */
  readonly asks: (recorded: PackageName) => boolean
}

/** Packages as purls name them, and how many other purls there are. */
interface PurlFilter {
  readonly filter: PackageFilter
  /** Number of different packages. */
  readonly packages: number
  /** Number of purls that are none, or of no ecosystem that OSV records name. */
  readonly unknown: number
}

/** Reads the filters of a request or a command; null for none. Throws `bad_request`. */
export function readFilter(ecosystem: string | null, purl: string | null): PackageFilter | null {
  if (purl !== null) {
    const named = readPurl(purl)
    if (named === null)
      throw new MirrorError('bad_request', `the purl ${purl.slice(0, 100)} is of no ecosystem that OSV records name`) // prettier-ignore
    if (ecosystem !== null)
      throw new MirrorError('bad_request', 'a purl names the ecosystem: omit ecosystem')
    return filterOf([named])
  }
  if (ecosystem === null) return null
  if (findEcosystem(ecosystem) === null)
    throw new MirrorError('bad_request', `the ecosystem ${ecosystem.slice(0, 100)} is none that the OSV schema defines, such as npm, PyPI or Debian:12`) // prettier-ignore
  return {
    asks: (recorded) => formsOf(recorded.ecosystem).some((form) => isMeant(form, ecosystem)),
  }
}

/** Creates a filter of the packages that an SBOM lists, whatever their versions. */
export function filterOfPurls(purls: Iterable<string>): PurlFilter {
  const named = new Map<string, PackageName>()
  let unknown = 0
  for (const purl of new Set(purls)) {
    const found = purlNames(purl)
    if (found === null) unknown++
    else named.set(`${found.ecosystem} ${found.name}`, { ecosystem: found.ecosystem, name: found.name }) // prettier-ignore
  }
  return { filter: filterOf([...named.values()]), packages: named.size, unknown }
}

function filterOf(asked: readonly PackageName[]): PackageFilter {
  const byName = Map.groupBy(asked, ({ name }) => looseName(name))
  return {
    asks: (recorded) =>
      (byName.get(looseName(recorded.name)) ?? []).some((one) => isSame(recorded, one)),
  }
}

/** Equal for names that any ecosystem may take as the same. */
function looseName(name: string): string {
  return normalName('PyPI', name)
}

function isSame(recorded: PackageName, asked: PackageName): boolean {
  const base = findEcosystem(recorded.ecosystem)?.base ?? null
  if (normalName(base, recorded.name) !== normalName(base, asked.name)) return false
  return formsOf(recorded.ecosystem).some((form) => isMeant(form, asked.ecosystem))
}

/** An ecosystem as a record names it, and without the vendor who patches it: scanners ask for `Maven`, not `Root:Maven`. */
function formsOf(recorded: string): string[] {
  const plain = withoutVendor(recorded)
  return plain === recorded ? [recorded] : [recorded, plain]
}

/** Returns an ecosystem without the vendor who patches it: `Maven` of `Root:Maven`; any other as it is. */
export function withoutVendor(ecosystem: string): string {
  const [, second] = ecosystem.split(':')
  const isPatched = second !== undefined && findEcosystem(ecosystem)?.base === second
  return isPatched ? ecosystem.slice(ecosystem.indexOf(':') + 1) : ecosystem
}
