import type { Config } from '../../../config/schema.ts'
import { createTrusted } from '../../../base/connections/network.ts'
import { MirrorError, messageOf, systemCode } from '../../../base/errors.ts'
import { VERSION } from '../../../base/version.ts'
import { agentName } from '../../../upstream/client.ts'
import { answerError } from '../../../upstream/http/errors.ts'
import { type RawAnswer, type RawRequest, createTransport, faultNotes } from '../../../upstream/http/transport.ts'
import { isLoopbackName } from './hosts.ts'
import { type Challenge, type RegistryCredential, credentialAdvice, readChallenge, readCredential } from './login.ts'

/** A request to a registry; `path`: an absolute path with its query. */
interface RegistryRequest {
  readonly method: RawRequest['method']
  readonly path: string
  readonly headers?: Record<string, string>
  readonly body?: Uint8Array | null
}

/** The settings of a session. */
export type NetworkSettings = Pick<Config, 'upstream' | 'network'>

/** Requests to one registry, with its credential. */
export type RegistrySession = ReturnType<typeof openSession>

/** Bytes of a token's answer. */
const MOST_TOKEN = 256 * 1024

/**
 * Opens a session with a registry. It uses the proxy, the certificates and the time limits of `upstream`. Plain HTTP is for registries
 * on this machine alone. `scope`: what is asked for, such as `repository:mirror:pull` (distribution's token authentication).
 */
export function openSession({ upstream, network }: NetworkSettings, host: string, scope: string) {
  const scheme = isLoopbackName(host) ? 'http' : 'https'
  const root = new URL(`${scheme}://${host}`)
  const transport = createTransport(upstream)
  // What a registry names is not reached inside of this network, unless the registry is on this machine itself.
  const isTrusted = createTrusted(network.trusted)
  const elsewhere = createTransport(upstream, { privateTo: scheme === 'https' ? isTrusted : undefined })
  const agent = { 'user-agent': agentName(upstream, VERSION) }
  let authorization: string | null = null

  const raw = async (through: typeof transport, request: RawRequest): Promise<RawAnswer> => {
    const deadline = new AbortController()
    const timer = setTimeout(
      () => deadline.abort(new Error(`no answer within ${upstream.requestTimeoutMs} ms`)),
      upstream.requestTimeoutMs,
    )
    try {
      return await through.send(request, deadline.signal)
    } catch (error) {
      throw unreachable(request.url, error)
    } finally {
      clearTimeout(timer)
    }
  }

  const once = ({ method, path, headers = {}, body = null }: RegistryRequest): Promise<RawAnswer> => {
    const url = new URL(path, root)
    // A path of the registry's own words may begin with two slashes: then it names another host.
    if (url.origin !== root.origin)
      throw new MirrorError('upstream_shape', `${host} continues at ${url.host}: it is not followed`)
    const own = authorization === null ? {} : { authorization }
    return raw(transport, { method, url, headers: { ...agent, ...own, ...headers }, body })
  }

  const authorize = async (challenge: Challenge): Promise<string> => {
    const credential = readCredential(host)
    if (challenge.scheme === 'basic') {
      if (credential === null || 'token' in credential)
        throw new MirrorError('upstream_auth', `${host} wants a credential: ${credentialAdvice(host)}`)
      return `Basic ${credential.basic}`
    }
    const request = tokenRequest(challenge, scope, credential, root)
    const answer = await raw(transport, { ...request, headers: { ...agent, ...request.headers } })
    return `Bearer ${await readToken(answer, { host, credential })}`
  }

  return {
    /** Whether `network.trusted` names a host. */
    isTrusted,
    /** Sends a request; resolves with the head of the answer, whatever its status. Throws `upstream_unreachable`, `upstream_auth`. */
    async send(request: RegistryRequest): Promise<RawAnswer> {
      const answer = await once(request)
      if (answer.status !== 401) return answer
      const challenge = readChallenge(answer.headers['www-authenticate'])
      await answer.body.dump()
      if (challenge === null)
        throw new MirrorError('upstream_auth', `${host} refuses access without saying how to log in`)
      authorization = await authorize(challenge)
      return once(request)
    },
    /** Sends a GET without a credential to a URL that the registry redirected to. */
    follow: (url: URL): Promise<RawAnswer> => raw(elsewhere, { method: 'GET', url, headers: agent, body: null }),
    async close(): Promise<void> {
      await Promise.all([transport.close(), elsewhere.close()])
    },
  }
}

