import type { ParsedUrl } from './purl.ts'

/** The package of a distribution that a binary package is built from. */
export interface SourcePackage {
  readonly name: string
  /** '': not known. */
  readonly version: string
}

/**
 * Returns the source package of a distribution's package: what its package URL names (`upstream=`), with the version that the
 * SBOM gives for it beside. `version`: the package's own, which the source has where nothing else is said. A source whose
 * version is named without an epoch has that of the package. Null: not known.
 */
export function sourcePackageOf(url: ParsedUrl, stated: SourcePackage | null, version: string): SourcePackage | null {
  const named = upstreamOf(url)
  const source = named ?? stated
  if (source === null || source.name === '') return null
  const known = source.version || (stated?.name === source.name ? stated.version : '')
  return { name: source.name, version: withEpoch(url.type, known, ownVersion(url.type, version)) }
}

/** In `upstream`, or in `source`: `openssl`, `openssl@3.0.1` (syft), and for rpm the file of the source package. */
function upstreamOf({ qualifiers }: ParsedUrl): SourcePackage | null {
  // the library takes a plus sign that is not escaped for a space
  const qualifier = qualifiers?.['upstream'] ?? qualifiers?.['source'] ?? ''
  const text = qualifier.trim().replaceAll(' ', '+')
  if (text === '') return null
  const file = /^(.+)-([^-]+-[^-]+)\.(?:no)?src\.rpm$/.exec(text)
  if (file !== null) return { name: file[1] ?? '', version: file[2] ?? '' }
  const at = text.indexOf('@')
  if (at <= 0) return { name: text, version: '' }
  return { name: text.slice(0, at), version: text.slice(at + 1) }
}

/**
 * Returns the version of a source with its epoch; `own`: that of the package, which it has where none is named. Of rpm neither
 * file names nor all generators name the epoch, and the packages of one source have one in most cases. Of deb a source's version
 * is written with its epoch, and `gcc` 4:12.2.0-3 is built from `gcc-defaults` 1.203: only the same version lacks it.
 */
function withEpoch(type: string, named: string, own: string): string {
  if (named === '') return own
  const epoch = /^\d+:/.exec(own)?.[0] ?? ''
  if (epoch === '' || /^\d+:/.test(named)) return named
  const lacksEpoch = type === 'rpm' || (type === 'deb' && own === epoch + named)
  return lacksEpoch ? epoch + named : named
}

/**
 * Returns the source packages by whose names records may have what a source is built of: itself, and of Debian's signed kernels
 * the kernel, which its records name: `linux-signed-amd64` 6.1.27+1 holds the files of `linux` 6.1.27-1.
 */
export function recordedSources(base: string | null, source: SourcePackage): SourcePackage[] {
  const isKernel = base === 'Debian' && /^linux-signed-/.test(source.name)
  if (!isKernel) return [source]
  const { version } = source
  const own = version.includes('-') ? version : version.replace('+', '-')
  return [source, { name: 'linux', version: own }]
}

/** Without the number that Debian gives a package when it is built again from the same source: `+b1`. */
function ownVersion(type: string, version: string): string {
  return type === 'deb' ? version.replace(/\+b\d+$/, '') : version
}
