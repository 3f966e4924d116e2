import { PackageURL } from 'packageurl-js'
import { MirrorError } from '../core/errors.ts'

/** A package URL in OSV's terms. `version` is empty when it names none. */
interface PurlPackage {
  readonly ecosystem: string
  readonly name: string
  readonly version: string
}

/** Ecosystems by purl type and namespace, as osv.dev maps them (`purl_helpers.py`): where the namespace is the maker's. */
const MAKERS = new Map(
  Object.entries({
    'apk/alpaquita': 'Alpaquita',
    'apk/alpine': 'Alpine',
    'apk/bellsoft-hardened-containers': 'BellSoft Hardened Containers',
    'apk/chainguard': 'Chainguard',
    'apk/minimos': 'MinimOS',
    'apk/wolfi': 'Wolfi',
    'deb/debian': 'Debian',
    'deb/echo': 'Echo',
    'deb/ubuntu': 'Ubuntu',
    'rpm/almalinux': 'AlmaLinux',
    'rpm/azure-linux': 'Azure Linux',
    'rpm/mageia': 'Mageia',
    'rpm/openeuler': 'openEuler',
    'rpm/opensuse': 'openSUSE',
    'rpm/redhat': 'Red Hat',
    'rpm/rocky-linux': 'Rocky Linux',
    'rpm/suse': 'SUSE',
  }),
)

/** Ecosystems by type alone, and what joins a namespace and a name there; null: a namespace is not known there. */
const TYPES = new Map<string, readonly [ecosystem: string, joint: string | null]>(
  Object.entries({
    bitnami: ['Bitnami', null],
    cargo: ['crates.io', null],
    composer: ['Packagist', '/'],
    conan: ['ConanCenter', null],
    cran: ['CRAN', null],
    gem: ['RubyGems', null],
    generic: ['OSS-Fuzz', null],
    golang: ['Go', '/'],
    hackage: ['Hackage', null],
    hex: ['Hex', '/'],
    julia: ['Julia', null],
    maven: ['Maven', ':'],
    npm: ['npm', '/'],
    nuget: ['NuGet', null],
    opam: ['opam', null],
    pub: ['Pub', null],
    pypi: ['PyPI', null],
    swift: ['SwiftURL', '/'],
  }),
)

/**
 * Reads a package URL, by the library of the purl project itself. Qualifiers (`arch`, `distro`) are passed over, as osv.dev
 * does, but for the epoch. Null for a package of no ecosystem here; throws `bad_request` for what is no package URL.
 */
export function readPurl(text: string): PurlPackage | null {
  return packageOf(parsePurl(text))
}

/**
 * Returns the package of a parsed package URL in OSV's terms; null for a package of no ecosystem here. `stated`: its version,
 * where the package URL names none.
 */
export function packageOf(url: ParsedUrl, stated = ''): PurlPackage | null {
  const { type, namespace, name, subpath } = url
  const version = withEpoch(url, (url.version ?? '') || stated)
  const maker = MAKERS.get(`${type}/${namespace ?? ''}`)
  if (maker !== undefined) return { ecosystem: maker, name, version }
  const [ecosystem, joint] = TYPES.get(type) ?? []
  if (ecosystem === undefined) return null
  if (namespace === undefined) return { ecosystem, name, version }
  if (joint === null || joint === undefined) return null
  const below = type === 'golang' && subpath !== undefined ? `/${subpath}` : ''
  return { ecosystem, name: namespace + joint + name + below, version }
}

/**
 * Returns a version with the epoch that a package URL of `deb` or `rpm` names as a qualifier: records have it in the version,
 * and without it a fixed package is below every fix.
 */
function withEpoch({ type, qualifiers }: ParsedUrl, version: string): string {
  const epoch = type === 'deb' || type === 'rpm' ? (qualifiers?.['epoch'] ?? '') : ''
  const isOwn = /^\d{1,10}$/.test(epoch) && Number(epoch) > 0 && !/^\d+:/.test(version)
  return isOwn && version !== '' ? `${Number(epoch)}:${version}` : version
}

function withVersion(url: PackageURL, version?: string): ParsedUrl {
  const { type, namespace, name, qualifiers, subpath } = url
  return { type, namespace, name, version, qualifiers, subpath }
}

type ParsedUrl = Pick<
  PackageURL,
  'type' | 'namespace' | 'name' | 'version' | 'qualifiers' | 'subpath'
>

/**
 * Parses a package URL. The library's own check of Go versions fails with a ReferenceError for `v1.0`, so the version of a
 * Go package is not given to it: any is allowed, as for other types. Throws `bad_request`.
 */
export function parsePurl(text: string): ParsedUrl {
  try {
    const [type, namespace, name, version, qualifiers, subpath] = PackageURL.parseString(text)
    const isGo = type?.trim().toLowerCase() === 'golang'
    const given = isGo ? undefined : version
    const url = new PackageURL(type ?? '', namespace, name ?? '', given, qualifiers, subpath)
    return isGo ? withVersion(url, version?.trim()) : url
  } catch (cause) {
    // a defect of this program or the library, and not of the text
    if (cause instanceof ReferenceError || cause instanceof TypeError) throw cause
    const reason = cause instanceof Error ? `: ${cause.message}` : ''
    throw new MirrorError('bad_request', `Invalid Package URL${reason}`, { cause })
  }
}

/** Returns the ecosystem and name in a package URL; null for what is none, and for a package without an ecosystem here. */
export function purlNames(text: string): Pick<PurlPackage, 'ecosystem' | 'name'> | null {
  try {
    return readPurl(text)
  } catch {
    return null
  }
}

/**
 * The package URL of a package, without version and qualifiers, as the OSV schema has it. `ecosystem` without a release. Null
 * for an ecosystem without a type of package URL, and for a name that none can be written of.
 */
export function writePurl(ecosystem: string, name: string): string | null {
  const kind = KINDS.get(ecosystem)
  if (kind === undefined || name === '') return null
  const { type, maker, joint } = kind
  const cut = joint === null ? -1 : name.lastIndexOf(joint)
  const namespace = cut < 0 ? maker : name.slice(0, cut)
  try {
    return new PackageURL(
      type,
      namespace,
      name.slice(cut + 1),
      undefined,
      undefined,
      undefined,
    ).toString()
  } catch {
    return null
  }
}

interface PurlKind {
  readonly type: string
  /** The namespace of all its packages. */
  readonly maker: string | undefined
  /** What joins a namespace and a name in OSV's names. */
  readonly joint: string | null
}

const KINDS: ReadonlyMap<string, PurlKind> = new Map([
  ...[...TYPES].map(([type, [ecosystem, joint]]): [string, PurlKind] => [
    ecosystem,
    { type, maker: undefined, joint },
  ]),
  ...[...MAKERS].map(([path, ecosystem]): [string, PurlKind] => {
    const [type = '', maker] = path.split('/')
    return [ecosystem, { type, maker, joint: null }]
  }),
])
