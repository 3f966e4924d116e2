import type { ParsedUrl } from './purl.ts'

/** The package of a distribution that a binary package is built from. */
export interface SourcePackage {
  readonly name: string
  /** '': not known. */
  readonly version: string
}

/**
 * Returns the source package of a distribution's package: what its package URL names (`upstream=`), with the version that the
 * SBOM gives for it beside. `version`: the package's own, which the source has where nothing else is said. Null: not known.
 */
export function sourcePackageOf(url: ParsedUrl, stated: SourcePackage | null, version: string): SourcePackage | null {
  const named = upstreamOf(url, version)
  const source = named ?? stated
  if (source === null || source.name === '') return null
  const known = source.version || (stated?.name === source.name ? stated.version : '')
  return { name: source.name, version: known || ownVersion(url.type, version) }
}

/** In `upstream`, or in `source`: `openssl`, `openssl@3.0.1` (syft), and for rpm the file of the source package. */
function upstreamOf({ type, qualifiers }: ParsedUrl, version: string): SourcePackage | null {
  // the library takes a plus sign that is not escaped for a space
  const qualifier = qualifiers?.['upstream'] ?? qualifiers?.['source'] ?? ''
  const text = qualifier.trim().replaceAll(' ', '+')
  if (text === '') return null
  const file = /^(.+)-([^-]+-[^-]+)\.(?:no)?src\.rpm$/.exec(text)
  if (file !== null) return { name: file[1] ?? '', version: epochOf(version) + (file[2] ?? '') }
  const at = text.indexOf('@')
  if (at <= 0) return { name: text, version: '' }
  const named = text.slice(at + 1)
  const hasEpoch = type !== 'rpm' || named.includes(':') || named === ''
  return { name: text.slice(0, at), version: hasEpoch ? named : epochOf(version) + named }
}

/** `1:` of `1:3.0.7-25.el9`; the packages of one source have one epoch in most cases, and file names have none. */
function epochOf(version: string): string {
  return /^\d+:/.exec(version)?.[0] ?? ''
}

/** Without the number that Debian gives a package when it is built again from the same source: `+b1`. */
function ownVersion(type: string, version: string): string {
  return type === 'deb' ? version.replace(/\+b\d+$/, '') : version
}
