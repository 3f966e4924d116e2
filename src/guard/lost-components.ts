import { identifyComponent } from '../base/identity/identity.ts'
import { surroundingsOf } from '../base/identity/surroundings.ts'
import type { Ecosystem } from '../base/versions/ecosystems.ts'
import type { InputSbom } from '../documents/sboms/sbom.ts'

/** What an SBOM lost that replaces another one. */
interface LostComponents {
  readonly lost: readonly LostComponent[]
  /** Package URLs that records found anything by and that are not there as they were, in another version included. */
  readonly left: ReadonlySet<string>
  /** Number of packages that the earlier one has. */
  readonly before: number
  /** Whether both describe the same image and little came for what went: another generator names other packages, but no fewer. */
  readonly isShrunk: boolean
  /** Whether both are of one digest: the same image has the same components in the same versions. */
  readonly isSameDigest: boolean
}

/** Names a package that an SBOM lost. */
export interface LostComponent {
  /** The package, without a version. */
  readonly name: string
  /** What became of it, in words. */
  readonly because: string
  /** Its package URLs that are not there as they were. */
  readonly purls: readonly string[]
}

/** What is known of the digests of the images that two SBOMs are of; null: nothing. */
export type DigestEvidence = 'same' | 'other' | null

/** A package in an ecosystem and a version, of which records are asked. */
interface Asked {
  readonly ecosystem: Ecosystem
  readonly name: string
  readonly version: string
}

/** A component, and what records are asked of for it. */
interface Listed {
  readonly purl: string
  readonly asked: readonly Asked[]
}

/**
 * Compares an SBOM with the one that it replaces: packages that are in no version there any more, and those of which other
 * records are asked, since their source package or release is gone or another one. In an SBOM of the same digest, a package in
 * another version is lost as well. `after`: null where it cannot be read.
 */
export function lostComponents(before: InputSbom, after: InputSbom | null, listed: DigestEvidence): LostComponents {
  const old = packagesOf(before)
  const now = after === null ? new Map<string, Listed[]>() : packagesOf(after)
  const isSameDigest = listed === 'same' || (after !== null && hasSameDigest(before, after))
  const lost: LostComponent[] = []
  const left = new Set<string>()
  for (const [name, ones] of old) {
    const found = lostOf(ones, now.get(name), isSameDigest)
    for (const purl of found.left) left.add(purl)
    if (found.because !== null) lost.push({ name, because: found.because, purls: found.left })
  }
  const come = [...now.keys()].filter((name) => !old.has(name)).length
  const isSame = after !== null && listed !== 'other' && isSameImage(before, after)
  const isMissing = after === null && listed !== 'other'
  const isShrunk = isMissing || isSameDigest || (isSame && come < lost.length / 2)
  return { lost, left, before: old.size, isShrunk, isSameDigest }
}

/** Says what became of the components of one package; `because`: null for one that is not lost. */
function lostOf(
  ones: readonly Listed[],
  now: readonly Listed[] | undefined,
  isSameDigest: boolean,
): { because: string | null; left: string[] } {
  if (now === undefined) return { because: 'not in the SBOM any more', left: ones.map(({ purl }) => purl) }
  const all = now.flatMap(({ asked }) => asked)
  const isThere = createLookUp(all)
  const left: string[] = []
  let gone: Asked | null = null
  let moved: Asked | null = null
  for (const { purl, asked } of ones) {
    const missing = asked.find((one) => !isThere(one))
    if (missing === undefined) continue
    left.push(purl)
    moved ??= missing
    gone ??= asked.find((one) => !all.some((other) => isSamePackage(one, other))) ?? null
  }
  if (gone !== null) return { because: `not compared as ${gone.name} of ${gone.ecosystem.name} any more`, left }
  if (moved === null || !isSameDigest) return { because: null, left }
  const { version } = moved
  return { because: `its version ${version} became ${all[0]?.version ?? 'none'} in the same image`, left }
}

/** Versions of one package that are compared with each: above, only equal texts are. */
const MOST_VERSIONS = 200

/** Creates the function that looks up a package in its version. */
function createLookUp(all: readonly Asked[]): (one: Asked) => boolean {
  const keyOf = ({ ecosystem, name, version }: Asked): string => JSON.stringify([ecosystem.name, name, version])
  const known = new Set(all.map(keyOf))
  const compared = all.slice(0, MOST_VERSIONS)
  return (one) => known.has(keyOf(one)) || compared.some((other) => isSameVersion(one, other))
}

/** Returns the packages of an SBOM without versions, and what records are asked of for each. */
function packagesOf({ components, systems }: InputSbom): Map<string, Listed[]> {
  const around = surroundingsOf({ systems, option: null })
  const packages = new Map<string, Listed[]>()
  for (const component of components) {
    const { purl, name } = component
    const key = purl === null ? name : withoutVersion(purl)
    const listed = packages.get(key) ?? []
    packages.set(key, listed)
    const identity = identifyComponent(component, around)
    listed.push({ purl: purl ?? name, asked: 'code' in identity ? [] : identity.questions })
  }
  return packages
}

/** An ecosystem without a release may be any release of it. */
function isSamePackage(one: Asked, other: Asked): boolean {
  const isWithin = (inner: Asked, outer: Asked) => `${inner.ecosystem.name}:`.startsWith(`${outer.ecosystem.name}:`)
  return one.name === other.name && (isWithin(one, other) || isWithin(other, one))
}

/** By the order of the ecosystem, since a version may be written in several ways. */
function isSameVersion(one: Asked, other: Asked): boolean {
  if (!isSamePackage(one, other)) return false
  if (one.version === other.version) return true
  const { order } = one.ecosystem
  const key = order?.read(one.version) ?? null
  const otherKey = order?.read(other.version) ?? null
  return order !== null && key !== null && otherKey !== null && order.compare(key, otherKey) === 0
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

/** Whether both say that they describe an image of the same digest. */
function hasSameDigest(one: InputSbom, other: InputSbom): boolean {
  const known = new Set(one.subjects.flatMap(digestsIn))
  return other.subjects.flatMap(digestsIn).some((digest) => known.has(digest))
}

function digestsIn(subject: string): string[] {
  return (
    subject.match(/sha(?:256|512)(?::|%3a)[0-9a-f]{64,128}/gi)?.map((text) => text.toLowerCase().replace('%3a', ':')) ??
    []
  )
}
