import { MirrorError, messageOf } from '../errors.ts'
import { type Ecosystem, findEcosystem } from '../versions/ecosystems.ts'
import { patchedVersion } from '../versions/patches.ts'
import { withoutEpoch } from '../versions/rpm.ts'
import { normalName } from './names.ts'
import { otherNames, packageOf, releaseTexts } from './package.ts'
import { type ParsedUrl, parsePurl } from './purl.ts'
import { isReleased, readRelease } from './releases.ts'
import { type SourcePackage, askedVersion, recordedSources, sourcePackageOf } from './source.ts'
import { isSystemType, sameType } from './spellings.ts'

/** What an SBOM says about a component. */
export interface ComponentFacts {
  readonly purl: string | null
  readonly name: string
  readonly version: string
  /** What it says beside the package URL. */
  readonly source: SourcePackage | null
}

/** What is known beside a component. */
export interface Surroundings {
  /** The SBOM's own operating system, or the one that the user names. */
  readonly distribution: Distribution | null
}

/** A distribution with its release, in any spelling: `debian-12.7`, `jammy`, `rhel-9.4`. */
interface Distribution {
  readonly name: string
  readonly from: 'sbom' | 'option'
}

/** Who a component is, in the terms of the records. */
export interface Identity {
  /** With its release where one is known: `Debian:12`. */
  readonly ecosystem: Ecosystem
  /** As the ecosystem compares names. */
  readonly name: string
  /** With its epoch; never empty. */
  readonly version: string
  /** The release, as `isMeant` takes it, and where it is known from. */
  readonly release: { readonly name: string; readonly from: 'purl' | 'sbom' | 'option' } | null
  /** What the package URL or the SBOM names as the release, and is none that is known here; null: nothing. */
  readonly unreadRelease: string | null
  /** Whether records are of one release each, and none is known. */
  readonly needsRelease: boolean
  /** The distribution that it is of, where that rebuilds the packages of the one whose records it is judged by; null: it does not. */
  readonly rebuiltBy: string | null
  /** Of the package URL (`upstream=`), else of the SBOM; for packages of distributions alone. */
  readonly source: SourcePackage | null
  /** Whether records name source packages, and none is known. */
  readonly needsSource: boolean
  /** What else it may be, which is not asked; null: nothing. */
  readonly doubt: string | null
  /** What to ask the records. */
  readonly questions: readonly Question[]
}

/** One question to the records. */
export interface Question {
  readonly ecosystem: Ecosystem
  readonly name: string
  readonly version: string
  /** The stream of the module that it was built for, such as `nodejs:18`; null: none, or it is not known. */
  readonly stream: string | null
  /** By the component's own name, or by that of its source package. */
  readonly by: 'name' | 'source'
  /** A name that makes the answers of records about it void: those judge the component by that name. Null: none. */
  readonly unless: string | null
}

/** Why it is not known who a component is. */
interface Unidentified {
  readonly code: 'no_purl' | 'bad_purl' | 'unknown_ecosystem' | 'no_version'
  readonly reason: string
}

/** Reads who a component is, once for everything that asks. */
export function identifyComponent(facts: ComponentFacts, { distribution }: Surroundings): Identity | Unidentified {
  if (facts.purl === null) return { code: 'no_purl', reason: 'it has no package URL (purl)' }
  const url = parsed(facts.purl)
  if ('code' in url) return url
  const found = packageOf(url, facts.version, distribution?.name)
  if ('unrecorded' in found)
    return { code: 'unknown_ecosystem', reason: unknownEcosystem(facts.purl, found.unrecorded) }
  if (found.version === '')
    return { code: 'no_version', reason: 'neither its package URL nor the SBOM names its version' }
  const known = isSystemType(url.type) ? releaseOf(url, found.ecosystem, distribution) : NO_RELEASE
  const ecosystem = findEcosystem(known.release?.name ?? found.ecosystem)
  if (ecosystem === null) return { code: 'unknown_ecosystem', reason: unknownEcosystem(facts.purl, null) }
  const name = normalName(ecosystem.base, found.name)
  const { version } = found
  const source = isSystemType(url.type) ? sourcePackageOf(url, facts.source, version) : null
  return {
    ecosystem,
    name,
    version,
    ...known,
    needsRelease: known.release === null && isReleased(found.ecosystem),
    rebuiltBy: found.ecosystem === 'Red Hat' && isCentOs(url, distribution) ? 'CentOS' : null,
    source,
    needsSource: source === null && isSystemType(url.type) && !NAMES_BINARIES.has(found.ecosystem),
    doubt: doubtOf(url.type, name),
    questions: questionsOf(
      { ecosystem, name, version, stream: streamIn(url), by: 'name', unless: null },
      source && { ...source, version: askedVersion(url.type, source.version, version) },
      otherNames(found, url, facts.name),
    ),
  }
}

/** The module and stream in a package URL of rpm, as syft and Trivy write them: `nodejs:18:8090020240301:rhel8`. */
function streamIn({ type, qualifiers = {} }: ParsedUrl): string | null {
  const { rpmmod, modularitylabel } = qualifiers
  const [, stream] = /^([^:]+:[^:]+)(?::|$)/.exec(rpmmod ?? modularitylabel ?? '') ?? []
  return type === 'rpm' && stream !== undefined ? stream.toLowerCase() : null
}

/** By its namespace, and where a package URL has none by what else names its distribution. */
function isCentOs(url: ParsedUrl, around: Distribution | null): boolean {
  const { namespace = '' } = url
  const texts = namespace === '' ? [...releaseTexts(url), around?.name ?? ''] : [namespace]
  return texts.some((text) => /^centos\b/i.test(text))
}

