import type { createFaults } from './faults/schedule.ts'
import type { Feed, FeedSource } from './feed/types.ts'
import type { Policy } from './http/negotiate.ts'
import type { createRequestLog } from './request-log.ts'
import type { ServiceParts } from './service/service.ts'
import type { Shape } from './service/shapes/shape.ts'

/** Parts that a request handler works with. */
export interface Context {
  feed: Feed
  source: FeedSource
  faults: ReturnType<typeof createFaults>
  requests: ReturnType<typeof createRequestLog>
  policy: Policy
  cveFeed: boolean
  shape: Shape
  now: () => number
  /** Everything beside the public feeds; undefined when it is switched off. */
  service: ServiceParts | undefined
}
