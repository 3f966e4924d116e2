import type { SourceName } from '../store/runs.ts'
import { BUCKET, BUCKET_PATHS } from './bucket-paths.ts'
import { QUERY_PATHS } from './osv-paths.ts'
import { closestPath, sameButForm } from './closest.ts'

/** Upstream's paths, served unchanged (service API, section 4, public feeds). */
export const MIRRORED = '/external/'
export const INDEX = '/external/osv/all.json'
export const ARCHIVE = '/external/osv/all.zip'
export const RECORD = '/external/osv/{id}.json'
export const LOCAL_PATCH_FEED = '/external/patch_feed'
export const LOCAL_SYSTEM_MATRIX = '/external/globals/sys_matrix'

/** What changed since a snapshot, and the stream that tells of new ones. */
export const CHANGES = '/-/changes'
export const EVENTS_PATH = '/-/events'

/** The header of the health page with the id of the daemon that answers. */
export const INSTANCE_HEADER = 'X-Mirror-Instance'

/** The mirror's own pages, apart from `/`. */
export const OWN = ['/-/health', '/-/ready', '/-/status', '/-/metrics', CHANGES, EVENTS_PATH]
const OWN_PAGES = '/-'

/** Documents in the shape of the patch feed, which the three filters narrow; the second is its older form. */
export const FILTERED: ReadonlySet<string> = new Set([LOCAL_PATCH_FEED, '/external/cve_feed'])

/** Where every record lies. */
export const RECORDS = '/external/osv/'
const SUFFIX = '.json'

/** What the mirror has under /external/, and which source each path belongs to. */
export interface Paths {
  /** Every mirrored path, `{id}` standing for a record's. */
  readonly all: readonly string[]
  /** The source of a document path or of the archive; undefined for anything else. */
  sourceOf(path: string): SourceName | undefined
  /** The path in other letters or slashes, if there is one. */
  sameButForm(path: string): string | null
  /**
   * The path of a mirrored document, of an own page, among `more` or among `hooks` (where webhooks come in) that looks
   * most like this one.
   */
  closest(path: string, more?: readonly string[], hooks?: readonly string[]): string | null
}

/**
 * The paths of this mirror: upstream's own, the configured extra feeds, those of osv.dev's bucket and its query API, and
 * feeds that are held though no setting names them, as an import brings them.
 */
export function createPaths(
  extraPaths: readonly string[],
  { bucket: hasBucket = false, query = false } = {},
  isHeldFeed: (path: string) => boolean = () => false,
): Paths {
  const sources = new Map<string, SourceName>([
    [INDEX, 'osv'],
    [ARCHIVE, 'osv'],
    [LOCAL_PATCH_FEED, 'feeds'],
    [LOCAL_SYSTEM_MATRIX, 'feeds'],
  ])
  for (const path of extraPaths) if (!sources.has(path)) sources.set(path, 'feeds')
  const fixed = [...sources.keys()]
  const bucket = hasBucket ? BUCKET_PATHS : []
  const all = [...fixed, RECORD, ...bucket, ...(query ? QUERY_PATHS : [])]
  return {
    all,
    sourceOf: (path) =>
      sources.get(path) ?? (isFeed(path) && isHeldFeed(path) ? 'feeds' : undefined),
    sameButForm: (path) => fixed.find((known) => sameButForm(known, path)) ?? null,
    closest(path, more = [], hooks = []) {
      const own = [...OWN, ...hooks]
      if (path === OWN_PAGES || path.startsWith(`${OWN_PAGES}/`)) return closestPath(path, own)
      if (path.startsWith(BUCKET))
        // whatever ends like a record's is taken for one
        return closestPath(
          path,
          bucket.filter((one) => !one.endsWith(SUFFIX)),
        )
      if (!path.startsWith(MIRRORED))
        return closestPath(path, [...fixed, ...more, ...own, ...bucket])
      const fixedPath = closestPath(path, fixed)
      // A record's path without its end, or with another.
      return fixedPath ?? (/^\/external\/osv\/[^/]+$/.test(path) ? RECORD : null)
    },
  }
}

function isFeed(path: string): boolean {
  return path.startsWith(MIRRORED) && !path.startsWith(RECORDS)
}

/** The id in a record's path, null for another path. `all` is the index: upstream has no record under that name. */
export function recordId(path: string): string | null {
  if (!path.startsWith(RECORDS) || !path.endsWith(SUFFIX) || path === INDEX) return null
  return path.length < RECORDS.length + SUFFIX.length
    ? null
    : path.slice(RECORDS.length, -SUFFIX.length)
}
