import type { Config } from '../../../config/schema.ts'
import { MirrorError } from '../../../base/errors.ts'
import { canonicalPath, matchPath } from '../../../base/domain/path-templates.ts'
import { RELEASES, RESOURCES } from '../../../base/domain/resources.ts'
import { wordsOf } from '../../../base/json/field-names.ts'
import { isObject } from '../../../base/json/objects.ts'
import type { JsonPath } from '../../../base/json/slices.ts'
import { isKnownDocument } from './other-documents.ts'

/** A text of an answer that may lead to a document. */
interface Link {
  readonly at: JsonPath
  /** As the answer has it, or, where that is relative, the whole URL. */
  readonly url: string
}

const MAX_LINKS = 1000
/** Nesting down to which links are looked for. */
const MAX_DEPTH = 32

/** An absolute URL of any scheme: one that must not be followed is refused by name, and not ignored. */
const ABSOLUTE = /^(?:[a-z][a-z\d+.-]*:\/|(?:file|data|javascript):)\S+$/i
/** A URL relative to the answer's own. Not `//host/…`: an answer that means another host names it in full. */
const RELATIVE = /^(?:\/(?!\/)|\.{1,2}\/|\?)\S*$/
/** Words in the names of members whose text is a URL. */
const OF_LINKS = /^(?:urls?|uris?|href|links?|locations?|downloads?|files?|documents?|src)$/

/** Members that identify or explain what they stand in (`@context`, `namespace`): their URLs lead to no document. */
const OF_NAMES =
  /^(?:[@$].*|schema|xmlns|_?type|predicatetype|namespace|documentnamespace|homepage|website|licenses?|author|publisher|references?)$/i

/**
 * Returns the links of an answer, without those in documents of other kinds, which stand in it. Texts with white space are
 * none. Throws `upstream_shape` for more than `MAX_LINKS`.
 */
export function linksIn(value: unknown, base: URL): Link[] {
  const found: Link[] = []
  const visit = (inner: unknown, at: JsonPath): void => {
    if (typeof inner === 'string') {
      const url = urlOf(inner, at, base)
      if (url !== null) found.push({ at, url })
    } else if (typeof inner === 'object' && inner !== null && at.length <= MAX_DEPTH) {
      const isList = Array.isArray(inner)
      if (isObject(inner) && isKnownDocument(inner)) return
      for (const [name, one] of Object.entries(inner) as [string, unknown][])
        if (isList || !OF_NAMES.test(name)) visit(one, [...at, isList ? Number(name) : name])
    }
    if (found.length > MAX_LINKS)
      throw new MirrorError('upstream_shape', `${base.pathname}: the answer links to more than ${MAX_LINKS} documents`)
  }
  visit(value, [])
  return found
}

function urlOf(text: string, at: JsonPath, base: URL): string | null {
  if (ABSOLUTE.test(text)) return text
  if (!RELATIVE.test(text) || !isOfLinks(at)) return null
  return URL.parse(text, base.href)?.href ?? null
}

/** Returns whether the place of a text is one for URLs, by the names above it; a bare text is. */
function isOfLinks(at: JsonPath): boolean {
  const names = at.filter((step) => typeof step === 'string')
  return names.length === 0 || names.some((name) => wordsOf(name).some((word) => OF_LINKS.test(word)))
}

/** Returns whether a URL leads to a host of the service's surfaces, at its port: it is no pre-signed URL. */
export function isServiceHost({ upstream, oauth, identity }: Config, url: URL): boolean {
  const { apiRoot, catalogUrl } = upstream
  const roots = [apiRoot, catalogUrl, oauth.authUrl, identity.apiUrl]
  return roots.some((root) => root !== null && hostOfRoot(root) === plainHost(url))
}

function hostOfRoot(root: string): string | null {
  const url = URL.parse(root)
  return url === null ? null : plainHost(url)
}

/** Returns host and port; a dot at the end of a name changes nothing. */
function plainHost({ host }: URL): string {
  return host.replace(/\.(?=:\d+$|$)/, '')
}

const TEMPLATES: readonly string[] = [
  ...RESOURCES.flatMap(({ list, item, sublist, artifacts }) => [
    ...[list?.path, item, sublist?.path].filter((path) => typeof path === 'string'),
    ...artifacts.flatMap(({ path, aliases }) => [path, ...aliases]),
  ]),
  ...Object.values(RELEASES),
]

/** Returns whether a URL at the service's host is a path of its contract, which is mirrored by itself. */
export function isContractPath({ pathname }: URL, apiRoot: string | null): boolean {
  const prefix = URL.parse(apiRoot ?? '')?.pathname.replace(/\/+$/, '') ?? ''
  const path = pathname.startsWith(`${prefix}/`) ? pathname.slice(prefix.length) : pathname
  const canonical = canonicalPath(path)
  return canonical !== null && TEMPLATES.some((form) => matchPath(form, canonical) !== null)
}
