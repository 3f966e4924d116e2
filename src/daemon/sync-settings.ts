import { mayReceive } from '../config/kinds/webhooks.ts'
import type { Config } from '../config/schema.ts'
import type { SyncThreadDeps } from '../sync/thread.ts'

/**
 * Returns the settings of the thread that syncs, which has no business with the keys of the serving side, and whether it may rest. It
 * does not where events can come: the refresh of the first one would take up to a second longer in a thread that has just started. Nor does
 * it where secrets are in files: the last valid value of one stays in force in the thread that read it.
 */
export function syncSettings(config: Config): Pick<SyncThreadDeps, 'config' | 'mayRest'> {
  return {
    mayRest: !mayReceive(config) && Object.keys(config.secretFiles ?? {}).length === 0,
    config: {
      ...config,
      server: { ...config.server, keys: [] },
      relay: { ...config.relay, secret: null, targets: [] },
      webhooks: { ...config.webhooks, secrets: [] },
    },
  }
}
