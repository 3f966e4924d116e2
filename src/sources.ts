import type { Config } from './config/schema.ts'
import type { SourceName } from './store/runs.ts'

/**
 * The sources that the settings ask for, in the order in which they are synced: the public feeds always, the catalog
 * with a credential for the service, the identity surface when users are to be mirrored.
 */
export function activeSources({ upstream, identity }: Config): SourceName[] {
  const sources: SourceName[] = ['feeds', 'osv']
  if (hasCredential(upstream)) sources.push('catalog')
  if (identity.apiUrl !== null && identity.mirrorUsers && hasCredential(identity))
    sources.push('identity')
  return sources
}

type Credential = Pick<Config['identity'], 'apiKey' | 'token' | 'clientId'>

function hasCredential({ apiKey, token, clientId }: Credential): boolean {
  return apiKey !== null || token !== null || clientId !== null
}
