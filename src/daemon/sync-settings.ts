import type { Config } from '../config/schema.ts'

/** Returns the settings of the thread that syncs, which has no business with the keys of the serving side. */
export function syncSettings(config: Config): Config {
  return {
    ...config,
    server: { ...config.server, keys: [] },
    relay: { ...config.relay, secret: null, targets: [] },
    webhooks: { ...config.webhooks, secrets: [] },
  }
}
