import type { Config } from '../config/schema.ts'

/**
 * Returns the sources enabled by the settings, in sync order: none without an upstream; else the public feeds, the
 * catalog if there is a credential for the service, and the identity surface if users are to be mirrored.
 */
export function activeSources({ upstream, identity }: Config): SourceName[] {
  if (upstream.apiRoot === null) return []
  const sources: SourceName[] = ['feeds', 'osv']
  if (hasCredential(upstream)) sources.push('catalog')
  if (identity.apiUrl !== null && identity.mirrorUsers && hasCredential(identity))
    sources.push('identity')
  return sources
}

/** Reports whether a mirror with these settings may sync from an upstream: a reader of a fleet never does. */
export function maySync({ upstream, fleet }: Config): boolean {
  return upstream.apiRoot !== null && (fleet.url === null || fleet.role !== 'reader')
}

/**
 * Returns the sources that this mirror serves: those enabled by the settings and those that are stored, whether synced
 * or imported. If there is none, the public feeds: their data is missing.
 */
export function servedSources(
  config: Config,
  isStored: (source: SourceName) => boolean,
): SourceName[] {
  const active = activeSources(config)
  const served = SOURCES.filter((source) => active.includes(source) || isStored(source))
  return served.length > 0 ? served : ['feeds', 'osv']
}

/** How to enable a source that is not always enabled. */
export const SWITCHES = {
  catalog:
    'it needs a credential for the service; set upstream.apiKey (PATCHMIRROR_UPSTREAM_API_KEY_FILE), upstream.token, ' +
    'or upstream.clientId with clientSecret and authUrl',
  identity:
    'it mirrors personal data; set identity.mirrorUsers: true, identity.apiUrl and a credential for it (identity.apiKey)',
} as const satisfies Partial<Record<SourceName, string>>

/**
 * Returns a sentence for each stored source that a mirror with an upstream does not sync, which says how to enable it:
 * it is served and gets outdated. Without an upstream this is true of all sources, and no reason for a warning.
 */
export function unsyncedSources(
  config: Config,
  isStored: (source: SourceName) => boolean,
): string[] {
  if (config.upstream.apiRoot === null) return []
  const active = activeSources(config)
  return (['catalog', 'identity'] as const)
    .filter((source) => !active.includes(source) && isStored(source))
    .map((source) => `${source}: served as it is stored, not synced: ${SWITCHES[source]}`)
}

type Credential = Pick<Config['identity'], 'apiKey' | 'token' | 'clientId'>

function hasCredential({ apiKey, token, clientId }: Credential): boolean {
  return apiKey !== null || token !== null || clientId !== null
}

export type SourceName = 'osv' | 'feeds' | 'catalog' | 'identity'

/** All sources, in the order in which they are synced and shown. */
export const SOURCES: readonly SourceName[] = ['feeds', 'osv', 'catalog', 'identity']
