import { eachMaker } from './spellings.ts'

/** How the releases of a distribution are written and compared. */
interface ReleaseRule {
  /** The release as it is asked for, of what stands behind the distribution's name, in lower case; null: it is none. */
  readonly read: (text: string, id: string) => string | null
  /** Whether a record's release is the one that is asked for, or a part of it. */
  readonly covers: (recorded: string, asked: string) => boolean
}

const DEBIAN = new Map(
  Object.entries({
    buzz: '1.1',
    rex: '1.2',
    bo: '1.3',
    hamm: '2',
    slink: '2.1',
    potato: '2.2',
    woody: '3',
    sarge: '3.1',
    etch: '4',
    lenny: '5',
    squeeze: '6',
    wheezy: '7',
    jessie: '8',
    stretch: '9',
    buster: '10',
    bullseye: '11',
    bookworm: '12',
    trixie: '13',
    forky: '14',
    duke: '15',
  }),
)

const UBUNTU = new Map(
  Object.entries({
    precise: '12.04',
    trusty: '14.04',
    utopic: '14.10',
    vivid: '15.04',
    wily: '15.10',
    xenial: '16.04',
    yakkety: '16.10',
    zesty: '17.04',
    artful: '17.10',
    bionic: '18.04',
    cosmic: '18.10',
    disco: '19.04',
    eoan: '19.10',
    focal: '20.04',
    groovy: '20.10',
    hirsute: '21.04',
    impish: '21.10',
    jammy: '22.04',
    kinetic: '22.10',
    lunar: '23.04',
    mantic: '23.10',
    noble: '24.04',
    oracular: '24.10',
    plucky: '25.04',
    questing: '25.10',
    resolute: '26.04',
  }),
)

/** Returns the code name before the part of an archive or the variant of an image: `bookworm-security`, `jammy-updates`. */
function codeNameIn(text: string): string {
  return text.replace(/[- /](?:backports|proposed|security|slim|updates)$/, '')
}

/** Returns the number of a release of Debian, by its number or code name; null for what is none. */
export function debianRelease(text: string): string | null {
  const named = DEBIAN.get(codeNameIn(text))
  if (named !== undefined) return named
  if (text === 'unstable' || /^(?:\w+\/)?sid$/.test(text)) return 'sid'
  if (text === 'testing') return text
  const [, major = '', minor = ''] = /^(\d{1,3})(\.\d+)?(?:\.\d+)*$/.exec(text) ?? []
  if (major === '') return null
  if (Number(major) >= 4 || minor === '.0') return major
  return major + minor
}

/** Returns the number of a release of Ubuntu, by its number or code name; null for what is none. */
export function ubuntuRelease(text: string): string | null {
  return UBUNTU.get(codeNameIn(text)) ?? /^(\d{1,2}\.\d{2})(\.\d+)*$/.exec(text)?.[1] ?? null
}

/** Returns a release of Alpine as its records have it, `v3.18`; null for what is none. */
export function alpineRelease(text: string): string | null {
  if (text === 'edge' || /^\d+\.\d+(\.\d+)?[ _]alpha\d*$/.test(text)) return 'edge'
  const [, release] = /^v?(\d+\.\d+)(\.\d+)*$/.exec(text) ?? []
  return release === undefined ? null : `v${release}`
}

/** A rule by which two releases are one when they read the same. */
function sameWhenRead(read: (text: string) => string | null): ReleaseRule {
  const plain = (text: string): string => read(text.toLowerCase()) ?? text
  return { read, covers: (recorded, asked) => plain(recorded) === plain(asked) }
}

/** `9` of `9`, `9.4`, `el9` and `9-stream`. */
const byMajor = sameWhenRead((text) => /^(?:el|v)?(\d{1,3})(?:\.\d+)*(?:[- ]?stream)?$/.exec(text)?.[1] ?? null)

const byStream = sameWhenRead((text) => /^stream\b/.exec(text)?.[0] ?? /^(\d{1,3})(?:\.\d+)*$/.exec(text)?.[1] ?? null)

/** `5.0` of `5` and `5.0`. */
const byNumber = sameWhenRead((text) => {
  const [, major, minor = '.0'] = /^(\d{1,3})(\.\d+)?$/.exec(text) ?? []
  return major === undefined ? null : major + minor
})

/**
 * Ubuntu's records are of a release, of its LTS, of Pro, whose fixes a system without Pro lacks, or of kernels that have names of
 * their own (`Realtime`, `Nvidia-BlueField`). Certified packages (`FIPS`) have the names of others.
 */
const ubuntu: ReleaseRule = {
  read: ubuntuRelease,
  covers: (recorded, asked) => ubuntuChannel(recorded) === (UBUNTU.get(asked) ?? asked),
}

