import { parsePurl } from '../identity/purl.ts'

/** A package URL as it is compared with that of a product. */
export interface ProductName {
  /** Type, namespace and name. */
  readonly key: string
  /** Empty: any. */
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

/** Reads a package URL; null for what is none. */
export function readProductName(text: string): ProductName | null {
  if (text.length > LONGEST) return null
  try {
    const { type, namespace = '', name, version = '', qualifiers, subpath = '' } = parsePurl(text)
    const named = new Map(Object.entries(qualifiers ?? {}))
    return {
      key: `${type}/${namespace}/${name}`,
      version,
      subpath,
      qualifiers: named,
      digest: IMAGE_TYPES.has(type) ? digestIn([version, named.get('digest') ?? '']) : '',
    }
  } catch {
    return null
  }
}

/** Returns the digest among the parts of an image's package URL. */
function digestIn(parts: readonly string[]): string {
  return parts.map((part) => part.toLowerCase()).find((part) => DIGEST.test(part)) ?? ''
}

/** Reports whether a product is a container image. */
export function isImage({ key }: ProductName): boolean {
  return IMAGE_TYPES.has(key.slice(0, key.indexOf('/')))
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
 * with what rules out.
 */
export function mayBeOne(one: ProductName, other: ProductName): boolean {
  if (one.digest !== '' && other.digest !== '') return one.digest === other.digest && isOfPlatform(one, other)
  const isSame = (a: string | undefined, b: string | undefined): boolean =>
    a === undefined || b === undefined || a === '' || b === '' || a === b
  if (one.key !== other.key || !isSame(one.version, other.version)) return false
  if (!isSame(one.subpath, other.subpath)) return false
  const names = [...one.qualifiers.keys()]
  return names.every((name) => isSame(one.qualifiers.get(name), other.qualifiers.get(name)))
}

function isOfPlatform(own: ProductName, named: ProductName): boolean {
  return PLATFORM.every((name) => {
    const one = own.qualifiers.get(name)
    const other = named.qualifiers.get(name)
    return one === undefined || other === undefined || platformOf(one) === platformOf(other)
  })
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
  return JSON.stringify(digest === '' ? [key, version] : [digest])
}