/** Ecosystems whose records name each binary package. */
const NAMES_BINARIES = new Set(['AlmaLinux', 'Docker Hardened Images', 'Red Hat'])

/** What package URLs of a type may name beside what is asked. */
const DOUBTED = new Map([
  ['generic', 'pkg:generic names software of any origin: it was judged as a project of OSS-Fuzz alone'],
  ['github', 'pkg:github names a repository: it was judged as a GitHub Action alone'],
])

function doubtOf(type: string, name: string): string | null {
  const isHosted = /^(?:[a-z+]+:\/*)?[^/]+\.[^/]+\//i.test(name)
  if (type === 'swift' && !isHosted) return 'it names no host of a repository, as records of Swift packages do'
  const isAction = sameType(type) === 'githubactions'
  if (isAction && !name.includes('/')) return 'it names no owner of a repository, as records of GitHub Actions do'
  return DOUBTED.get(type) ?? null
}

function parsed(purl: string): ParsedUrl | Unidentified {
  try {
    return parsePurl(purl)
  } catch (error) {
    if (!(error instanceof MirrorError)) throw error
    return { code: 'bad_purl', reason: messageOf(error) }
  }
}

function unknownEcosystem(purl: string, unrecorded: string | null): string {
  const [, type = '', namespace] = /^pkg:\/*([^/]+)\/(?:([^/@?#]+)\/)?/.exec(purl) ?? []
  const named = namespace === undefined ? `pkg:${type}` : `pkg:${type}/${namespace}`
  const shown = named.slice(0, 100)
  return unrecorded === null
    ? `no ecosystem of vulnerability records is known for ${shown}`
    : `OSV has no vulnerability records of ${unrecorded} (${shown})`
}

type KnownRelease = Pick<Identity, 'release' | 'unreadRelease'>

const NO_RELEASE: KnownRelease = { release: null, unreadRelease: null }

/** The release that a package URL names, else that of its surroundings. */
function releaseOf(url: ParsedUrl, base: string, around: Distribution | null): KnownRelease {
  if (!isReleased(base)) return NO_RELEASE
  const named = releaseIn(url, base)
  if (named !== null) return { release: { name: named, from: 'purl' }, unreadRelease: null }
  const outer = around === null ? null : readRelease(around.name, base)
  if (around !== null && outer !== null) {
    const release = { name: outer.ecosystem, from: around.from }
    return { release, unreadRelease: null }
  }
  return { release: null, unreadRelease: releaseTexts(url)[0] ?? around?.name ?? null }
}

/** Returns the release of an ecosystem that a package URL names, as `Debian:12`; null for none that can be read. */
export function releaseIn(url: Pick<ParsedUrl, 'qualifiers' | 'namespace'>, base: string): string | null {
  const { namespace = '' } = url
  // a namespace such as `opensuse-tumbleweed` is a release by itself, and says which `sle-micro` a number is of
  for (const text of [...releaseTexts(url), namespace]) {
    const release = readRelease(text, base, namespace)
    if (release !== null) return release.ecosystem
  }
  return null
}

/**
 * Returns a component's own name where a record that has it says all, and null elsewhere: where records name each binary package,
 * and where the epoch of the source package is not known. `version`: the source's.
 */
export function decisiveName({ base }: Ecosystem, name: string, version: string): string | null {
  const isDecisive = base !== null && NAMES_BINARIES.has(base)
  return isDecisive || withoutEpoch(version) !== null ? name : null
}

/** `others`: other names of the component. */
function questionsOf(own: Question, source: SourcePackage | null, others: readonly string[]): Question[] {
  const { ecosystem, name, version, stream } = own
  const asked = [own]
  for (const other of others) asked.push({ ...own, name: normalName(ecosystem.base, other) })
  for (const one of source === null ? [] : recordedSources(ecosystem.base, source)) {
    if (one.name === name && one.version === version) continue
    const unless = decisiveName(ecosystem, name, one.version)
    asked.push({ ecosystem, name: one.name, version: one.version || version, stream, by: 'source', unless })
  }
  return [...asked, ...asked.flatMap(certified), ...asked.flatMap(builtByVendor)]
}

/** The same questions about a vendor's build, by the name that its records have for it. */
function builtByVendor(question: Question): Question[] {
  const { ecosystem, name, version } = question
  return buildNames(ecosystem.base, name, version).map((one) => ({
    ...question,
    name: normalName(ecosystem.base, one),
  }))
}

/** Channels of Ubuntu Pro with certified builds, whose versions say so. Their records are not about other builds. */
const CERTIFIED = ['FIPS', 'FIPS-updates', 'FIPS-preview']

function certified(question: Question): Question[] {
  const [base, release] = question.ecosystem.name.split(':')
  if (base !== 'Ubuntu' || release === undefined || !/fips/i.test(question.version)) return []
  return CERTIFIED.flatMap((channel) => {
    const ecosystem = findEcosystem(`Ubuntu:${channel}:${release}`)
    return ecosystem === null ? [] : [{ ...question, ecosystem }]
  })
}

/**
 * Returns the name that a vendor's records have for its own build of a package, which an SBOM may list by the plain name: `rootio-curl`,
 * `@rootio/babel__core`, `io.root.org.ow2.asm:asm`. None of a version that is no such build. `base`: the ecosystem without a release.
 */
function buildNames(base: string | null, name: string, version: string): string[] {
  const isBuild = patchedVersion(version, base === 'Alpine') !== null
  if (!isBuild || /^(?:rootio[-_.]|@rootio\/|io\.root\.)/i.test(name)) return []
  if (base === 'npm') return [`@rootio/${name.replace(/^@/, '').replace('/', '__')}`]
  return [base === 'Maven' ? `io.root.${name}` : `rootio-${name}`]
}
