import { normalName } from '../../base/identity/names.ts'
import { packageOf } from '../../base/identity/package.ts'
import { type ParsedUrl, parsePurl } from '../../base/identity/purl.ts'
import { readRelease } from '../../base/identity/releases.ts'
import { type SourcePackage, recordedSources, sourcePackageOf } from '../../base/identity/source.ts'
import { isSystemType, sameType } from '../../base/identity/spellings.ts'
import { canonicalVersion, findEcosystem } from '../../base/versions/ecosystems.ts'

/** A package URL as it is compared with that of a product. */
export interface ProductName {
  /** The type with the ecosystem and its name of the package; of another package the type, namespace and name. */
  readonly key: string
  /** Empty: none that is known here. */
  readonly ecosystem: string
  /** In the one form of all its spellings, with its epoch; empty: any. */
  readonly version: string
  readonly qualifiers: ReadonlyMap<string, string>
  /** Empty: the whole package. */
  readonly subpath: string
  /** Of an image: `sha256:…` in lower case; empty where it names none, and of anything else. */
  readonly digest: string
}

/** Longest package URL that is compared, characters: far above any real one. */
const LONGEST = 2_000

/** Qualifiers that make another product of a package: they count also where a statement does not name them. */
const OWN = ['repository_url', 'epoch', 'classifier'] as const

/** Qualifiers that tell packages apart where two products both name them. */
const TELLING = [...OWN, 'platform']
const EPOCH = /^\d{1,10}:/

/** Types of package URLs of container images. */
const IMAGE_TYPES: ReadonlySet<string> = new Set(['oci', 'docker'])
const DIGEST = /^sha\d{3}:[\da-f]+$/

/** Qualifiers of an image that choose a platform: below the digest of an index they tell images apart. */
const PLATFORM = ['arch', 'os'] as const
const ARCHITECTURES: ReadonlyMap<string, string> = new Map([
  ['x86_64', 'amd64'],
  ['x86-64', 'amd64'],
  ['aarch64', 'arm64'],
  ['i386', '386'],
  ['i686', '386'],
])

/** Reads a package URL; null for what is none. `stated`: the version beside it, which counts where it names none. */
export function readProductName(text: string, stated = ''): ProductName | null {
  return reading(text, (url) => productOf(url, stated))
}

/**
 * Reads a package URL as a product with its source packages; null for what is none. `stated`: the version beside the package URL;
 * `source`: the source package that the SBOM names beside it.
 */
export function readProductNames(text: string, stated = '', source: SourcePackage | null = null): ProductNames | null {
  return reading(text, (url) => ({ own: productOf(url, stated), sources: sourcesOf(url, stated, source) }))
}

function reading<T>(text: string, read: (url: ParsedUrl) => T): T | null {
  if (text.length > LONGEST) return null
  try {
    return read(parsePurl(text))
  } catch {
    return null
  }
}

function productOf(url: ParsedUrl, stated: string): ProductName {
  const { type, version = '', qualifiers, subpath = '' } = url
  const named = new Map(Object.entries(qualifiers ?? {}))
  const digest = IMAGE_TYPES.has(type) ? digestIn([version, named.get('digest') ?? '']) : ''
  return { ...packageNamed(url, version || stated, named), subpath, digest }
}

/**
 * Returns the source packages that a package of a distribution is built from, as products without an architecture; none where they
 * are not known.
 */
function sourcesOf(url: ParsedUrl, stated: string, source: SourcePackage | null): ProductName[] {
  if (!isSystemType(url.type)) return []
  const found = packageOf(url, stated)
  const isKnown = !('unrecorded' in found)
  const version = isKnown ? found.version : (url.version ?? '') || stated
  const built = sourcePackageOf(url, source, version)
  if (built === null) return []
  const ecosystem = isKnown ? found.ecosystem : null
  return recordedSources(ecosystem, built).map((one) => sourceName(url, one))
}

