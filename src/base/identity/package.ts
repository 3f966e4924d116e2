import { isSystemType, sameType, spelled } from './spellings.ts'
import { type ParsedUrl, parsePurl } from './purl.ts'
import { distributionIn } from './releases.ts'

/** A package URL in OSV's terms, without a release. `version` is empty when it names none. */
interface PurlPackage {
  readonly ecosystem: string
  /** With the case that it is written in, where the ecosystem tells names apart by it. */
  readonly name: string
  readonly version: string
}

type PurlNames = Pick<PurlPackage, 'ecosystem' | 'name'>

/** Why a package URL names no package of an ecosystem here. */
interface NoPackage {
  /** The distribution that OSV has no records of; null: nothing is known of it. */
  readonly unrecorded: string | null
}

/**
 * Reads a package URL, by the library of the purl project itself, without its qualifiers but the epoch. Null for a package of
 * no ecosystem here; throws `bad_request` for what is no package URL.
 */
export function readPurl(text: string): PurlPackage | null {
  const found = packageOf(parsePurl(text))
  return 'unrecorded' in found ? null : found
}

/** Returns the ecosystem and name in a package URL; null for what is none, and for a package without an ecosystem here. */
export function purlNames(text: string): PurlNames | null {
  try {
    return readPurl(text)
  } catch {
    return null
  }
}

/**
 * Returns the package of a parsed package URL in OSV's terms. `stated`: the version beside it, which counts where it names
 * none, and for its epoch. `around`: the distribution of a system package whose package URL names none.
 */
export function packageOf(url: ParsedUrl, stated = '', around = ''): PurlPackage | NoPackage {
  const { type, namespace = '', given, subpath } = url
  const known = spelled(type, namespace)
  if (known === null) return withoutMaker(url, stated, around)
  if (known.kind === 'unrecorded') return { unrecorded: known.title }
  const version = versionOf(url, stated)
  const { name, namespace: group = '' } = hasCase(type) ? given : url
  const { ecosystem } = known
  if (known.kind === 'maker') return { ecosystem, name, version }
  if (namespace === '') return aliased({ ecosystem, name, version })
  if (known.joint === null) return { unrecorded: null }
  const below = ecosystem === 'Go' && subpath !== undefined ? `/${subpath}` : ''
  const full = groupName(ecosystem, group) + known.joint + name + below
  return aliased({ ecosystem, name: full, version })
}

/** Returns a namespace as the ecosystem writes it: a scope of npm begins with `@`, a group of Maven has dots. */
function groupName(ecosystem: string, group: string): string {
  if (ecosystem === 'npm' && !group.startsWith('@')) return `@${group}`
  return ecosystem === 'Maven' ? group.replaceAll('/', '.') : group
}

/** Types whose names the library writes in lower case, though their registries tell names apart by case. */
function hasCase(type: string): boolean {
  return type === 'npm' || type === 'apk'
}

/** Returns the texts in the qualifiers of a package URL that may name a distribution and its release. */
export function releaseTexts({ qualifiers = {} }: Pick<ParsedUrl, 'qualifiers'>): string[] {
  const { distro, distro_name, os_distro, os_name = '', os_version = '' } = qualifiers
  // syft, Trivy and cdxgen write `distro`; cdxgen a code name; Docker Scout the last three
  const texts = [distro, distro_name, os_distro, os_version && `${os_name}-${os_version}`]
  return texts.filter((text): text is string => text !== undefined && text !== '')
}

/** A package of a distribution that only its qualifier, or what is around it, names. */
function withoutMaker(url: ParsedUrl, stated: string, around: string): PurlPackage | NoPackage {
  const { type, namespace = '', given } = url
  if (namespace !== '' || !isSystemType(type)) return { unrecorded: null }
  const texts = [...releaseTexts(url), around]
  const found = texts.map(distributionIn).find((one) => one !== null)
  if (found === undefined) return { unrecorded: null }
  if (!found.recorded) return { unrecorded: found.base }
  return { ecosystem: found.base, name: given.name, version: versionOf(url, stated) }
}

function versionOf(url: ParsedUrl, stated: string): string {
  const type = sameType(url.type)
  const version = (url.version ?? '') || stated
  if (type === 'deb' || type === 'rpm') return withEpoch(url, version, stated)
  if (type === 'gem') return version.replace(GEM_PLATFORM, '')
  return version
}

/**
 * Returns a version with the epoch that a package URL of `deb` or `rpm` names as a qualifier, or that the version beside it
 * has: records have it in the version, and without it a fixed package is below every fix.
 */
function withEpoch({ qualifiers }: ParsedUrl, version: string, stated: string): string {
  if (version === '' || /^\d+:/.test(version)) return version
  const epoch = qualifiers?.['epoch'] ?? ''
  if (/^\d{1,10}$/.test(epoch)) return Number(epoch) > 0 ? `${Number(epoch)}:${version}` : version
  const isSame = /^\d{1,10}:/.test(stated) && stated.slice(stated.indexOf(':') + 1) === version
  return isSame && Number.parseInt(stated, 10) > 0 ? stated : version
}

/** The platform of a gem behind its version, as Bundler's lock files have it: `1.16.0-x86_64-linux-gnu`. */
const GEM_PLATFORM =
  /-(?:java|jruby|dalvik|mswin\d*|(?:x86|x64|x86_64|i[3-6]86|amd64|arm|armv\d\w*|aarch64|arm64|ppc64le|powerpc\w*|s390x|riscv64|universal|x86-mswin32)-(?:linux|darwin|mingw|mswin|freebsd|openbsd|solaris|aix|java)[\w.-]*)$/

