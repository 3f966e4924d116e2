import { decodePart } from './target.ts'

/** The layout of osv.dev's bucket. */
export const BUCKET = '/osv/'

/** Its paths, as they are shown: of all ecosystems, and of each. */
export const BUCKET_PATHS: readonly string[] = [
  '/osv/ecosystems.txt',
  '/osv/modified_id.csv',
  '/osv/all.zip',
  '/osv/{ecosystem}/all.zip',
  '/osv/{ecosystem}/modified_id.csv',
  '/osv/{ecosystem}/{id}.json',
]

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
 * Reads a path of the bucket (percent-encoded); null when nothing ever lies there. Ecosystems and ids may hold anything,
 * slashes too; the first slash that is written as one ends the ecosystem. Throws `bad_request` for an ecosystem that cannot
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
  const name = decoded(written)
  if (view === '') return null
  if (name !== null && OF_EACH.has(name)) return { kind: 'asset', view, name }
  const id = name === null ? null : idOf(name)
  const raw = idOf(written)
  return id === null && (name !== null || raw === null)
    ? null
    : { kind: 'record', view, id, raw: raw ?? '' }
}

function decoded(text: string): string | null {
  try {
    return decodePart(text)
  } catch {
    return null
  }
}

function idOf(name: string): string | null {
  const isRecord = name.endsWith(RECORD_ENDING) && name.length > RECORD_ENDING.length
  return isRecord ? name.slice(0, -RECORD_ENDING.length) : null
}
