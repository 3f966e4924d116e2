import type { Config } from '../../config/schema.ts'

/** The settings that say which sources are synced. */
type SyncSettings = Pick<Config, 'upstream' | 'oauth' | 'identity' | 'catalog'>

/**
 * Returns the sources enabled by the settings, in sync order: none without an upstream; else the public feeds, the
 * catalog if there is a credential for the service, and the identity surface if users are to be mirrored.
 */
export function activeSources({ upstream, oauth, identity, catalog }: SyncSettings): SourceName[] {
  if (upstream.apiRoot === null) return []
  const sources: SourceName[] = ['feeds', 'osv']
  const hasClient = oauth.clientId !== null
  if (upstream.apiKey !== null || upstream.token !== null || hasClient) sources.push('catalog')
  const hasUsers = catalog.personalData.includes('users') && identity.apiUrl !== null
  if (hasUsers && (identity.apiKey !== null || hasClient)) sources.push('identity')
  return sources
}

/** Reports whether a mirror with these settings may sync from an upstream: a reader of a fleet never does. */
export function maySync(config: Pick<Config, 'upstream' | 'fleet'>): boolean {
  return config.upstream.apiRoot !== null && !isReader(config)
}

/** Reports whether a mirror gets its data from its fleet alone. */
export function isReader({ fleet }: Pick<Config, 'fleet'>): boolean {
  return fleet.url !== null && fleet.role === 'reader'
}

/**
 * Returns the sources that this mirror serves: those enabled by the settings and those that are stored, whether synced
 * or imported. If there is none, the public feeds: their data is missing.
 */
export function servedSources(config: Config, isStored: (source: SourceName) => boolean): SourceName[] {
  const active = activeSources(config)
  const served = SOURCES.filter((source) => active.includes(source) || isStored(source))
  return served.length > 0 ? served : ['feeds', 'osv']
}

/** How to enable a source that is not always enabled. */
export const SWITCHES = {
  catalog:
    'it needs a credential for the service; set upstream.apiKey (PATCHMIRROR_UPSTREAM_API_KEY_FILE), upstream.token, ' +
    'or oauth.clientId with clientSecret and authUrl',
  identity:
    'it mirrors personal data; name users in catalog.personalData, and set identity.apiUrl and a credential for it (identity.apiKey, or oauth.clientId)',
} as const satisfies Partial<Record<SourceName, string>>

/**
 * Returns why a stored source is not synced, and which setting enables it; null: it is synced, or is not meant to be. Without an
 * upstream no source is. `isOwn`: whether this mirror ever synced what it stores of a source (`isOwnData` of the store).
 */
export function whyUnsynced(
  config: SyncSettings,
  source: SourceName,
  isOwn: (source: SourceName) => boolean,
): string | null {
  if (!isPrivateSource(source)) return null
  if (config.upstream.apiRoot === null || activeSources(config).includes(source)) return null
  return isOwn(source) ? `served as it is stored, not synced: ${SWITCHES[source]}` : null
}

/** Returns a sentence for each source that is stored, and not synced any more. */
export function unsyncedSources(config: SyncSettings, isOwn: (source: SourceName) => boolean): string[] {
  return SOURCES.flatMap((source) => {
    const why = whyUnsynced(config, source, isOwn)
    return why === null ? [] : [`${source}: ${why}`]
  })
}

export type SourceName = 'osv' | 'feeds' | 'catalog' | 'identity'

/** All sources, in the order in which they are synced and shown. */
export const SOURCES: readonly SourceName[] = ['feeds', 'osv', 'catalog', 'identity']

/** Reports whether a source is of the catalog's kind: lists and items of an account, which only those see who have a key. */
export function isPrivateSource(source: SourceName): source is 'catalog' | 'identity' {
  return source === 'catalog' || source === 'identity'
}

/**
 * How far upstream's date of the data may be later than this machine's clock, milliseconds. A date that is later than that
 * says nothing about an age: the clock is behind, or the date is wrong.
 */
export const AHEAD_MS = 300_000

/** What is said instead of an age that is not known. */
export const NO_AGE =
  "later than this machine's clock, so the age is not known: the clock is behind, or the date is wrong"

/**
 * Returns the age of data in whole seconds; null where its date is later than the clock, so that it is not known. Every
 * age of a source is computed here. Both in Unix milliseconds.
 */
export function ageSecondsOf(asOf: number, now: number): number | null {
  return asOf > now + AHEAD_MS ? null : Math.max(0, Math.floor((now - asOf) / 1000))
}
