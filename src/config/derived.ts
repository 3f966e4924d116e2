import { FIXED } from './fixed.ts'
import { splitKeys } from './kinds/keys.ts'
import { partsOfListen } from './kinds/listen.ts'
import { namedAvrs, splitScope } from './kinds/names.ts'
import { type AGED, ageLimits } from './sections/ages.ts'
import { fleetParts } from './sections/exchange.ts'
import { guardFigures } from './sections/guard.ts'
import { listLimit, upstreamLimits } from './sections/upstream.ts'
import type { Values } from './table.ts'

/** What the program reads beside the settings themselves, by section: forms that are written in one text or one map. */
export type Derived = Readonly<ReturnType<typeof derive>>

/** Derives what the program reads from checked values. */
export function derive(values: Values) {
  const ages = (source: (typeof AGED)[number]) => ageLimits(values.sync.maxAgeHours, values.server.staleAction, source)
  const { concurrency, maxBytes } = values.upstream
  return {
    upstream: upstreamLimits(maxBytes),
    guard: guardFigures(values.guard),
    osv: { ...ages('osv'), ...FIXED.osv, ...splitScope(values.osv.scope) },
    // The other feeds follow the records, and the accounts the catalog: the runs queue.
    feeds: { ...ages('feeds'), schedule: values.osv.schedule },
    catalog: {
      ...ages('catalog'),
      ...splitScope(values.catalog.patterns),
      avrIds: namedAvrs(values.catalog.patterns),
      mirrorApiKeys: values.catalog.personalData.includes('apiKeys'),
      // The private surface has a rate limit, so fewer requests at the same time than for public feeds.
      concurrency: Math.ceil(concurrency / 2),
      maxListBytes: listLimit(maxBytes),
    },
    identity: {
      ...ages('identity'),
      schedule: values.catalog.schedule,
      mirrorUsers: values.catalog.personalData.includes('users'),
    },
    sync: { ...FIXED.sync },
    views: viewsServed(values.views.serve),
    match: { tags: values.views.serve.includes('findings') },
    verify: { ...FIXED.verify },
    server: partsOfListen(values.server.listen),
    webhooks: { ...FIXED.webhooks, ...webhookListener(values.webhooks.listen) },
    bundle: { ...FIXED.bundle, ...splitKeys(values.bundle.trustedKeys) },
    // The store of a fleet is in the same network as all else that an own authority certifies.
    fleet: { ...FIXED.fleet, ...fleetParts(values.fleet), caFile: values.upstream.caFile },
  }
}

/** Null: deliveries arrive on the main listener. */
function webhookListener(listen: string | null): { host: string | null; port: number | null } {
  if (listen === null) return { host: null, port: null }
  const { host, port } = partsOfListen(listen)
  return { host, port }
}

function viewsServed(serve: readonly string[]) {
  return {
    bucket: serve.includes('bucket'),
    derived: serve.includes('derived'),
    query: serve.includes('query'),
    vex: serve.includes('vex'),
  }
}
