import { type Trusted, createTrusted } from '../base/connections/network.ts'
import type { Config } from '../config/schema.ts'
import { followSecret } from '../config/secret-files.ts'
import { MirrorError } from '../base/errors.ts'
import { type ArtifactOptions, type ArtifactSink, MAX_ARTIFACT_BYTES, fetchArtifact } from './artifacts.ts'
import { type Authorization, basicKey, bearer } from './http/credentials.ts'
import { type ClockWatch, createClockWatch } from './clock-check.ts'
import { type Client, type ClientDeps, agentName, createClient, realDelay } from './client.ts'
import { type HostLimiter, createLimiter } from './http/limiter.ts'
import { clientCredentials } from './oauth.ts'
import type { RunSignal } from './http/request.ts'
import { type Delay, RETRY_AFTER_MAX_MS, countRetries, createRetrying } from './http/retry.ts'
import { type SecretSearch, createSecretSearch } from './secret-search.ts'
import { type Transport, createTransport } from './http/transport.ts'

/**
 * The parts of the service, each with its root and its credential: the public feeds, `/v1` and `/v3` of the
 * remediation API, the package catalog, the identity API, and documents behind pre-signed URLs.
 */
export type UpstreamSurface = 'public' | 'remediation' | 'settings' | 'catalog' | 'identity'

/** The whole service: one client for each surface, one transport for all, one limiter for each host. */
export interface Upstream {
  /**
   * Returns the client of a surface. Throws `config` naming the setting that is missing, for the root or for the
   * credential.
   */
  client(surface: UpstreamSurface): Client
  /** Returns whether the surface and the credential that it needs are configured. */
  has(surface: UpstreamSurface): boolean
  /** Fetches a document behind a pre-signed URL into a sink, with retries; adds to the cost. Throws `upstream_*`. */
  fetchDocument(url: string, run: DocumentRun, sink: ArtifactSink): Promise<void>
  /** Closes every connection; current requests fail as unreachable. */
  close(): Promise<void>
}

/** Dependencies of the connection to the service. */
export interface UpstreamDeps {
  config: Config
  version: string
  now: () => number
  delay?: Delay
  /** Limits of one document, if others than usual. */
  artifacts?: Partial<Pick<ArtifactOptions, 'maxBytes' | 'timeoutMs'>>
  /** Logs a warning that is not part of a run: a secret file that cannot be used. */
  warn?: (text: string) => void
  /** Sees the headers of all responses; without it, they are compared with the clock of this machine. */
  clock?: ClockWatch
}

/** Requests per minute of each tier of the identity surface (spec section 8). */
const TIERS = { free: 100, standard: 1000, enterprise: 10_000 } as const

/** Creates the clients of all surfaces. Nothing is sent or checked before a surface is used. */
export function createUpstream(deps: UpstreamDeps): Upstream {
  const { config, version, now, delay = realDelay, warn = () => undefined } = deps
  const elapsed = deps.delay === undefined ? () => performance.now() : now // such a delay passes `now`
  const transport = createTransport(config.upstream)
  const closing = new AbortController()
  let documents: Transport | null = null
  const limiterFor = (host: string): HostLimiter => {
    const { apiUrl, tier } = config.identity
    const perMinute = apiUrl !== null && new URL(apiUrl).host === host ? TIERS[tier] : null
    const waits = { maxWaitMs: RETRY_AFTER_MAX_MS, maxRetryAfterMs: RETRY_AFTER_MAX_MS } // a window is a minute
    return createLimiter({ host, perMinute, ...waits, now, elapsed, delay })
  }
  const limiter = memoize(limiterFor)
  // The service limits requests with a credential; requests to the public feeds on the same host do not share that
  // limit.
  const publicLimiter = memoize(limiterFor)
  const limiterOf = (url: string): HostLimiter => limiter(new URL(url).host)
  const clock = deps.clock ?? createClockWatch(warn)
  const base = { config: config.upstream, transport, version, now, delay, clock }
  const tokens: TokenClient = (authUrl, more) => {
    const limited = { authorization: null, limiter: limiterOf(authUrl), title: 'token endpoint' }
    const client = createClient({ ...base, ...limited, root: authUrl, ...more })
    return client.open(closing.signal, 'ops')
  }
  const credential = memoize((kind: Kind) => createAuthorization(deps, kind, tokens))
  // Credentials of all surfaces, for responses of any of them: surfaces can share hosts and proxies.
  const secrets = createSecretSearch(joined(() => KINDS.map((kind) => credential(kind)?.secrets() ?? NONE)))
  const client = memoize((surface: UpstreamSurface) => {
    const { root, setting, title, kind, isPublic } = describe(config, surface)
    if (root === null) throw notSet(setting, title)
    const authorization = kind === null ? null : credential(kind)
    if (authorization === null && !isPublic) throw missing(kind ?? 'upstream', title)
    const limited = surface === 'public' ? publicLimiter(new URL(root).host) : limiterOf(root)
    const own = { root, setting, title, authorization, limiter: limited, secrets }
    return createClient({ ...base, ...own })
  })
  const isTrusted = createTrusted(config.network.trusted)
  return {
    client,
    has(surface) {
      const { root, kind, isPublic } = describe(config, surface)
      return root !== null && (isPublic || (kind !== null && credential(kind) !== null))
    },
    async fetchDocument(url, { signal, cost, onRetry }, sink) {
      documents ??= createTransport(config.upstream, {
        privateTo: isTrusted,
      })
      const again = countRetries(cost, onRetry)
      const retrying = createRetrying(config.upstream, signal, delay, again)
      const options = artifactOptions(deps, isTrusted, documents, secrets, cost)
      await fetchArtifact(url, retrying, signal, options, sink)
    },
    async close() {
      closing.abort()
      await Promise.all([transport.close(), documents?.close()])
    },
  }
}