/** Names a source package in the release of a package that is built from it. */
function sourceName(url: ParsedUrl, { name, version }: SourcePackage): ProductName {
  const { arch: _, epoch: __, upstream: ___, source: ____, ...qualifiers } = url.qualifiers ?? {}
  const given = { ...url.given, name }
  const own: ParsedUrl = { ...url, name, given, version, qualifiers, subpath: undefined }
  return { ...packageNamed(own, version, new Map(Object.entries(qualifiers))), subpath: '', digest: '' }
}

/** Names a package as its ecosystem does: spellings of its type, maker, name and version are no difference. */
function packageNamed(
  url: ParsedUrl,
  written: string,
  qualifiers: Map<string, string>,
): Pick<ProductName, 'key' | 'ecosystem' | 'version' | 'qualifiers'> {
  const { type, namespace = '', name } = url
  const found = packageOf({ ...url, version: written, subpath: undefined })
  if ('unrecorded' in found)
    return { key: `${type}/${namespace}/${name}`, ecosystem: '', version: plainVersion('', written), qualifiers }
  const { ecosystem } = found
  const kind = sameType(type) === 'alpine' ? 'apk' : sameType(type)
  const platform = kind === 'gem' ? written.slice(found.version.length + 1) : ''
  if (platform !== '' && !qualifiers.has('platform')) qualifiers.set('platform', platform)
  // The version has the epoch; without a version the qualifier says it.
  if (found.version !== '' || Number(qualifiers.get('epoch')) === 0) qualifiers.delete('epoch')
  const key = `${kind}/${ecosystem}/${normalName(ecosystem, found.name)}`
  return { key, ecosystem, version: plainVersion(ecosystem, found.version), qualifiers }
}

/** Returns a version without what its ecosystem does not count, such as the epoch of `0:1.2`. */
function plainVersion(ecosystem: string, version: string): string {
  const known = findEcosystem(ecosystem)
  return (known === null ? version : canonicalVersion(known, version)).replace(/^0+:/, '')
}

/** Returns a product in another version, as a statement names it beside the package URL. */
export function inVersion(name: ProductName, version: string): ProductName {
  return { ...name, version: plainVersion(name.ecosystem, version) }
}

/** Reports whether a text is the version of a product, with or without its epoch. */
export function isVersionOf({ ecosystem, version }: ProductName, text: string): boolean {
  const plain = plainVersion(ecosystem, text)
  return plain === version || plain === version.replace(EPOCH, '')
}

/** A package, and the source packages that it is built from. */
export interface ProductNames {
  readonly own: ProductName
  readonly sources: readonly ProductName[]
}

/** Reports whether one can be the other, or the source package of the other. */
export function mayConcern(one: ProductNames, other: ProductNames): boolean {
  const ofOther = [other.own, ...other.sources]
  return ofOther.some((name) => mayBeOne(one.own, name)) || one.sources.some((name) => mayBeOne(name, other.own))
}

/**
 * Reports whether a product that a statement names is clearly this source package: its package URL says that it is one, as another
 * of the same name is a binary package.
 */
export function isCoveredSource(source: ProductName, named: ProductName): boolean {
  if (!isSourceArch(named.qualifiers.get('arch'))) return false
  const { qualifiers } = named
  return isCovered(source, { ...named, qualifiers: new Map([...qualifiers].filter(([name]) => name !== 'arch')) })
}

/** Whether an architecture is the one that source packages have: of deb, and of rpm. */
function isSourceArch(arch = ''): boolean {
  return arch === 'source' || arch === 'src'
}

/** Returns the digest among the parts of an image's package URL. */
function digestIn(parts: readonly string[]): string {
  return parts.map((part) => part.toLowerCase()).find((part) => DIGEST.test(part)) ?? ''
}

/** Reports whether a product is a container image. */
export function isImage({ key }: ProductName): boolean {
  return IMAGE_TYPES.has(key.slice(0, key.indexOf('/')))
}

/** Returns a name of an image without the tag in it: one that has no digest may be any that the tag was. */
export function withoutTag(name: ProductName): ProductName {
  return isImage(name) && name.digest === '' ? { ...name, version: '' } : name
}

