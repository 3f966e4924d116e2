import { identifyComponent } from '../identity/identity.ts'
import { surroundingsOf } from '../identity/surroundings.ts'
import type { InputSbom } from '../sboms/sbom.ts'

/** What an SBOM lost that replaces another one. */
interface LostComponents {
  readonly lost: readonly LostComponent[]
  /** Number of packages that the earlier one has. */
  readonly before: number
  /** Whether both describe the same image and little came for what went: another generator names other packages, but no fewer. */
  readonly isShrunk: boolean
}

interface LostComponent {
  /** The package, without a version. */
  readonly name: string
  /** What became of it, in words. */
  readonly because: string
}

/** A package in an ecosystem, of which records are asked. */
interface Asked {
  readonly ecosystem: string
  readonly name: string
}

/**
 * Compares an SBOM with the one that it replaces: packages that are in no version there any more, and those of which other
 * records are asked, since their source package or release is gone or another one. `after`: null where it cannot be read.
 */
export function lostComponents(before: InputSbom, after: InputSbom | null): LostComponents {
  const old = packagesOf(before)
  const now = after === null ? new Map<string, Asked[]>() : packagesOf(after)
  const lost = [...old].flatMap(([name, asked]): LostComponent[] => {
    const left = now.get(name)
    if (left === undefined) return [{ name, because: 'not in the SBOM any more' }]
    const gone = asked.find((one) => !left.some((other) => isSamePackage(one, other)))
    return gone === undefined ? [] : [{ name, because: `not compared as ${gone.name} of ${gone.ecosystem} any more` }]
  })
  const come = [...now.keys()].filter((name) => !old.has(name)).length
  const isShrunk = after === null || (isSameImage(before, after) && come < lost.length / 2)
  return { lost, before: old.size, isShrunk }
}

/** Returns the packages of an SBOM without versions, since an upgrade is no loss, and what records are asked of for each. */
function packagesOf({ components, systems }: InputSbom): Map<string, Asked[]> {
  const around = surroundingsOf({ systems, option: null })
  const packages = new Map<string, Asked[]>()
  for (const component of components) {
    const { purl, name } = component
    const key = purl === null ? name : withoutVersion(purl)
    const asked = packages.get(key) ?? []
    packages.set(key, asked)
    const identity = identifyComponent(component, around)
    const questions = 'code' in identity ? [] : identity.questions
    for (const one of questions) asked.push({ ecosystem: one.ecosystem.name, name: one.name })
  }
  return packages
}

/** An ecosystem without a release may be any release of it. */
function isSamePackage(one: Asked, other: Asked): boolean {
  const isWithin = (inner: Asked, outer: Asked) => `${inner.ecosystem}:`.startsWith(`${outer.ecosystem}:`)
  return one.name === other.name && (isWithin(one, other) || isWithin(other, one))
}

/** A package URL without version, qualifiers and subpath. */
function withoutVersion(purl: string): string {
  const name = purl.replace(/[?#].*$/s, '')
  const at = name.lastIndexOf('@')
  return at > name.lastIndexOf('/') ? name.slice(0, at) : name
}

/** By the package URLs with their digest or version, or where there are none by the names. */
function isSameImage(one: InputSbom, other: InputSbom): boolean {
  const known = new Set(one.subjects)
  if (one.subjects.length + other.subjects.length === 0) return one.name === other.name
  return other.subjects.some((subject) => known.has(subject))
}
