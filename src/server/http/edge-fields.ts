import type { Config } from '../../config/schema.ts'
import type { SnapshotOrigin } from './origin.ts'

/** Tags of what shared caches keep: of the OSV feed, of the views made of it, and of all other feeds. */
export const EDGE_TAGS = { osv: 'pm-osv', views: 'pm-views', feeds: 'pm-feeds' } as const

/** Header fields for shared caches (edges), as flat lists; empty when `edge.maxAgeSeconds` is 0. */
export interface EdgeFields {
  /** Of an answer under /external/. */
  readonly of: (origin: Pick<SnapshotOrigin, 'source' | 'stale'>) => readonly string[]
  /** Of an answer under /osv/. */
  readonly ofViews: (origin: Pick<SnapshotOrigin, 'stale'>) => readonly string[]
}

const NONE: readonly string[] = []

/** Field names of tags, and what separates two tags. */
const SEPARATORS = { 'Cache-Tag': ',', xkey: ' ', 'Surrogate-Key': ' ' } as const

/**
 * Creates the header fields of public answers that shared caches may keep until they are purged: `CDN-Cache-Control`
 * (RFC 9213), which only such caches obey, the tags of the answer, and `Cache-Groups` (RFC 9875). Scanners and other
 * caches go on with `Cache-Control`.
 */
export function createEdgeFields({
  maxAgeSeconds,
  tagHeader,
}: Pick<Config['edge'], 'maxAgeSeconds' | 'tagHeader'>): EdgeFields {
  if (maxAgeSeconds === 0) return { of: () => NONE, ofViews: () => NONE }
  const fields = (...tags: string[]): readonly string[] => [
    ...['CDN-Cache-Control', `max-age=${maxAgeSeconds}, must-revalidate`],
    ...(tagHeader === 'none' ? [] : [tagHeader, tags.join(SEPARATORS[tagHeader])]),
    ...['Cache-Groups', tags.map((tag) => `"${tag}"`).join(', ')],
  ]
  const osv = fields(EDGE_TAGS.osv)
  const feeds = fields(EDGE_TAGS.feeds)
  const views = fields(EDGE_TAGS.osv, EDGE_TAGS.views)
  return {
    // An answer that is too old by `staleAction` is marked, and no cache is to keep it.
    of({ source, stale }) {
      if (stale) return NONE
      return source === 'osv' ? osv : feeds
    },
    ofViews: ({ stale }) => (stale ? NONE : views),
  }
}
