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
  | { readonly kind: 'record'; readonly view: string; readonly id: string }

/** Whether a path (percent-encoded) is one of the bucket's. */
export function isBucket(path: string): boolean {
  return path.startsWith(BUCKET) || path === BUCKET.slice(0, -1)
}

/**
 * Reads a path of the bucket (percent-encoded); null when nothing ever lies there. Ecosystems and ids may hold anything,
 * slashes too; the first slash that is written as one ends the ecosystem. Throws `bad_request` for what cannot be decoded.
 */
export function bucketPath(path: string): BucketPath | null {
  const rest = path.slice(BUCKET.length)
  const slash = rest.indexOf('/')
  if (slash < 0) {
    const name = decodePart(rest)
    return WHOLE.has(name) ? { kind: 'asset', view: null, name } : null
  }
  const view = decodePart(rest.slice(0, slash))
  const name = decodePart(rest.slice(slash + 1))
  if (view === '') return null
  if (OF_EACH.has(name)) return { kind: 'asset', view, name }
  if (!name.endsWith(RECORD_ENDING) || name.length === RECORD_ENDING.length) return null
  return { kind: 'record', view, id: name.slice(0, -RECORD_ENDING.length) }
}
