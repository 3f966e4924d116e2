import { FEEDS_ROOT, OSV_ARCHIVE, OSV_INDEX, OSV_RECORD, OSV_ROOT, PUBLIC_FEEDS } from '../../base/domain/feed-paths.ts'
import type { SourceName } from '../../base/domain/sources.ts'

/** The header of the health page with the id of the daemon that answers. */
export const INSTANCE_HEADER = 'X-Mirror-Instance'

/** The contract of this mirror, as a page. */
export const DOCS_PATH = '/-/docs'

const SUFFIX = '.json'

/** What the mirror has under /external/, and which source each path belongs to. */
export type Paths = ReturnType<typeof createPaths>

/**
 * Creates the paths of upstream's feeds: its own, the configured extra ones, and stored ones that no setting names (an import
 * adds them).
 */
export function createPaths(extraPaths: readonly string[], isStoredFeed: (path: string) => boolean = () => false) {
  const sources = new Map<string, SourceName>([
    [OSV_INDEX, 'osv'],
    [OSV_ARCHIVE, 'osv'],
  ])
  for (const { path } of PUBLIC_FEEDS) sources.set(path, 'feeds')
  for (const path of extraPaths) if (!sources.has(path)) sources.set(path, 'feeds')
  const fixed = [...sources.keys()]
  return {
    /** Every mirrored path, `{id}` standing for a record's. */
    all: [...fixed, OSV_RECORD],
    /** Those of upstream's feeds, records apart. */
    feeds: fixed,
    /** The source of a document path or of the archive; undefined for anything else. */
    sourceOf: (path: string): SourceName | undefined =>
      sources.get(path) ?? (isFeed(path) && isStoredFeed(path) ? 'feeds' : undefined),
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
