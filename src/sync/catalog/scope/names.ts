import { namesOf } from '../../../base/domain/image-reference.ts'
import { percentDecoded } from '../../../base/text.ts'

/** Kind of a subscription's target. */
export type SubscribedKind = 'image' | 'tag' | 'package'

/** Lookup keys of a text, by kind; an id is compared exactly, a name without case. */
export type Keys = Record<SubscribedKind, readonly string[]>

/** Returns the key of an id, which is compared exactly. */
export function idKey(id: string): string {
  return `=${id}`
}

const DIGEST = /^\w+:[0-9a-f]{32,}$/i
const MAX_TEXT = 500

/**
 * Returns the names in a text: an image reference (`registry/repo:tag@sha256:…`, each part and a scheme optional), a
 * package URL, a package with its version or ecosystem, or a plain name.
 */
export function nameKeys(given: string): Keys {
  const text = given.trim()
  if (text === '' || text.length > MAX_TEXT) return { image: [], tag: [], package: [] }
  if (/^pkg:/i.test(text)) return purlKeys(text)
  if (DIGEST.test(text)) return lower({ image: [], tag: [text], package: [] })
  return lower({ ...referenceKeys(text), package: packageKeys(text) })
}

/** Returns the keys of a tag by its repository and its name. */
export function tagKeys(repository: string, tag: string): readonly string[] {
  return lower({ image: [], tag: repositories(repository).map((one) => `${one}:${tag}`), package: [] }).tag
}

function referenceKeys(text: string): Pick<Keys, 'image' | 'tag'> {
  const subject = text.replace(/^[a-z][a-z\d+.-]*:\/\//i, '')
  const parts = { repository: null, tag: null, digest: null, arch: null, subject }
  const { repository, tag, digest } = namesOf(parts)
  if (repository === null) return { image: [text], tag: [] }
  const image = [text, ...repositories(repository)]
  const tagged = tag === null ? [] : repositories(repository).map((one) => `${one}:${tag}`)
  return { image, tag: digest === null ? tagged : [digest, ...tagged] }
}

/** Returns a repository with and without the folder that registries put official images in. */
function repositories(repository: string): string[] {
  return [repository, repository.replace(/^library\//, '')]
}

const ECOSYSTEM = /^(?:alpine|debian|ubuntu|pypi|npm|maven)[:/](?=.)/i

/** Returns the keys of `name`, `name@version` or `name==version`, each with an optional `ecosystem:` prefix. */
function packageKeys(text: string): string[] {
  const plain = text.replace(ECOSYSTEM, '')
  const unversioned = [text, plain].map((one) => one.replace(/(?<=.)(@|==)[^@/\s]+$/, ''))
  return [text, plain, ...unversioned]
}

/**
 * Parses a package URL; null when the text is not one. Qualifiers and the subpath are ignored, because they name no
 * other package.
 */
function readPurl(
  text: string,
): { type: string; path: string[]; version: string | null; query: URLSearchParams } | null {
  const match = /^pkg:\/*([a-z][\w.+-]*)\/([^?#]+?)(?:@([^@?#/]+))?(?:\?([^#]*))?(?:#.*)?$/i.exec(text)
  if (match === null) return null
  const [, type = '', path = '', version = null, query = ''] = match
  const parts = path.split('/').filter((part) => part !== '')
  return {
    type: type.toLowerCase(),
    path: parts.map(percentDecoded),
    version: version === null ? null : percentDecoded(version),
    query: new URLSearchParams(query),
  }
}

function purlKeys(text: string): Keys {
  const purl = readPurl(text)
  if (purl === null) return { image: [], tag: [], package: [] }
  const { type, path, version, query } = purl
  const name = path.join('/')
  if (/^(oci|docker|container)$/.test(type)) {
    const isDigest = version !== null && version.includes(':') // no tag has a colon
    const tag = query.get('tag') ?? (isDigest ? null : version)
    const reference = `${query.get('repository_url') ?? name}${tag === null ? '' : `:${tag}`}`
    const keys = referenceKeys(reference)
    return lower({ ...keys, tag: isDigest ? [version, ...keys.tag] : keys.tag, package: [] })
  }
  const forms = [name, path.join(':'), ...(type === 'deb' || type === 'apk' ? path.slice(-1) : [])]
  const purlName = `pkg:${type}/${name}`
  const versioned = version === null ? [] : [`${purlName}@${version}`]
  return lower({ image: [], tag: [], package: [...versioned, purlName, ...forms] })
}

/** Returns the ecosystem that a text names: the type of a package URL, or a prefix of the name. */
export function ecosystemIn(text: string): string | null {
  const purl = /^pkg:/i.test(text) ? readPurl(text) : null
  if (purl !== null) return /^(deb|apk)$/.test(purl.type) ? (purl.path[0] ?? null) : purl.type
  return ECOSYSTEM.test(text) ? (/^\w+/.exec(text)?.[0].toLowerCase() ?? null) : null
}

function lower(keys: Keys): Keys {
  const plain = (all: readonly string[]): string[] => [...new Set(all.map((one) => one.toLowerCase()))]
  return { image: plain(keys.image), tag: plain(keys.tag), package: plain(keys.package) }
}
