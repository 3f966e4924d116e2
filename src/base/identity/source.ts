import { anyEpoch } from '../versions/rpm.ts'
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
  const named = upstreamOf(url)
  const source = named ?? stated
  if (source === null || source.name === '') return null
  const known = source.version || (stated?.name === source.name ? stated.version : '')
  return { name: source.name, version: withEpoch(url.type, known, ownVersion(url.type, version)) }
}

/**
 * In `upstream`, or in `source`: `openssl`, `openssl@3.0.1` (syft), `openssl (3.0.1)` as dpkg has it, and for rpm the file of the
 * source package.
 */
function upstreamOf({ type, qualifiers }: ParsedUrl): SourcePackage | null {
  // the library takes a plus sign that is not escaped for a space
  const qualifier = qualifiers?.['upstream'] ?? qualifiers?.['source'] ?? ''
  const text = qualifier.trim().replaceAll(' ', '+')
  if (text === '') return null
  for (const form of type === 'rpm' ? [...FORMS, RPM_FILE] : FORMS) {
    const [, name, version = ''] = form.exec(text) ?? []
    if (name !== undefined) return { name, version }
  }
  return { name: text, version: '' }
}

const FORMS = [/^(.+)-([^-]+-[^-]+)\.(?:no)?src\.rpm$/, /^([^+]+)\+\((.+)\)$/, /^([^@]+)@(.*)$/s]
/** The file's name without its ending; both numbers begin with a digit, for `java-1.8.0-openjdk` is a name. */
const RPM_FILE = /^(.+)-(\d[^-]*-\d[^-]*?)(?:\.(?:no)?src)?$/

/**
 * Returns the version of a source with its epoch; `own`: that of the package, which the source has where none is named. Of rpm, whose
 * file names have no epoch, one that is named without it has that of the package where it is the same: packages of one source inherit
 * it all. In dpkg it has none: `bsdutils` 1:2.38.1-5 is built from `util-linux` 2.38.1-5.
 */
function withEpoch(type: string, named: string, own: string): string {
  if (named === '') return own
  if (type !== 'rpm') return named
  const epoch = /^\d+:/.exec(own)?.[0] ?? ''
  return epoch !== '' && own === epoch + named ? own : named
}

/**
 * Returns a source's version as records are asked for it. In rpm a package with a version of its own may have an epoch of its own:
 * `perl-Errno` 0:1.30-481 is built from `perl` 4:5.32.1-481, and the file name of that says no epoch. Then it is not known.
 */
export function askedVersion(type: string, named: string, own: string): string {
  const isKnown = type !== 'rpm' || /^\d+:/.test(named) || named === own
  return isKnown ? named : anyEpoch(named)
}

/**
 * Returns the source packages by whose names records may have what a source is built of: itself, and of one that signs what another
 * is built of that other one, which the records name: `linux-signed-amd64` 6.1.27+1 holds the files of `linux` 6.1.27-1.
 */
export function recordedSources(base: string | null, source: SourcePackage): SourcePackage[] {
  const { name, version } = source
  for (const { of, form, signed, versionOf } of SIGNERS)
    if (of === base && form.test(name))
      return [source, { name: name.replace(form, signed), version: versionOf(version) }]
  return [source]
}

/** Source packages that sign what another one is built of: the name of that in the form's replacement, and its version. */
const SIGNERS: readonly {
  readonly of: string
  readonly form: RegExp
  readonly signed: string
  readonly versionOf: (version: string) => string
}[] = [
  { of: 'Debian', form: /^linux-signed-.*$/, signed: 'linux', versionOf: signedVersion },
  { of: 'Debian', form: /^grub-efi-\w+-signed$/, signed: 'grub2', versionOf: signedVersion },
  { of: 'Debian', form: /^shim-helpers-\w+-signed$/, signed: 'shim', versionOf: signedVersion },
  { of: 'Debian', form: /^systemd-boot-efi-\w+-signed$/, signed: 'systemd', versionOf: signedVersion },
  { of: 'Ubuntu', form: /^linux-signed(?=-|$)/, signed: 'linux', versionOf: (version) => version },
]

/** The version that Debian signs, of `6.1.27+1` or, with the number of the signing package before it, `1+2.06+13`. */
function signedVersion(version: string): string {
  if (version.includes('-')) return version
  return version.replace(/^1\+(?=\d[^+]*\+)/, '').replace('+', '-')
}

/** Without the number that Debian gives a package when it is built again from the same source: `+b1`. */
function ownVersion(type: string, version: string): string {
  return type === 'deb' ? version.replace(/\+b\d+$/, '') : version
}
