import type { Config } from './config/schema.ts'
import { SOURCES, type SourceName } from './store/runs.ts'

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

type Credential = Pick<Config['identity'], 'apiKey' | 'token' | 'clientId'>

function hasCredential({ apiKey, token, clientId }: Credential): boolean {
  return apiKey !== null || token !== null || clientId !== null
}
