import { PackageURL } from 'packageurl-js'
import { MirrorError } from '../errors.ts'
import { purlKinds, sameType } from './spellings.ts'

/** A package URL, parsed. */
export interface ParsedUrl extends Pick<
  PackageURL,
  'type' | 'namespace' | 'name' | 'version' | 'qualifiers' | 'subpath'
> {
  /** Namespace and name as the text writes them: the library changes the case of some types. */
  readonly given: { readonly namespace: string | undefined; readonly name: string }
}

/**
 * Parses a package URL. The library's own check of Go versions fails with a ReferenceError for `v1.0`, so the version of a
 * Go package is not given to it: any is allowed, as for other types. Throws `bad_request`.
 */
export function parsePurl(text: string): ParsedUrl {
  try {
    const parts = PackageURL.parseString(text)
    const [type = '', , , version, qualifiers, subpath] = parts
    const kind = type.trim().toLowerCase()
    const isGo = kind === 'golang'
    const isPlain = version === undefined && NEEDS_VERSION.has(kind)
    const { namespace, name } = groupOf(kind, parts[1], parts[2])
    let given = version
    if (isGo) given = undefined
    if (isPlain) given = '0'
    const url = new PackageURL(type, namespace, name, given, qualifiers, subpath)
    let own = url.version
    if (isGo) own = version?.trim()
    if (isPlain) own = undefined
    return {
      type: url.type,
      namespace: url.namespace,
      name: url.name,
      version: own,
      qualifiers: url.qualifiers,
      subpath: url.subpath,
      given: { namespace: namespace?.replace(/^\/+|\/+$/g, ''), name: name.trim() },
    }
  } catch (cause) {
    // a defect of this program or the library, and not of the text
    if (cause instanceof ReferenceError || cause instanceof TypeError) throw cause
    const reason = cause instanceof Error ? `: ${cause.message}` : ''
    throw new MirrorError('bad_request', `Invalid Package URL${reason}`, { cause })
  }
}

/** Types of which the library takes no package URL without a version: the version may stand beside it. */
const NEEDS_VERSION = new Set(['cran', 'swift'])

/** Maven's group may be in the name, `group:artifact`, as GitHub's dependency graph names its packages. */
function groupOf(
  kind: string,
  namespace: string | undefined,
  name = '',
): { namespace: string | undefined; name: string } {
  const colon = name.indexOf(':')
  const isWhole = sameType(kind) === 'maven' && (namespace ?? '') === '' && colon > 0
  if (!isWhole) return { namespace, name }
  return { namespace: name.slice(0, colon), name: name.slice(colon + 1) }
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
    return new PackageURL(type, namespace, name.slice(cut + 1), undefined, undefined, undefined).toString()
  } catch {
    return null
  }
}

const KINDS = purlKinds()