/** Takes other names of a package for its own: Go's standard library, and what npm installs under another name. */
function aliased(found: PurlPackage): PurlPackage {
  const { ecosystem, name, version } = found
  if (ecosystem === 'Go') return goModule(found)
  // extras, as in `requests[security]`
  if (ecosystem === 'PyPI') return { ecosystem, name: name.replace(/\[[^[\]]*\]$/, ''), version }
  if (ecosystem === 'npm') {
    const [, real = '', other = ''] = NPM_ALIAS.exec(`${name}@${version}`) ?? []
    if (real !== '') return { ecosystem, name: real, version: other }
  }
  return found
}

/** Go's standard library has other names; in file names of its proxy, `!m` is a capital letter. */
function goModule({ ecosystem, name, version }: PurlPackage): PurlPackage {
  const own = nameInGo(name, version)
  if (own === null)
    return { ecosystem, name: name.replace(/!([a-z])/g, (_, letter: string) => letter.toUpperCase()), version }
  return { ecosystem, name: own, version: releaseOfGo(version) }
}

/** Returns by which name records have a part of Go itself; null: it is another module. */
function nameInGo(name: string, version: string): string | null {
  if (name === 'toolchain' || name === 'golang.org/toolchain') return 'toolchain'
  const [first = ''] = name.split('/', 1)
  // a package such as `crypto/tls`: no other module has a first part without a dot, and a version of Go
  const isPackage = !first.includes('.') && (/^go\d/.test(version) || (PACKAGES.has(first) && /^1\.\d/.test(version)))
  return isPackage || ['go', 'std', 'stdlib'].includes(name) ? 'stdlib' : null
}

/** Folders of Go's standard library that others name modules alike in no version 1 without a `v`. */
const PACKAGES = new Set(
  [
    [
      'archive',
      'bufio',
      'bytes',
      'compress',
      'container',
      'context',
      'crypto',
      'database',
      'debug',
      'embed',
      'encoding',
    ],
    [
      'errors',
      'expvar',
      'fmt',
      'go',
      'hash',
      'html',
      'image',
      'io',
      'log',
      'math',
      'mime',
      'net',
      'os',
      'path',
      'plugin',
    ],
    [
      'reflect',
      'regexp',
      'runtime',
      'sort',
      'strconv',
      'strings',
      'sync',
      'syscall',
      'text',
      'time',
      'unicode',
      'unsafe',
    ],
  ].flat(),
)

/**
 * Returns a release of Go without what builders add, as Go compares it: of `go1.21.3 X:loopvar`, `1.22.5-fips` and the toolchain's
 * `v0.0.1-go1.21.3.linux-amd64` the number. What precedes a release stays: `1.21rc2`, `1.21.0-rc.2`.
 */
function releaseOfGo(version: string): string {
  const plain = version.replace(/^v0\.0\.1-go([\w.]*?)\.[a-z]+\d*-\w+$/, '$1').replace(/^go(?=\d)/, '')
  return plain.replace(/^(v?\d+(?:\.\d+)*(?:(?:rc|beta)\d+)?)(?:\s.*|-(?!0|alpha|beta|pre|rc|\d{14}).*)$/s, '$1')
}

/**
 * Returns other names by which records may have a component: that of what it is a part of, and, where a generator wrote the
 * package URL in lower case as the library does, that of the SBOM, which tells apart what differs by case.
 */
export function otherNames(found: PurlNames, url: ParsedUrl, stated: string): string[] {
  const { ecosystem, name } = found
  const whole = wholeOf(found, url)
  const isCased = ecosystem === 'npm' && stated !== name && stated.toLowerCase() === name
  return [...(whole === null ? [] : [whole]), ...(isCased ? [stated] : [])]
}

/** The module of a Go package, the repository of an action in one of its folders, or of Swift; null: it names a whole one. */
function wholeOf({ ecosystem, name }: PurlNames, { subpath }: ParsedUrl): string | null {
  if (ecosystem === 'SwiftURL') return swiftRepository(name)
  if (ecosystem === 'Go' && subpath !== undefined && name.endsWith(`/${subpath}`))
    return name.slice(0, -subpath.length - 1)
  const [owner, repository, ...below] = name.split('/')
  if (ecosystem !== 'GitHub Actions' || below.length === 0) return null
  return `${owner}/${repository}`
}

/**
 * Returns the repository in a longer name of a Swift package: without a scheme, `.git`, and the name of the package behind it, as
 * `https://github.com/apple/swift-nio.git/swift-nio` has them. Null: it names the repository alone.
 */
function swiftRepository(name: string): string | null {
  const plain = name.replace(/^[a-z+]+:\/*/i, '').replace(/^git@/, '')
  const parts = plain.replace(/^([^/:]+):/, '$1/').split('/')
  const repository = parts
    .slice(0, repositoryLength(parts))
    .join('/')
    .replace(/\.git$/i, '')
  return repository === name ? null : repository
}

/** How many parts of a name are the repository's: host, owners and its own name. */
function repositoryLength(parts: readonly string[]): number {
  const ended = parts.findIndex((part) => /.\.git$/i.test(part))
  if (ended > 0) return ended + 1
  if (parts[0]?.toLowerCase() === 'github.com') return 3
  const isRepeated = parts.length > 3 && parts.at(-1) === parts.at(-2)
  return isRepeated ? parts.length - 1 : parts.length
}

/** `string-width-cjs@npm:string-width@4.2.0`. */
const NPM_ALIAS = /^.+?@npm:(@?[^@]+)@([^@]*)$/
