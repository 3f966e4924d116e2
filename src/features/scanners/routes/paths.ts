import { decodePart, decodedPart } from '../../../server/http/request-target.ts'

/** Everything below is osv.dev's query API. */
export const QUERY_API = '/osv/v1/'

const QUERY_WITHOUT_BASE = /^\/v1\/(?:query|querybatch|vulns\/[^?]+)(?:\?|$)/

/** Whether a target is one of osv.dev's query API without its base here: some clients drop `/osv` of a base without a slash. */
export function lacksQueryBase(target: string): boolean {
  return QUERY_WITHOUT_BASE.test(target)
}

/** The layout of osv.dev's bucket. */
export const BUCKET = '/osv/'

const WHOLE: ReadonlySet<string> = new Set(['ecosystems.txt', 'modified_id.csv', 'all.zip'])
const OF_EACH: ReadonlySet<string> = new Set(['all.zip', 'modified_id.csv'])
const RECORD_ENDING = '.json'

/** What a path of the bucket means. */
export type BucketPath =
  | { readonly kind: 'asset'; readonly view: string | null; readonly name: string }
  | {
      readonly kind: 'record'
      readonly view: string
      /** Null when the path cannot be decoded: then only `raw` may be an id. */
      readonly id: string | null
      /** As it came, not decoded. */
      readonly raw: string
    }

/** Whether a path (percent-encoded) is one of the bucket's. */
export function isBucket(path: string): boolean {
  return path.startsWith(BUCKET) || path === BUCKET.slice(0, -1)
}

/**
 * Parses a path of the bucket (percent-encoded); null when no object can have it. Ecosystems and ids may contain any character,
 * also slashes; the first unescaped slash ends the ecosystem. Throws `bad_request` for an ecosystem that cannot
 * be decoded.
 */
export function bucketPath(path: string): BucketPath | null {
  const rest = path.slice(BUCKET.length)
  const slash = rest.indexOf('/')
  if (slash < 0) {
    const name = decodePart(rest)
    return WHOLE.has(name) ? { kind: 'asset', view: null, name } : null
  }
  const view = decodePart(rest.slice(0, slash))
  const written = rest.slice(slash + 1)
  const name = decodedPart(written)
  if (view === '') return null
  if (name !== null && OF_EACH.has(name)) return { kind: 'asset', view, name }
  const id = name === null ? null : idOf(name)
  const raw = idOf(written)
  return id === null && (name !== null || raw === null) ? null : { kind: 'record', view, id, raw: raw ?? '' }
}

function idOf(name: string): string | null {
  const isRecord = name.endsWith(RECORD_ENDING) && name.length > RECORD_ENDING.length
  return isRecord ? name.slice(0, -RECORD_ENDING.length) : null
}