const NONE: readonly string[] = []

/** Returns a function that joins lists, and returns the same array while none of them is another. */
function joined(listsOf: () => readonly (readonly string[])[]): () => readonly string[] {
  let lists: readonly (readonly string[])[] = []
  let all: readonly string[] = []
  return () => {
    const now = listsOf()
    if (now.length === lists.length && now.every((list, at) => list === lists[at])) return all
    lists = now
    return (all = now.flat())
  }
}

/** Deadline of one document, from the request to the last byte, milliseconds: 1 GB over a line of 14 Mbit/s. */
const ARTIFACT_TIMEOUT_MS = 600_000

/** The run that a document is fetched for. */
type DocumentRun = Pick<RunSignal, 'signal' | 'cost' | 'onRetry'>

function artifactOptions(
  { config, version, now, artifacts }: UpstreamDeps,
  isTrusted: Trusted,
  transport: Transport,
  secrets: SecretSearch,
  cost: DocumentRun['cost'],
): ArtifactOptions {
  return {
    transport,
    isTrusted,
    maxBytes: artifacts?.maxBytes ?? MAX_ARTIFACT_BYTES,
    timeoutMs: artifacts?.timeoutMs ?? ARTIFACT_TIMEOUT_MS,
    userAgent: agentName(config.upstream, version),
    secrets,
    now,
    cost,
  }
}

/** Kind of credential: `settings` is upstream's in the form that the webhook settings require. */
type Kind = (typeof KINDS)[number]
const KINDS = ['upstream', 'settings', 'identity'] as const

interface Surface {
  root: string | null
  setting: string
  title: string
  kind: Kind | null
  /** Whether it needs no credential. */
  isPublic: boolean
}

function describe({ upstream, identity, catalog }: Config, surface: UpstreamSurface): Surface {
  const { apiRoot, catalogUrl } = upstream
  const below = (path: string): string | null => (apiRoot === null ? null : apiRoot + path)
  const api = { setting: 'upstream.apiRoot', isPublic: false }
  switch (surface) {
    case 'public':
      return { ...api, root: apiRoot, title: 'public feeds', kind: null, isPublic: true }
    case 'remediation':
      return { ...api, root: below('/v1'), title: 'remediation surface', kind: 'upstream' }
    case 'settings':
      return { ...api, root: below('/v3'), title: 'webhook settings', kind: 'settings' }
    case 'catalog': {
      const kind = catalog.sendCredential ? 'upstream' : null
      const setting = 'upstream.catalogUrl'
      return { root: catalogUrl, setting, title: 'package catalog', kind, isPublic: kind === null }
    }
    case 'identity': {
      const setting = 'identity.apiUrl'
      const title = 'identity surface'
      return { root: identity.apiUrl, setting, title, kind: 'identity', isPublic: false }
    }
  }
}

type TokenClient = (authUrl: string, more: Pick<ClientDeps, 'setting' | 'scrub'>) => ReturnType<Client['open']>

/** Returns the configured credential of a surface; null when there is none. At most one is set (see `config`). */
function createAuthorization(
  { config, now, warn }: UpstreamDeps,
  kind: Kind,
  tokens: TokenClient,
): Authorization | null {
  const { upstream, identity, oauth } = config
  const follow = (key: string, value: string) => [key, followSecret(config, key, value, warn)] as const
  if (kind === 'identity') {
    if (identity.apiKey !== null) return bearer(...follow('identity.apiKey', identity.apiKey))
  } else {
    if (upstream.apiKey !== null) return basicKey(...follow('upstream.apiKey', upstream.apiKey))
    if (upstream.token !== null) return bearer(...follow('upstream.token', upstream.token), kind === 'settings')
  }
  const { clientId, clientSecret, authUrl } = oauth
  const audience = oauth.audience ?? identity.apiUrl
  if (clientId === null || clientSecret === null || authUrl === null || audience === null) return null
  const [, secret] = follow('oauth.clientSecret', clientSecret)
  const scrub = (text: string): string =>
    [clientSecret, secret.current()].reduce((rest, one) => rest.replaceAll(one, '********'), text)
  const session = tokens(authUrl, { setting: 'oauth.authUrl', scrub })
  return clientCredentials({ clientId, clientSecret: secret, audience }, session, now)
}

function notSet(setting: string, title: string): MirrorError {
  const variable = `PATCHMIRROR_${setting.replace(/[A-Z]/g, '_$&').replace('.', '_').toUpperCase()}`
  const text = `${setting} is not set (${variable}): without it the ${title} cannot be reached`
  return new MirrorError('config', text)
}

function missing(kind: Kind, title: string): MirrorError {
  const section = kind === 'identity' ? 'identity' : 'upstream'
  const env = `PATCHMIRROR_${section.toUpperCase()}`
  return new MirrorError(
    'config',
    `the ${title} ${title.endsWith('s') ? 'need' : 'needs'} a credential, and none is set: set ${section}.apiKey (${env}_API_KEY or ${env}_API_KEY_FILE)` +
      `${section === 'upstream' ? ', upstream.token,' : ''} or oauth.clientId with clientSecret and authUrl`,
  )
}

/** Returns a function that creates a value once per name. */
function memoize<Name extends string, Thing>(make: (name: Name) => Thing): (name: Name) => Thing {
  const made = new Map<Name, Thing>()
  return (name) => {
    const stored = made.get(name)
    if (stored !== undefined) return stored
    const fresh = make(name)
    made.set(name, fresh)
    return fresh
  }
}
