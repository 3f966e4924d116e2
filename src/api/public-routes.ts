import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Config } from '../config/schema.ts'
import { createBucket } from './scanners/bucket.ts'
import type { Failures, ServerLog } from './http/problems.ts'
import { type MirrorOptions, createMirror } from './feeds/routes.ts'
import { FEEDS_ROOT } from '../domain/feed-paths.ts'
import { QUERY_API, lacksQueryBase } from './http/paths.ts'
import { createHeads } from './http/response.ts'
import { findMissingRecord } from './lookup/missing-record.ts'
import { createOsvQuery } from './scanners/query-routes.ts'
import { type ViewsMaker, createViewOrigins, createViewsInUse } from './scanners/generation.ts'

/** What the server was given that the public paths depend on. */
interface PublicSettings {
  readonly config: Config
  readonly dataDir: string
  readonly log: ServerLog | null
  readonly viewsMaker?: ViewsMaker
  readonly now: () => number
}

/** Everything that is read without a key: upstream's feeds, and what is made of them for scanners. */
interface PublicSide {
  /** Answers a request for one of its paths; false when it is for another. */
  answer(request: IncomingMessage, response: ServerResponse): boolean
  /** Loads the newest views; called after the served snapshot was moved. */
  refresh(): void
  close(): void
}

/** Puts the mirror of the feeds, the bucket and its query API together. */
export function createPublicSide(
  parts: Omit<MirrorOptions, 'config'> & { readonly failures: Failures },
  settings: PublicSettings,
): PublicSide {
  const { dataDir, config, log, viewsMaker, now } = settings
  const mirror = createMirror({ ...parts, config })
  const views = createViewsInUse(dataDir, viewsMaker ?? null, log, parts.served)
  const { cacheControl, edge } = parts
  const heads = createHeads(cacheControl, edge.ofViews)
  const bucket = createBucket({ ...parts, heads, views, enabled: config.views.bucket })
  const originOf = createViewOrigins(parts.served)
  const unkept = { ...parts, heads: createHeads(cacheControl) } // edges keep no answer of the query API
  const missing = (id: string) => findMissingRecord(parts.served.reads, id)
  const queryOptions = { ...unkept, views, originOf, missing, now, enabled: config.views.query }
  const query = createOsvQuery(queryOptions)
  return {
    answer(request, response) {
      const { url = '' } = request
      if (url.startsWith(FEEDS_ROOT)) mirror(request, response)
      else if (url.startsWith(QUERY_API) || lacksQueryBase(url)) query(request, response)
      else return bucket(request, response)
      return true
    },
    refresh: () => views.refresh(),
    close: () => views.close(),
  }
}
