import { FEEDS_ROOT, OSV_ARCHIVE, OSV_INDEX, OSV_RECORD, OSV_ROOT, PUBLIC_FEEDS } from '../../base/domain/feed-paths.ts'
import type { SourceName } from '../../base/domain/sources.ts'
import { decodePart } from './request-target.ts'

/** The changes since a snapshot; the event stream below announces new ones. */
export const CHANGES = '/-/changes'
export const EVENTS_PATH = '/-/events'

/** Since when a record is known here, by its id behind it. */
export const RECORDS = '/-/records/'

/** The header of the health page with the id of the daemon that answers. */
export const INSTANCE_HEADER = 'X-Mirror-Instance'

/** Answers 200 on the mirror that leads its fleet, 503 on the others. */
export const LEADER_PATH = '/-/leader'

/** The contract of this mirror, as an OpenAPI document. */
export const OPENAPI_PATH = '/-/openapi.json'

/** Below it are the pages for people. */
export const PAGES_ROOT = '/-/ui/'

/** The same for people, as a page. */
export const DOCS_PATH = '/-/docs'

/** The bill of materials of this program. */
export const SBOM_PATH = '/-/sbom'

/** Takes an SBOM and answers the vulnerabilities of its components. */
export const MATCH_PATH = '/-/match'

/** The mirror's own pages, apart from `/`. */
export const OWN = [
  '/-/health',
  '/-/ready',
  LEADER_PATH,
  '/-/status',
  '/-/metrics',
  CHANGES,
  EVENTS_PATH,
  `${RECORDS}{id}`,
  OPENAPI_PATH,
  DOCS_PATH,
  SBOM_PATH,
  MATCH_PATH,
] as const

const SUFFIX = '.json'

/** What the mirror has under /external/, and which source each path belongs to. */
export interface Paths {
  /** Every mirrored path, `{id}` standing for a record's. */
  readonly all: readonly string[]
  /** Those of upstream's feeds, records apart. */
  readonly feeds: readonly string[]
  /** The source of a document path or of the archive; undefined for anything else. */
  sourceOf(path: string): SourceName | undefined
}

/**
 * Creates the paths of this mirror: upstream's own, the configured extra feeds, those of osv.dev's bucket and its query API,
 * and stored feeds that no setting names (an import adds them).
 */
export function createPaths(
  extraPaths: readonly string[],
  { bucket: hasBucket = false, query = false } = {},
  isStoredFeed: (path: string) => boolean = () => false,
): Paths {
  const sources = new Map<string, SourceName>([
    [OSV_INDEX, 'osv'],
    [OSV_ARCHIVE, 'osv'],
  ])
  for (const { path } of PUBLIC_FEEDS) sources.set(path, 'feeds')
  for (const path of extraPaths) if (!sources.has(path)) sources.set(path, 'feeds')
  const fixed = [...sources.keys()]
  const bucket = hasBucket ? BUCKET_PATHS : []
  const all = [...fixed, OSV_RECORD, ...bucket, ...(query ? QUERY_PATHS : [])]
  return {
    all,
    feeds: fixed,
    sourceOf: (path) => sources.get(path) ?? (isFeed(path) && isStoredFeed(path) ? 'feeds' : undefined),
  }
}

function isFeed(path: string): boolean {
  return path.startsWith(FEEDS_ROOT) && !path.startsWith(OSV_ROOT)
}

/** The id in a record's path, null for another path. `all` is the index: upstream has no record under that name. */
export function recordId(path: string): string | null {
  if (!path.startsWith(OSV_ROOT) || !path.endsWith(SUFFIX) || path === OSV_INDEX) return null
  return path.length < OSV_ROOT.length + SUFFIX.length ? null : path.slice(OSV_ROOT.length, -SUFFIX.length)
}

/** Everything below is osv.dev's query API. */
export const QUERY_API = '/osv/v1/'

const QUERY_WITHOUT_BASE = /^\/v1\/(?:query|querybatch|vulns\/[^?]+)(?:\?|$)/

/** Whether a target is one of osv.dev's query API without its base here: some clients drop `/osv` of a base without a slash. */
export function lacksQueryBase(target: string): boolean {
  return QUERY_WITHOUT_BASE.test(target)
}

/** Its paths, as they are shown. */
export const QUERY_PATHS = ['/osv/v1/query', '/osv/v1/querybatch', '/osv/v1/vulns/{id}'] as const

/** The layout of osv.dev's bucket. */
export const BUCKET = '/osv/'

/** Its paths, as they are shown: of all ecosystems, and of each. */
export const BUCKET_PATHS = [
  '/osv/ecosystems.txt',
  '/osv/modified_id.csv',
  '/osv/all.zip',
  '/osv/{ecosystem}/all.zip',
  '/osv/{ecosystem}/modified_id.csv',
  '/osv/{ecosystem}/{id}.json',
] as const

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
  const name = decoded(written)
  if (view === '') return null
  if (name !== null && OF_EACH.has(name)) return { kind: 'asset', view, name }
  const id = name === null ? null : idOf(name)
  const raw = idOf(written)
  return id === null && (name !== null || raw === null) ? null : { kind: 'record', view, id, raw: raw ?? '' }
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
