import type { CatalogResource, ResourceSurface } from '../../base/domain/resources.ts'
import type { ArtifactSink } from '../../upstream/artifacts.ts'
import type { Session } from '../../upstream/http/session.ts'
import { type SignatureCheck, createSignatureCheck } from '../../documents/signatures/check.ts'
import { createLargeHeapCollection } from '../../base/threads/idle-memory.ts'
import type { SyncContext } from '../context.ts'
import type { Sessions } from '../sessions.ts'

/** A run's context with the surfaces of the service. */
export interface CatalogContext extends SyncContext {
  /** Returns the session of a surface. Throws `config` for a surface that is not configured. */
  sessionOf(surface: ResourceSurface): Session
  has(surface: ResourceSurface): boolean
  /** Returns a resource's path relative to its surface's root. */
  relative(resource: Pick<CatalogResource, 'surface'>, path: string): string
  /** Fetches a document behind a pre-signed URL. Throws `upstream_*`. */
  fetchDocument(url: string, sink: ArtifactSink): Promise<void>
  /**
   * Runs one of the crawl's many small writes. They share transactions: a process that dies loses the answers of some
   * milliseconds, and with one request at a time none but the one in flight.
   */
  keep: <T>(work: () => T) => Promise<T>
  /** Verifies the signatures of artifacts; null: the settings want none. */
  readonly signatures: SignatureCheck | null
  /** Collects the thread's heap if it is large and has grown. */
  collectHeap: () => void
  /** Adds listed items to the progress display. */
  counted(items: number): void
}

/** Version prefix that the roots of these surfaces already contain (`{base_url}`, `{identity_api_url}`). */
const VERSION = /^\/v\d+(-[a-z]+)?(?=\/)/

/**
 * Number of writes after which their transaction is committed at the latest. Rows share pages of the indexes of digests only
 * when many are written at once; a crawl that dies fetches these again.
 */
const MAX_WRITES = 256

/** Creates the context of a catalog run from its run's context. */
export function createCatalogContext(context: SyncContext, sessions: Sessions): CatalogContext {
  const { source, store, config } = context
  const most = Math.min(MAX_WRITES, config.catalog.concurrency ** 3)
  let listed = 0
  return {
    ...context,
    sessionOf: (surface) => sessions.of(surface),
    has: (surface) => sessions.has(surface),
    relative: ({ surface }, path) => (surface === 'catalog' ? path : path.replace(VERSION, '')),
    fetchDocument: (url, sink) => sessions.fetchDocument(url, sink),
    signatures: source === 'catalog' ? createSignatureCheck(config.catalog, store.catalog.listCarriedTrust()) : null,
    keep: (work) => store.gathered(most, work),
    collectHeap: createLargeHeapCollection(),
    counted(items) {
      listed += items
      context.progress({ source, phase: 'lists', unit: 'items', done: listed, total: null })
    },
  }
}
