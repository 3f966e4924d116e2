import type { WebhooksReport } from '../domain/status.ts'
import type { Refresher } from '../webhooks/refresh/refresher.ts'
import type { Webhooks } from '../webhooks/webhooks.ts'

/** What the main listener has of webhooks. */
export function webhookParts(webhooks: Webhooks, refresher: Refresher) {
  const { handle: intercept, paths: hookPaths } = webhooks
  return { intercept, hookPaths, webhooks: reportOn(webhooks, refresher) }
}

/** Returns the report on webhooks: receiving and refreshing. */
function reportOn(webhooks: Webhooks, refresher: Refresher): () => Promise<WebhooksReport> {
  return async () => {
    const [status, refresh] = await Promise.all([webhooks.status(), refresher.report()])
    return { ...status, refresh }
  }
}