/** `22.04` of `22.04:LTS`, `Pro:22.04:LTS` and `Pro:22.04:LTS:Realtime:Kernel`, `FIPS:22.04` of `Pro:FIPS:22.04:LTS`. */
function ubuntuChannel(recorded: string): string {
  const parts = recorded.split(':')
  const release = parts.flatMap((part) => ubuntuRelease(part.toLowerCase()) ?? [])[0] ?? recorded
  return [...parts.filter((part) => /^FIPS/i.test(part)), release].join(':')
}

/**
 * Red Hat's records name a product as a CPE does: `enterprise_linux:9::appstream`, `rhel_eus:9.2::baseos`,
 * `openshift:4.12::el9`. A product for which no release of the system is known may be of any.
 */
const redHat: ReleaseRule = {
  read(text) {
    const [, version] = /^(?:el|v)?(\d{1,2}(?:\.\d+)?)(?:\.\d+)*(?:[- ]?stream)?$/.exec(text) ?? []
    return version === undefined ? null : `enterprise_linux:${version}`
  },
  covers(recorded, asked) {
    const [, release] = /^enterprise_linux:([\d.]+)$/.exec(asked) ?? []
    // another product, or one repository of a release: that alone
    if (release === undefined) return recorded.startsWith(`${asked}::`)
    const [product = '', version = '', , edition = ''] = recorded.split(':')
    const system = /^el(\d+)/.exec(edition)?.[1]
    if (system !== undefined) return system === majorOf(release)
    if (product === 'enterprise_linux') return majorOf(version) === majorOf(release)
    if (!/^(?:rhel|enterprise_linux)_/.test(product)) return true
    const isOpen = !version.includes('.') || !release.includes('.')
    return isOpen ? majorOf(version) === majorOf(release) : version === release
  },
}

function majorOf(version: string): string {
  return version.split('.')[0] ?? ''
}

/**
 * SUSE's records name a product: `Linux Enterprise Server 15 SP5-LTSS`, `Linux Enterprise Module for Basesystem 15 SP5`,
 * `Linux Enterprise Micro 5.3`. Products with numbers of their own, such as `Manager Server 4.3`, are other systems.
 */
const suse: ReleaseRule = {
  read(text, id) {
    const [, major, minor] = /^(\d{1,2})(?:\.(\d+)|[- ]?sp[- ]?(\d+))?$/.exec(text.replace(/[- ]?sp[- ]?/, '.')) ?? []
    if (major === undefined) return null
    // Trivy writes `suse` for each of them: the numbers of Micro are far below those of servers
    if (/micro|slem/.test(id) || Number(major) < 10) return `Micro ${major}.${minor ?? '0'}`
    if (Number(major) > 15) return `${major}.${minor ?? '0'}`
    return minor === undefined || minor === '0' ? major : `${major} SP${minor}`
  },
  covers(recorded, asked) {
    if (!/Linux (?:Enterprise|Micro)|Package Hub|Real Time Module/.test(recorded)) return false
    const found = [...recorded.matchAll(/(?<= )(\d+(?:\.\d+)?(?: SP\d+)?)(?![\w.])/g)].at(-1)?.[1]
    if (found === undefined) return true
    if (recorded.includes('Micro')) return `Micro ${found}` === asked
    if (found === asked) return true
    // modules of SLE 12 are of all its service packs; a bare number is any of them
    const isModule = recorded.includes('Module') && !found.includes(' ')
    return (isModule && asked.startsWith(`${found} `)) || found.startsWith(`${asked} `)
  },
}

const openSuse: ReleaseRule = {
  read(text, id) {
    if (/tumbleweed|microos/.test(id) || /^tumbleweed\b/.test(text)) return 'Tumbleweed'
    const [, micro, version] = /^(?:leap[- ]?)?(micro[- ]?)?(\d{1,2}\.\d+)(?:\.\d+)*$/.exec(text) ?? []
    if (version === undefined) return null
    return micro !== undefined || id.includes('micro') ? `Leap Micro ${version}` : `Leap ${version}`
  },
  covers: (recorded, asked) => recorded === asked || recorded.startsWith(`${asked} `),
}

/** `22.03-LTS-SP3`; without a service pack, as `VERSION_ID` of os-release has it, it may be any. */
const openEuler: ReleaseRule = {
  read(text) {
    const [, version, lts, pack] = /^(\d{2}\.\d{2})(?:[- (]*(lts))?(?:[- ]*(sp\d+))?\)?$/.exec(text) ?? []
    if (version === undefined) return null
    return [version, lts, pack]
      .filter((part) => part !== undefined)
      .join('-')
      .toUpperCase()
  },
  covers: (recorded, asked) => recorded === asked || (!asked.includes('-') && recorded.startsWith(`${asked}-`)),
}

const RULES: ReadonlyMap<string, ReleaseRule> = new Map(
  Object.entries({
    AlmaLinux: byMajor,
    Alpaquita: byStream,
    Alpine: sameWhenRead(alpineRelease),
    'Azure Linux': byMajor,
    'BellSoft Hardened Containers': byStream,
    Debian: sameWhenRead(debianRelease),
    Mageia: byMajor,
    'Photon OS': byNumber,
    'Red Hat': redHat,
    'Rocky Linux': byMajor,
    SUSE: suse,
    Ubuntu: ubuntu,
    openEuler,
    openSUSE: openSuse,
  }),
)