/**
 * Reports whether a product that a statement names is clearly this one: the same package, the same version where the
 * statement names one, all its qualifiers, and no other repository, epoch or classifier. Of two images with digests the digest
 * alone is compared, and the platform where both name one: a registry, a repository and a tag are names that change.
 */
export function isCovered(own: ProductName, named: ProductName): boolean {
  if (own.digest !== '' && named.digest !== '') return own.digest === named.digest && isOfPlatform(own, named)
  if (named.key !== own.key) return false
  if (named.version !== '' && named.version !== own.version) return false
  if (named.subpath !== '' && named.subpath !== own.subpath) return false
  const names = [...named.qualifiers.keys(), ...OWN]
  return names.every((name) => named.qualifiers.get(name) === own.qualifiers.get(name))
}

/**
 * Reports whether something can be both products: nothing that both name is different. What rules nothing out is compared so
 * with components and with what rules out. An epoch that one of them leaves out, other spellings of a release and of an
 * architecture, and qualifiers that do not tell packages apart are no difference.
 */
export function mayBeOne(one: ProductName, other: ProductName): boolean {
  if (one.digest !== '' && other.digest !== '') return one.digest === other.digest && isOfPlatform(one, other)
  if (one.key !== other.key || !mayBeVersion(one.version, other.version)) return false
  if (!mayBeText(one.subpath, other.subpath) || !isOfPlatform(one, other)) return false
  const compared = isImage(one) ? [...one.qualifiers.keys()] : TELLING
  const isSame = (name: string): boolean => mayBeText(one.qualifiers.get(name), other.qualifiers.get(name))
  return compared.filter((name) => name !== 'arch').every(isSame) && mayBeRelease(one, other)
}

function mayBeText(one = '', other = ''): boolean {
  return one === '' || other === '' || one === other
}

function mayBeVersion(one: string, other: string): boolean {
  const isEpochNamed = EPOCH.test(one) && EPOCH.test(other)
  return isEpochNamed ? one === other : mayBeText(one.replace(EPOCH, ''), other.replace(EPOCH, ''))
}

/** Whether two packages may be of one release: what cannot be read as a release may be any. */
function mayBeRelease(one: ProductName, other: ProductName): boolean {
  const own = releaseIn(one)
  const named = releaseIn(other)
  return own === null || named === null || own === named
}

function releaseIn({ qualifiers }: ProductName): string | null {
  const text = qualifiers.get('distro')
  const release = text === undefined ? null : readRelease(text, null)
  return release === null ? null : JSON.stringify(release)
}

function isOfPlatform(own: ProductName, named: ProductName): boolean {
  return PLATFORM.every((name) => {
    const one = own.qualifiers.get(name)
    const other = named.qualifiers.get(name)
    if (one === undefined || other === undefined || isSourceArch(one) || isSourceArch(other)) return true
    return platformOf(one) === platformOf(other)
  })
}

/**
 * Reports whether a name of an image is about what has these architectures, '' for one that is not said: what rules out about all of
 * them, anything else about one that it may be.
 */
export function isForPlatforms(
  { qualifiers }: ProductName,
  platforms: readonly string[],
  isRulingOut: boolean,
): boolean {
  const named = qualifiers.get('arch')
  if (named === undefined) return true
  const isSame = (one: string): boolean => platformOf(one) === platformOf(named)
  return isRulingOut ? platforms.every(isSame) : platforms.some((one) => one === '' || isSame(one))
}

function platformOf(text: string): string {
  const lower = text.toLowerCase()
  return ARCHITECTURES.get(lower) ?? lower
}

/** Returns under which names a product is looked for: a digest, or a package in a version, or in any. */
export function placesOfProduct(own: ProductName): string[] {
  const named = [placeOfProduct({ ...own, digest: '' }), placeOfProduct({ ...own, digest: '', version: '' })]
  return [...new Set(own.digest === '' ? named : [placeOfProduct(own), ...named])]
}

/** Returns under which name a product is found that a statement names. */
export function placeOfProduct({ key, version, digest }: ProductName): string {
  // An epoch that is not named everywhere is no other place.
  return JSON.stringify(digest === '' ? [key, version.replace(EPOCH, '')] : [digest])
}
