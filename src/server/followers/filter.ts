import { surroundingsOf } from '../../base/identity/surroundings.ts'
import { MirrorError } from '../../base/errors.ts'
import type { PackageName } from '../../documents/differences/facts.ts'
import { isMeant } from '../../base/identity/meant.ts'
import { normalName } from '../../base/identity/names.ts'
import { type ComponentFacts, type Surroundings, identifyComponent } from '../../base/identity/identity.ts'
import type { InputSbom } from '../../documents/sboms/sbom.ts'
import { ecosystemNames, findEcosystem } from '../../base/versions/ecosystems.ts'

/** The packages that a client asks about. */
export interface PackageFilter {
  /** Whether a package of a record is one of them. */
  readonly asks: (recorded: PackageName) => boolean
  /** Equal for filters that ask for the same packages: a list continues with its own filter alone. */
  readonly key: string
}

/** Packages as purls name them, and how many other purls there are. */
interface PurlFilter {
  readonly filter: PackageFilter
  /** Number of different packages. */
  readonly packages: number
  /** Number of other packages: without a purl, with one that is none, or of no ecosystem that OSV records name. */
  readonly unknown: number
}

/** Reads the filters of a request or a command; null for none. Throws `bad_request`. */
export function readFilter(ecosystem: string | null, purl: string | null): PackageFilter | null {
  if (purl !== null) {
    const asked = namesAsked({ purl, name: '', version: '', source: null }, { distribution: null })
    if ('code' in asked && asked.code === 'bad_purl') throw noPurl(purl, asked.reason)
    if ('code' in asked)
      throw new MirrorError('bad_request', `the purl ${purl.slice(0, 100)} is of no ecosystem that OSV records name`)
    if (ecosystem !== null) throw new MirrorError('bad_request', 'a purl names the ecosystem: omit ecosystem')
    return filterOf(asked.names)
  }
  if (ecosystem === null) return null
  if (findEcosystem(ecosystem) === null) throw unknownEcosystem(ecosystem)
  return {
    asks: (recorded) => formsOf(recorded.ecosystem).some((form) => isMeant(form, ecosystem)),
    key: ecosystem,
  }
}

function noPurl(purl: string, reason: string): MirrorError {
  const message = `"${purl.slice(0, 100)}" is no package URL: write pkg:TYPE/NAME, such as pkg:npm/express (${reason})`
  return new MirrorError('bad_request', message)
}

/** Names the ecosystem that only the case of letters tells from what is asked for: names are compared as the schema has them. */
function unknownEcosystem(asked: string): MirrorError {
  const { names, vendors } = ecosystemNames()
  const known = new Map([...vendors, ...names].map((name) => [name.toLowerCase(), name]))
  const written = asked.split(':').map((part) => known.get(part.toLowerCase()) ?? part)
  const other = written.join(':')
  const hint =
    findEcosystem(other) === null ? ', such as npm, PyPI or Debian:12' : `: it is written ${other.slice(0, 100)}`
  const message = `the ecosystem ${asked.slice(0, 100)} is none that the OSV schema defines${hint}`
  return new MirrorError('bad_request', message)
}

/** Creates a filter of the packages that an SBOM lists, and of their source packages, by their releases, whatever their versions. */
export function filterOfSboms(sboms: readonly InputSbom[]): PurlFilter {
  const asked = new Map<string, PackageName>()
  const packages = new Set<string>()
  const unknown = new Set<string>()
  for (const { components, systems } of sboms) {
    const around = surroundingsOf({ systems, option: null })
    for (const one of components) {
      if (one.purl === null && one.kind !== null) continue
      const found = namesAsked(one, around)
      if ('code' in found) {
        unknown.add(one.purl ?? JSON.stringify([one.name, one.version]))
        continue
      }
      const [own] = found.names
      if (own !== undefined) packages.add(keyOf(own))
      for (const name of found.names) asked.set(keyOf(name), name)
    }
  }
  return { filter: filterOf([...asked.values()]), packages: packages.size, unknown: unknown.size }
}

/** Returns the names by which records may have a component, its own first: that of its source package, and of what it is a part of. */
function namesAsked(facts: ComponentFacts, around: Surroundings) {
  const found = identifyComponent({ ...facts, version: facts.version || ANY_VERSION }, around)
  if ('code' in found) return found
  return { names: found.questions.map(({ ecosystem, name }): PackageName => ({ ecosystem: ecosystem.name, name })) }
}

/** Stands for the version of a component without one: versions are not compared here. */
const ANY_VERSION = '0'

function keyOf({ ecosystem, name }: PackageName): string {
  return `${ecosystem} ${name}`
}

function filterOf(asked: readonly PackageName[]): PackageFilter {
  const byName = Map.groupBy(asked, ({ name }) => looseName(name))
  return {
    asks: (recorded) => (byName.get(looseName(recorded.name)) ?? []).some((one) => isSame(recorded, one)),
    key: asked.map(keyOf).sort().join(),
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
