import { parsePurl } from '../../identity/purl.ts'

/** A package URL as it is compared with that of a product. */
export interface ProductName {
  /** Type, namespace and name. */
  readonly key: string
  /** Empty: any. */
  readonly version: string
  readonly qualifiers: ReadonlyMap<string, string>
  /** Empty: the whole package. */
  readonly subpath: string
}

/** Longest package URL that is compared, characters: far above any real one. */
const LONGEST = 2_000

/** Qualifiers that make another product of a package: they count also where a statement does not name them. */
const OWN = ['repository_url', 'epoch', 'classifier'] as const

/** Reads a package URL; null for what is none. */
export function readProductName(text: string): ProductName | null {
  if (text.length > LONGEST) return null
  try {
    const { type, namespace = '', name, version = '', qualifiers, subpath = '' } = parsePurl(text)
    return {
      key: `${type}/${namespace}/${name}`,
      ...{ version, subpath },
      qualifiers: new Map(Object.entries(qualifiers ?? {})),
    }
  } catch {
    return null
  }
}

/**
 * Reports whether a product that a statement names is clearly this one: the same package, the same version where the
 * statement names one, all its qualifiers, and no other repository, epoch or classifier.
 */
export function isCovered(own: ProductName, named: ProductName): boolean {
  if (named.key !== own.key) return false
  if (named.version !== '' && named.version !== own.version) return false
  if (named.subpath !== '' && named.subpath !== own.subpath) return false
  const names = [...named.qualifiers.keys(), ...OWN]
  return names.every((name) => named.qualifiers.get(name) === own.qualifiers.get(name))
}
