import { MirrorError, messageOf } from '../base/errors.ts'
import { type Authorization, type CurrentSecret, createRecent, scrub } from './http/credentials.ts'
import { statusOf } from './http/errors.ts'
import type { Session } from './http/session.ts'
import { jsonTextOf } from '../base/json/objects.ts'

/** OAuth client credentials, and their section of the settings. */
interface ClientCredentials {
  clientId: string
  clientSecret: CurrentSecret
  audience: string
}

/** A token, and when to renew it, unix milliseconds; null: when it is refused. */
interface Token {
  value: string
  renewAt: number | null
}

const TOKEN_PATH = '/oauth/token'
const MAX_BYTES = 1_000_000
/** A token is renewed this long before it expires, milliseconds, or after nine tenths of a shorter lifetime. */
const MARGIN_MS = 60_000

/**
 * Creates a credential with tokens of the client credentials grant (spec section 4, "Identity surface"): requested on
 * first use, and reused until shortly before they expire. There is one renewal at a time; other requests wait for it.
 * `session` is a session with the token endpoint, which outlives the waiting runs.
 */
export function clientCredentials(settings: ClientCredentials, session: Session, now: () => number): Authorization {
  const { clientSecret } = settings
  let token: Token | null = null
  let renewal: Promise<Token> | null = null
  const recent = createRecent()
  recent.add(clientSecret.current())

  const renew = (): Promise<Token> => {
    renewal ??= fetchToken(settings, session, now)
      .then((fresh) => {
        recent.add(clientSecret.current())
        recent.add(fresh.value)
        return (token = fresh)
      })
      .finally(() => (renewal = null))
    return renewal
  }
  const usable = (): Token | null =>
    token !== null && (token.renewAt === null || now() < token.renewAt) ? token : null
  const headerOf = ({ value }: Token): string => `Bearer ${value}`

  return {
    name: 'oauth.clientId with oauth.clientSecret',
    header: async (signal) => headerOf(usable() ?? (await unless(signal, renew()))),
    async renew(refused, signal) {
      const stored = usable()
      if (stored !== null && headerOf(stored) !== refused) return headerOf(stored) // renewed meanwhile
      return headerOf(await unless(signal, renew()))
    },
    scrub: (text) => scrub(text, [clientSecret.current(), ...(token === null ? [] : [token.value])]),
    secrets: recent.all,
  }
}

/**
 * Returns the result of `work`, or throws the signal's reason if that is first; `work` continues for other waiting
 * requests.
 */
async function unless<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  signal.throwIfAborted()
  const { promise, reject } = Promise.withResolvers<never>()
  const stop = (): void => reject(signal.reason as Error)
  signal.addEventListener('abort', stop, { once: true })
  try {
    return await Promise.race([work, promise])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

async function fetchToken(settings: ClientCredentials, session: Session, now: () => number): Promise<Token> {
  const used = settings.clientSecret.current()
  try {
    return await requestToken(settings, used, session, now)
  } catch (error) {
    const isRefused = error instanceof MirrorError && error.code === 'upstream_auth'
    if (!isRefused) throw error
    settings.clientSecret.reload()
    const fresh = settings.clientSecret.current()
    if (fresh === used) throw error
    return requestToken(settings, fresh, session, now)
  }
}

async function requestToken(
  { clientId, audience }: ClientCredentials,
  clientSecret: string,
  session: Session,
  now: () => number,
): Promise<Token> {
  const asked = now()
  const json = {
    client_id: clientId,
    client_secret: clientSecret,
    audience,
    grant_type: 'client_credentials',
  }
  try {
    const request = { method: 'POST', path: TOKEN_PATH, json, idempotent: true } as const
    const { body } = await session.request({ ...request, maxBytes: MAX_BYTES })
    return parseToken(body, asked)
  } catch (error) {
    if (error instanceof MirrorError && error.code === 'upstream_shape')
      throw new MirrorError('upstream_shape', `${error.message}${ENDPOINT_HINT}`, {
        cause: error,
      })
    const status = statusOf(error)
    if (status === null || ![400, 401, 403].includes(status)) throw error
    throw new MirrorError(
      'upstream_auth',
      `oauth.clientId with oauth.clientSecret got no token at oauth.authUrl: ${messageOf(error)}. ` +
        `Check both, and oauth.audience, which was ${audience}.`,
      { cause: error },
    )
  }
}

/** What to check after an answer that is no token. */
const ENDPOINT_HINT = "; check that oauth.authUrl is the token endpoint's host"

/** Parses a token response (RFC 6749, section 5.1). Its content is never quoted in messages. */
function parseToken(body: Buffer, asked: number): Token {
  const unusable = (why: string): MirrorError => new MirrorError('upstream_shape', `${TOKEN_PATH}: the answer ${why}`)
  let answer: unknown
  try {
    answer = JSON.parse(jsonTextOf(body))
  } catch {
    throw unusable('is not JSON')
  }
  if (typeof answer !== 'object' || answer === null) throw unusable('is not a JSON object')
  const fields = answer as Readonly<Record<string, unknown>>
  const value = fields['access_token']
  if (typeof value !== 'string' || !/^[\x21-\x7e]+$/.test(value)) throw unusable('has no usable access_token')
  const type = fields['token_type'] ?? 'Bearer'
  if (typeof type !== 'string' || type.toLowerCase() !== 'bearer')
    throw unusable('is for another type of token than Bearer')
  const life = lifetimeOf(fields['expires_in'])
  return { value, renewAt: life === null ? null : asked + life - Math.min(MARGIN_MS, life / 10) }
}

/**
 * Returns the lifetime of a token, milliseconds. Null where the response states none that can be used: `expires_in` is only
 * recommended (RFC 6749, section 5.1), and the token is used until it is refused.
 */
function lifetimeOf(expiresIn: unknown): number | null {
  const isNumber = typeof expiresIn === 'number'
  const isText = typeof expiresIn === 'string' && /^\s*\d+(\.\d+)?\s*$/.test(expiresIn)
  const seconds = isNumber || isText ? Number(expiresIn) : 0
  return seconds > 0 ? seconds * 1000 : null
}
