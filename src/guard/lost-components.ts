import type { InputSbom } from '../sboms/sbom.ts'

/** What an SBOM lost that replaces another one. */
interface LostComponents {
  /** Names of packages that are in no version there any more. */
  readonly names: readonly string[]
  /** Number of packages that the earlier one has. */
  readonly before: number
  /** Whether both describe the same image and little came for what went: another generator names other packages, but no fewer. */
  readonly isShrunk: boolean
}

/** Compares an SBOM with the one that it replaces; `after`: null where it cannot be read. */
export function lostComponents(before: InputSbom, after: InputSbom | null): LostComponents {
  const old = packagesOf(before)
  const now = after === null ? new Set<string>() : packagesOf(after)
  const names = [...old].filter((name) => !now.has(name))
  const come = [...now].filter((name) => !old.has(name)).length
  const isShrunk = after === null || (isSameImage(before, after) && come < names.length / 2)
  return { names, before: old.size, isShrunk }
}

function packagesOf({ components }: InputSbom): Set<string> {
  return new Set(components.map(({ purl, name }) => (purl === null ? name : withoutVersion(purl))))
}

/** A package URL without version, qualifiers and subpath: an upgrade is no loss. */
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