/** Reports whether the records of an ecosystem are of one release of a distribution each. */
export function isReleased(base: string): boolean {
  return RULES.has(base)
}

/** A release that a text names. */
interface NamedRelease {
  /** The distribution's ecosystem. */
  readonly base: string
  /** With its release, as records are asked for it: `Debian:12`. */
  readonly ecosystem: string
}

/**
 * Reads a release in any spelling of the generators: `debian-12.7`, `bookworm`, `Ubuntu 22.04.4 LTS`, `3.18`. `base`: the
 * ecosystem that it is of, where that is known; `maker`: what names it beside. Null for what is no release, and for one of another
 * distribution.
 */
export function readRelease(text: string, base: string | null, maker = ''): NamedRelease | null {
  const plain = plainText(text)
  if (plain === '') return null
  const named = nameIn(plain)
  if (named === null) return base === null ? byCodeName(plain) : releaseOf(base, plain, separated(maker))
  if (!named.recorded || (base !== null && base !== named.base)) return null
  return releaseOf(named.base, named.rest, named.id)
}

/** Returns the distribution that a text names, with or without a release; null for none. */
export function distributionIn(text: string): { base: string; recorded: boolean } | null {
  const plain = plainText(text)
  const named = nameIn(plain)
  if (named !== null) return { base: named.base, recorded: named.recorded }
  const release = byCodeName(plain)
  return release === null ? null : { base: release.base, recorded: true }
}

function releaseOf(base: string, text: string, id: string): NamedRelease | null {
  const release = RULES.get(base)?.read(text, id) ?? null
  return release === null ? null : { base, ecosystem: `${base}:${release}` }
}

function byCodeName(text: string): NamedRelease | null {
  const name = codeNameIn(text)
  if (DEBIAN.has(name) || name === 'sid') return releaseOf('Debian', name, '')
  if (UBUNTU.has(name)) return releaseOf('Ubuntu', name, '')
  return text === 'tumbleweed' ? releaseOf('openSUSE', text, '') : null
}

/** Longest text that is read as a release, characters: far above any. */
const LONGEST = 200

/** In lower case, with one space for what separates words, without a code name in brackets, and without the word LTS. */
function plainText(text: string): string {
  if (text.length > LONGEST) return ''
  const plain = separated(text)
  if (plain.startsWith('openeuler')) return plain
  return plain.replace(/ ?\([^()]*\)$/, '').replace(/ lts$/, '')
}

function separated(text: string): string {
  return text
    .toLowerCase()
    .replace(/[-+_"\s]+/g, ' ')
    .trim()
}

/** Names of distributions in prose, beside their namespaces. */
const TITLES: Readonly<Record<string, string>> = {
  'alma linux': 'AlmaLinux',
  'alpine linux': 'Alpine',
  'azure linux': 'Azure Linux',
  'centos linux': 'Red Hat',
  'centos stream': 'Red Hat',
  'debian gnu/linux': 'Debian',
  'microsoft azure linux': 'Azure Linux',
  'opensuse leap': 'openSUSE',
  'opensuse leap micro': 'openSUSE',
  'opensuse tumbleweed': 'openSUSE',
  'photon os': 'Photon OS',
  'red hat': 'Red Hat',
  'red hat enterprise linux': 'Red Hat',
  'rocky linux': 'Rocky Linux',
  'suse linux enterprise': 'SUSE',
  'suse linux enterprise server for sap applications': 'SUSE',
  'suse linux micro': 'SUSE',
  'vmware photon os': 'Photon OS',
}

interface DistributionName {
  readonly id: string
  readonly base: string
  readonly recorded: boolean
}

/** The longest first: `opensuse-leap` before `opensuse`. */
const NAMES: readonly DistributionName[] = [
  ...eachMaker().map(({ namespace, name, recorded }) => {
    return { id: separated(namespace), base: name, recorded }
  }),
  ...Object.entries(TITLES).map(([id, base]) => ({ id, base, recorded: true })),
].sort((one, other) => other.id.length - one.id.length)

/** Words between the name of a distribution and its release. */
const EDITION =
  /^(?:(?:linux|os|server|workstation|client|desktop|release|version|high performance computing|for sap applications) )+/

function nameIn(text: string): (DistributionName & { readonly rest: string }) | null {
  for (const name of NAMES) {
    if (!text.startsWith(name.id)) continue
    const rest = text.slice(name.id.length)
    if (rest !== '' && !/^[:@/ .\d]/.test(rest)) continue
    return { ...name, rest: rest.replace(/^[:@/ .]+/, '').replace(EDITION, '') }
  }
  return null
}

/** Whether the release of a record is the one that is asked for, or a part of it: both without their ecosystem's name. */
export function coversRelease(base: string, recorded: string, asked: string): boolean {
  return RULES.get(base)?.covers(recorded, asked) ?? false
}
