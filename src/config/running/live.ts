import type { Config } from '../schema.ts'
import { SCHEMA } from '../table.ts'
import { followConfig } from '../secret-files.ts'

/** Settings that a running daemon takes over when the settings are read again, by section. */
const LIVE = {
  osv: ['schedule', 'reconcileSchedule'],
  catalog: ['schedule'],
  server: ['keys', 'maxConnections', 'maxConnectionsPerAddress'],
  webhooks: ['secrets'],
  relay: Object.keys(SCHEMA.relay) as (keyof Config['relay'])[],
  fleet: ['leaseSeconds', 'keepDays'],
  log: ['level', 'access'],
} as const satisfies { [Name in keyof Config]?: readonly (keyof Config[Name])[] }

/** Their dotted keys. */
export const LIVE_KEYS: ReadonlySet<string> = new Set(
  Object.entries(LIVE).flatMap(([section, names]) => names.map((name) => `${section}.${name}`)),
)

/** Makes settings live, without an upstream for a daemon that is offline. `warn` names a secret's file that cannot be used. */
export function createLiveConfig(
  given: Config,
  { offline, warn }: { readonly offline: boolean; readonly warn: (text: string) => void },
) {
  const started = offline ? withoutUpstream(given) : given
  let newest = followConfig(started, warn)
  const now = (): Config => newest
  const config: Config = {
    ...started,
    osv: follow(started.osv, LIVE.osv, () => now().osv),
    feeds: follow(started.feeds, ['schedule'], () => now().feeds),
    catalog: follow(started.catalog, LIVE.catalog, () => now().catalog),
    identity: follow(started.identity, ['schedule'], () => now().identity),
    server: follow(started.server, LIVE.server, () => now().server),
    webhooks: follow(started.webhooks, LIVE.webhooks, () => now().webhooks),
    relay: follow(started.relay, LIVE.relay, () => now().relay),
    fleet: follow(started.fleet, LIVE.fleet, () => now().fleet),
    log: follow(started.log, LIVE.log, () => now().log),
  }
  return {
    config,
    /** From now on the live settings have these values. */
    replace: (next: Config): void => void (newest = followConfig(next, warn)),
  }
}

/** Without a root there is nothing to request, and what cannot be requested needs no credential. */
function withoutUpstream(config: Config): Config {
  const nothing = { apiRoot: null, catalogUrl: null, apiKey: null, token: null, proxy: null }
  return { ...config, upstream: { ...config.upstream, ...nothing } }
}

/** The same section, of which these properties are read where they are now. */
function follow<Section extends object>(
  section: Section,
  names: readonly (keyof Section)[],
  now: () => Section,
): Section {
  const properties = Object.getOwnPropertyDescriptors(section) as PropertyDescriptorMap
  for (const name of names) properties[String(name)] = { get: () => now()[name], enumerable: true, configurable: true }
  return Object.defineProperties({}, properties) as Section
}
