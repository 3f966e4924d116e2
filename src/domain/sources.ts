import type { Config } from '../config/schema.ts'

/**
 * The sources that the settings ask for, in the order in which they are synced: none without an upstream, else the public
 * feeds, the catalog with a credential for the service, the identity surface when users are to be mirrored.
 */
export function activeSources({ upstream, identity }: Config): SourceName[] {
  if (upstream.apiRoot === null) return []
  const sources: SourceName[] = ['feeds', 'osv']
  if (hasCredential(upstream)) sources.push('catalog')
  if (identity.apiUrl !== null && identity.mirrorUsers && hasCredential(identity))
    sources.push('identity')
  return sources
}

/**
 * The sources that this mirror answers for: those that the settings ask for, and those that it holds, whoever brought them.
 * Where that is none, the public feeds: they are what is missing.
 */
export function servedSources(
  config: Config,
  isHeld: (source: SourceName) => boolean,
): SourceName[] {
  const active = activeSources(config)
  const served = SOURCES.filter((source) => active.includes(source) || isHeld(source))
  return served.length > 0 ? served : ['feeds', 'osv']
}

/** What switches on a source that is not always there. */
export const SWITCHES = {
  catalog:
    'it needs a credential for the service; set upstream.apiKey (PATCHMIRROR_UPSTREAM_API_KEY_FILE), upstream.token, ' +
    'or upstream.clientId with clientSecret and authUrl',
  identity:
    'it mirrors personal data; set identity.mirrorUsers: true, identity.apiUrl and a credential for it (identity.apiKey)',
} as const satisfies Partial<Record<SourceName, string>>

/**
 * The sources that this mirror holds and, with an upstream, does not sync, each in a sentence that says what would: they
 * are served and grow old. Without an upstream that is so of all, and nothing to warn of.
 */
export function unsyncedSources(config: Config, isHeld: (source: SourceName) => boolean): string[] {
  if (config.upstream.apiRoot === null) return []
  const active = activeSources(config)
  return (['catalog', 'identity'] as const)
    .filter((source) => !active.includes(source) && isHeld(source))
    .map((source) => `${source}: served as it is stored, not synced: ${SWITCHES[source]}`)
}

type Credential = Pick<Config['identity'], 'apiKey' | 'token' | 'clientId'>

function hasCredential({ apiKey, token, clientId }: Credential): boolean {
  return apiKey !== null || token !== null || clientId !== null
}

export type SourceName = 'osv' | 'feeds' | 'catalog' | 'identity'

/** All sources, in the order in which they are synced and shown. */
export const SOURCES: readonly SourceName[] = ['feeds', 'osv', 'catalog', 'identity']
