import { QUERY_API, lacksQueryBase } from '../../../server/http/paths.ts'
import { PUBLIC_CACHING, createHeads } from '../../../server/http/response.ts'
import { findMissingRecord } from '../../../server/lookup/missing-record.ts'
import type { FurtherPaths } from '../../../server/public-routes.ts'
import { createBucket } from './bucket.ts'
import { type ViewsMaker, createViewOrigins, createViewsInUse } from './generation.ts'
import { createOsvQuery } from './query-routes.ts'

/** Creates the bucket and the query API. `maker`: makes what they are answered from; null: what is there is served. */
export function createScannerPaths(maker: ViewsMaker | null): FurtherPaths {
  return (parts) => {
    const { config, dataDir, log, served, edge } = parts
    const views = createViewsInUse(dataDir, maker, log, served)
    const heads = createHeads(PUBLIC_CACHING, edge.ofViews)
    const bucket = createBucket({ ...parts, heads, views, enabled: config.views.bucket })
    const query = createOsvQuery({
      ...parts,
      heads: createHeads(PUBLIC_CACHING), // edges keep no answer of the query API
      views,
      originOf: createViewOrigins(served),
      missing: (id) => findMissingRecord(served.reads, id),
      enabled: config.views.query,
    })
    return {
      answer(request, response) {
        const { url = '' } = request
        if (!url.startsWith(QUERY_API) && !lacksQueryBase(url)) return bucket(request, response)
        query(request, response)
        return true
      },
      refresh: () => views.refresh(),
      close: () => views.close(),
    }
  }
}
