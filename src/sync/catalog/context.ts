import type { CatalogResource, ResourceSurface } from '../../domain/resources.ts'
import type { ArtifactSink } from '../../upstream/artifacts.ts'
import type { Session } from '../../upstream/http/session.ts'
import type { SyncContext } from '../context.ts'
import type { Sessions } from '../sessions.ts'

/** What a crawl works with: a run's context, and the surfaces of the service. */
export interface CatalogContext extends SyncContext {
  /** The session of a surface. Throws `config` for one that the settings do not name. */
  sessionOf(surface: ResourceSurface): Session
  has(surface: ResourceSurface): boolean
  /** A resource's path below its surface's root. */
  relative(resource: Pick<CatalogResource, 'surface'>, path: string): string
  /** Fetches a document behind a pre-signed URL. Throws `upstream_*`. */
  fetchDocument(url: string, sink: ArtifactSink): Promise<void>
  /** Counts listed items for the progress display. */
  counted(items: number): void
}

/** The roots of these surfaces hold the version already (`{base_url}`, `{identity_api_url}`). */
const VERSION = /^\/v\d+(-[a-z]+)?(?=\/)/

/** A crawl's context, from its run's. */
export function createCatalogContext(context: SyncContext, sessions: Sessions): CatalogContext {
  const { source } = context
  let listed = 0
  return {
    ...context,
    sessionOf: (surface) => sessions.of(surface),
    has: (surface) => sessions.has(surface),
    relative: ({ surface }, path) => (surface === 'catalog' ? path : path.replace(VERSION, '')),
    fetchDocument: (url, sink) => sessions.fetchDocument(url, sink),
    counted(items) {
      listed += items
      context.progress({ source, phase: 'lists', unit: 'items', done: listed, total: null })
    },
  }
}