function unreachable(url: URL, error: unknown): MirrorError {
  const cause = error instanceof Error ? error.cause : undefined
  const code = systemCode(error) ?? systemCode(cause) ?? messageOf(error)
  return new MirrorError('upstream_unreachable', `${url.host} cannot be reached: ${code}${faultNotes(error)}`, {
    cause: error,
  })
}

/**
 * Returns the request for a token. Throws `upstream_auth` for a realm that is neither the registry nor the domain that it is in: it would
 * get the credential.
 */
function tokenRequest(
  { realm, service }: Challenge,
  scope: string,
  credential: RegistryCredential | null,
  root: URL,
): RawRequest {
  const url = URL.parse(realm)
  if (url === null || !isNear(url, root))
    throw new MirrorError(
      'upstream_auth',
      `${root.host} sends clients to ${url?.host ?? realm.slice(0, 100)} for a token, and a credential is only sent to the registry ` +
        'itself or the domain that it is in',
    )
  if (credential !== null && 'token' in credential) {
    const form = {
      grant_type: 'refresh_token',
      refresh_token: credential.token,
      service,
      scope,
      client_id: 'patchmirror',
    }
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    return { method: 'POST', url, headers, body: new URLSearchParams(form).toString() }
  }
  if (service !== '') url.searchParams.set('service', service)
  url.searchParams.set('scope', scope)
  const headers: Record<string, string> = credential === null ? {} : { authorization: `Basic ${credential.basic}` }
  return { method: 'GET', url, headers, body: null }
}

/** Docker's own registry, whose tokens come from a host beside it. */
const DOCKER_HUB = { registry: 'registry-1.docker.io', realm: 'auth.docker.io' }

function isNear(realm: URL, registry: URL): boolean {
  if (realm.protocol !== registry.protocol) return false
  if (realm.hostname === registry.hostname) return true
  if (registry.hostname === DOCKER_HUB.registry) return realm.hostname === DOCKER_HUB.realm
  const isDomain = realm.hostname.includes('.') && !/^[\d.]+$/.test(realm.hostname)
  return isDomain && registry.hostname.endsWith(`.${realm.hostname}`)
}

async function readToken(
  answer: RawAnswer,
  { host, credential }: { host: string; credential: RegistryCredential | null },
): Promise<string> {
  const bytes = await readSmall(answer, MOST_TOKEN, `the token of ${host}`)
  if (answer.status === 200) {
    const token = tokenIn(bytes)
    if (token !== null) return token
  }
  const { status } = answer
  if (status === 429 || status >= 500)
    throw answerError('upstream_status', `${host} gives no token: status ${status}`, answer)
  const advice = credential === null ? `: ${credentialAdvice(host)}` : ': it refuses the user name or password'
  throw new MirrorError('upstream_auth', `${host} gives no token (status ${status})${advice}`)
}

function tokenIn(bytes: Buffer): string | null {
  try {
    const { token, access_token: other } = JSON.parse(bytes.toString('utf8')) as Record<string, unknown>
    const found = token ?? other
    return typeof found === 'string' && /^[\x21-\x7e]{1,65536}$/.test(found) ? found : null
  } catch {
    return null // what is no token is reported with the status
  }
}

/** Reads a body of at most `limit` bytes. Throws `upstream_too_large`, and as `piecesOf`. */
export async function readSmall(answer: RawAnswer, limit: number, what: string): Promise<Buffer> {
  const pieces: Buffer[] = []
  let size = 0
  for await (const piece of piecesOf(answer, what)) {
    size += piece.length
    if (size > limit) {
      answer.body.destroy()
      throw new MirrorError('upstream_too_large', `${what} has over ${limit} bytes`)
    }
    pieces.push(piece)
  }
  return Buffer.concat(pieces)
}

/** Yields a body as it arrives. Throws `upstream_unreachable` where its connection breaks off. `what`: for the message. */
export async function* piecesOf({ body }: RawAnswer, what: string): AsyncGenerator<Buffer> {
  try {
    yield* body
  } catch (error) {
    const why = systemCode(error) ?? messageOf(error)
    throw new MirrorError('upstream_unreachable', `${what} broke off (${why}): try again`, { cause: error })
  }
}
