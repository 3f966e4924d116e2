import type { IncomingHttpHeaders } from 'node:http'
import { createHmac } from 'node:crypto'
import { type Caller, ServiceError } from './request.ts'
import type { Collection } from './data/collection.ts'
import type { ServiceOptions } from './options.ts'
import { shapeOf } from './shapes/shape.ts'

/** The API keys of a sandbox that is given none: by role, and one that the identity surface refuses. */
export const SANDBOX_KEYS = {
  admin: 'sandbox-admin-key',
  member: 'sandbox-member-key',
  readonly: 'sandbox-readonly-key',
  remediationOnly: 'sandbox-remediation-only-key',
} as const

/** The bearer token that never expires, and the OAuth client, of a sandbox that is given none. */
export const SANDBOX_TOKEN = 'sandbox-access-token'
export const SANDBOX_CLIENT = { id: 'sandbox-client', secret: 'sandbox-client-secret' } as const

/** An API key as the service keeps it; the secret itself is shown once (wire facts, records). */
export interface ApiKey {
  id: string
  name: string
  role: Caller['role']
  active: boolean
  expires_at: string | null
}

/** An answer of the OAuth token endpoint. */
interface IssuedToken {
  access_token: string
  token_type: 'Bearer'
  expires_in: number
}

/** Who may come in, and as whom. */
export interface Credentials {
  /** Basic (the secret as username, no password) or Bearer. Throws a 401. */
  remediation(headers: IncomingHttpHeaders): Caller
  /** Bearer only. Throws a 401, or a 403 for a credential of the other surface. */
  identity(headers: IncomingHttpHeaders): Caller
  /** Throws what the token endpoint answers: 401 for a wrong client, 403 for an audience it does not serve. */
  issue(client: { id: string; secret: string }, audience: string): IssuedToken
  /** Makes a new secret work as the API key of that id. */
  addKey(secret: string, id: string): void
  /** Ends a token, given or issued, or an API key's secret at once. */
  revoke(secret: string): boolean
}

type Known = Caller & { expires: number }

/** Which surfaces the audience of a token opens; undefined for an unknown one. */
export type Audiences = (audience: string) => Pick<Caller, 'identity' | 'remediation'> | undefined

/** The credentials of the options; those that are API keys live and die with their entry in `apiKeys`. */
export function createCredentials(
  options: ServiceOptions,
  apiKeys: Collection<ApiKey>,
  audiences: () => Audiences,
  now: () => number,
): Credentials {
  const keyIds = new Map(givenKeys(options).map(({ key, id, identity }) => [key, { id, identity }]))
  const known = givenTokens(options)
  const tokenOf = (secret: string): Caller | undefined => {
    const found = known.get(secret)
    return found !== undefined && now() < found.expires ? found : undefined
  }
  const identify = (secret: string | undefined): Caller => {
    if (secret === undefined) throw refused('no credential was sent')
    const caller = tokenOf(secret) ?? keyCaller(keyIds.get(secret), apiKeys, now())
    if (caller === undefined) throw refused('the credential is not valid')
    return caller
  }
  return {
    remediation: (headers) => {
      const caller = identify(basic(headers) ?? bearer(headers))
      if (caller.remediation) return caller
      throw new ServiceError(403, 'the token was issued for another audience')
    },
    identity: (headers) => {
      const caller = identify(bearer(headers))
      if (caller.identity) return caller
      throw new ServiceError(403, 'the credential lacks the identity scope', 'insufficient_scope')
    },
    issue: createIssuer(options, known, audiences, now),
    addKey: (secret, id) => void keyIds.set(secret, { id, identity: true }),
    revoke: (secret) => known.delete(secret) || keyIds.delete(secret),
  }
}

/** Who an API key is, while its entry is there, active and not expired. */
function keyCaller(
  found: { id: string; identity: boolean } | undefined,
  apiKeys: Collection<ApiKey>,
  now: number,
): Caller | undefined {
  const key = found && apiKeys.get(found.id)?.listed
  if (found === undefined || key === undefined || !isUsable(key, now)) return undefined
  return { role: key.role, identity: found.identity, remediation: true }
}

function givenTokens({ role = 'admin', tokens }: ServiceOptions): Map<string, Known> {
  const given: NonNullable<ServiceOptions['tokens']> = tokens ?? [{ token: SANDBOX_TOKEN }]
  return new Map(
    given.map((one) => {
      const caller = { role: one.role ?? role, identity: one.identity ?? true, remediation: true }
      return [one.token, { ...caller, expires: Infinity }]
    }),
  )
}

function createIssuer(
  { role = 'admin', clients, tokenSeconds = 3600 }: ServiceOptions,
  known: Map<string, Known>,
  audiences: () => Audiences,
  now: () => number,
): Credentials['issue'] {
  const all: NonNullable<ServiceOptions['clients']> = clients ?? [SANDBOX_CLIENT]
  let issued = 0
  return ({ id, secret }, audience) => {
    const client = all.find((one) => one.id === id && one.secret === secret)
    if (client === undefined) throw new ServiceError(401, 'unknown client', 'invalid_client')
    const opened = audiences()(audience)
    if (opened === undefined) throw new ServiceError(403, 'unknown audience', 'access_denied')
    const token = createHmac('sha256', secret).update(`${id} ${issued++}`).digest('base64url')
    known.set(token, {
      role: client.role ?? role,
      identity: opened.identity && (client.identity ?? true),
      remediation: opened.remediation,
      expires: now() + tokenSeconds * 1000,
    })
    return { access_token: token, token_type: 'Bearer', expires_in: tokenSeconds }
  }
}

/** The API keys that a sandbox starts with, with the ids of their entries. */
export function givenKeys({ apiKeys, role = 'admin', shape = 'wire' }: ServiceOptions): {
  key: string
  id: string
  name: string
  role: Caller['role']
  identity: boolean
}[] {
  const given: NonNullable<ServiceOptions['apiKeys']> = apiKeys ?? [
    { key: SANDBOX_KEYS.admin, role: 'admin' },
    { key: SANDBOX_KEYS.member, role: 'member' },
    { key: SANDBOX_KEYS.readonly, role: 'readonly' },
    { key: SANDBOX_KEYS.remediationOnly, identity: false },
  ]
  const integers = shapeOf(shape).records.ids === 'integer'
  return given.map((one, i) => ({
    key: one.key,
    id: integers ? String(i + 1) : `00000000-0000-4000-a000-${String(i + 1).padStart(12, '0')}`,
    name: one.name ?? `key ${i + 1}`,
    role: one.role ?? role,
    identity: one.identity ?? true,
  }))
}

function isUsable({ active, expires_at }: ApiKey, now: number): boolean {
  return active && (expires_at === null || now < Date.parse(expires_at))
}

function basic({ authorization }: IncomingHttpHeaders): string | undefined {
  const coded = /^basic +([A-Za-z0-9+/=_-]+)$/i.exec(authorization ?? '')?.[1]
  if (coded === undefined) return undefined
  const text = Buffer.from(coded, 'base64').toString()
  return text.endsWith(':') && text.indexOf(':') === text.length - 1 ? text.slice(0, -1) : undefined
}

function bearer({ authorization }: IncomingHttpHeaders): string | undefined {
  return /^bearer +(\S+)$/i.exec(authorization ?? '')?.[1]
}

function refused(message: string): ServiceError {
  return new ServiceError(401, message, 'invalid_token', {
    'WWW-Authenticate': 'Bearer realm="service"',
  })
}
