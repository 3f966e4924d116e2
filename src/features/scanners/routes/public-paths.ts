import { BUCKET, QUERY_API, lacksQueryBase } from './paths.ts'
import { PUBLIC_CACHING, createHeads } from '../../../server/http/response.ts'
import { whyLeftOut } from '../../../server/lookup/missing-record.ts'
import type { NodeAnswer } from '../../../server/app.ts'
import { type ServerPlugin, type ServerTools, below } from '../../../server/plugin.ts'
import { createBucket } from './bucket.ts'
import { BUCKET_CONTRACTS, QUERY_CONTRACTS } from './contract.ts'
import { type ViewsMaker, createViewOrigins, createViewsInUse } from './generation.ts'
import { readDamage } from '../store/generations.ts'
import { whyNoRecord } from './missing.ts'
import { createOsvQuery } from './query-routes.ts'

/** Makes the routes of the bucket and the query API. `maker`: makes what they are answered from; null: what is there is served. */
export function scannerRoutes(maker: ViewsMaker | null): ServerPlugin {
  return (app, tools, done) => {
    const { config } = tools
    const { bucket, query } = createScannerPaths(maker, tools)
    app.bodySchemas(async () => (await import('./query-schemas.ts')).QUERY_SCHEMAS)
    const ofBucket = app.onNode(bucket)
    if (config.views.bucket)
      for (const [path, schema] of Object.entries(BUCKET_CONTRACTS)) {
        const isRecord = path.includes('{id}')
        const url = isRecord ? `${BUCKET}*` : path.replace('{ecosystem}', ':ecosystem')
        app.get(url, { schema, config: { path, listed: 'mirrored' } }, ofBucket)
      }
    if (config.views.query)
      for (const [path, schema] of Object.entries(QUERY_CONTRACTS)) {
        const route = { schema, config: { path, listed: 'mirrored' } } as const
        if (path.includes('{id}')) app.get(path.replace('{id}', '*'), route, app.onNode(query))
        else app.post(path, { ...route, ...app.onUnreadBody(query) })
      }
    app.get(`${QUERY_API}*`, app.onNode(query)) // not the bucket's
    app.answerRest(below([QUERY_API], query))
    app.answerRest((request, response) => {
      const { url = '' } = request
      if (!lacksQueryBase(url)) return bucket(request, response)
      query(request, response)
      return true
    })
    done()
  }
}

/** Creates what answers both, from one generation of views. */
function createScannerPaths(maker: ViewsMaker | null, tools: ServerTools) {
  const { config, dataDir, log, served, edge, failures } = tools
  const views = createViewsInUse(dataDir, maker, log, served)
  tools.follow(() => {
    views.refresh()
    if (readDamage(dataDir, 'vex') !== null) maker?.damaged('vex')
  })
  tools.atEnd(() => Promise.resolve(views.close()))
  const heads = createHeads(PUBLIC_CACHING, edge.ofViews)
  const onError = failures.answer
  const bucket = createBucket({ served, edge, views, heads, onError, enabled: config.views.bucket })
  const query = createOsvQuery({
    now: tools.now,
    failures,
    heads: createHeads(PUBLIC_CACHING), // edges keep no answer of the query API
    views,
    originOf: createViewOrigins(served),
    missing: (id) => whyNoRecord(served.reads, id),
    leftOut: (ecosystem) => {
      const { scope, isPart } = served.knownOrigin('osv') ?? {}
      return scope === undefined && isPart !== true ? null : whyLeftOut(served.reads, ecosystem)
    },
    enabled: config.views.query,
  })
  return { bucket, query } satisfies Record<string, NodeAnswer>
}
