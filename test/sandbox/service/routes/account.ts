import { randomBytes } from 'node:crypto'
import { seconds } from '../../feed/generate.ts'
import { type NegotiatedAnswer, jsonAnswer } from '../../http/negotiate.ts'
import { type Call, type Caller, type Role, type ServiceRequest, ServiceError, bodyObject } from '../request.ts'
import type { ApiKey } from '../credentials.ts'
import { NEWEST } from '../data/tickets.ts'
import type { Parts } from '../parts.ts'
import { emptyReply, recordReply } from '../replies.ts'
import type { Route } from '../router.ts'
import { worded } from '../shapes/record.ts'
import { action, asked, get, itemRow, listRow } from './artifacts.ts'

const ROLES: readonly Role[] = ['readonly', 'member', 'admin']

const KEYS = '/v1/api_keys/'

/** Account, organization and API keys (service API, section 4). */
export function accountRoutes(parts: Parts): Route[] {
  const { apiKeys, organization } = parts.state
  const { records } = parts.shape
  return [
    get('/v1/me', 'item', ({ caller }) => {
      const whole = { ...account(parts, caller), organization }
      return recordReply(worded(records, 'account', whole), NEWEST)
    }),
    get('/v1/orgs/', 'item', ({ caller }) => {
      const whole = { ...organization, accounts: [account(parts, caller)], ...STAMPS }
      return recordReply(worded(records, 'organization', whole), NEWEST)
    }),
    action('POST', KEYS, (call) => createKey(parts, call)),
    listRow(KEYS, apiKeys, parts.shape),
    itemRow(`${KEYS}{apiKeyID}/`, apiKeys, 'API key', parts.shape),
    action('DELETE', `${KEYS}{apiKeyID}/`, (call) => {
      mayWrite(call.caller)
      apiKeys.remove(asked(call, apiKeys, 'API key').id)
      return emptyReply()
    }),
  ]
}

/** Throws 403 for a caller with read access only. */
export function mayWrite({ role }: Caller): void {
  if (role === 'readonly') throw new ServiceError(403, 'the credential may only read')
}

const STAMPS = { created_at: seconds(NEWEST), updated_at: seconds(NEWEST) }

function account({ state }: Parts, { role }: Caller): object {
  const uuid = `00000000-0000-4000-b000-00000000000${ROLES.indexOf(role)}`
  const id = state.origin.ids === 'integer' ? String(1 + ROLES.indexOf(role)) : uuid
  return { id, email: `${role}@example.com`, name: 'Zoë Ångström', role, ...STAMPS }
}

/** The only answer that contains the key itself. */
function createKey(parts: Parts, { request, caller }: Call): NegotiatedAnswer {
  const { state, credentials, shape, now } = parts
  mayWrite(caller)
  const { name, role, expires } = readKeyRequest(request)
  if (ROLES.indexOf(role) > ROLES.indexOf(caller.role)) {
    throw new ServiceError(403, `a ${caller.role} cannot make a key of role ${role}`)
  }
  const time = Math.floor(now() / 1000) * 1000
  const listed: ApiKey & Record<string, unknown> = {
    id: state.newId('api_key'),
    name,
    role,
    type: 'user',
    active: true,
    created_at: seconds(time),
    expires_at: expires,
    last_used_at: null,
  }
  const detail = { account: account(parts, caller) }
  const key = `key_${randomBytes(24).toString('base64url')}`
  state.apiKeys.put({ id: listed.id, lastModified: time, listed, detail })
  credentials.addKey(key, listed.id)
  return jsonAnswer(201, worded(shape.records, 'api_key', { ...listed, ...detail, key }))
}

function readKeyRequest(request: ServiceRequest): {
  name: string
  role: Role
  expires: string | null
} {
  const { name, role = 'member', expires_at = null } = bodyObject(request)
  if (typeof name !== 'string' || name === '') throw new ServiceError(400, 'name is required')
  const known = ROLES.find((one) => one === role)
  if (known === undefined) throw new ServiceError(400, `role must be one of ${ROLES.join(', ')}`)
  const expires = typeof expires_at === 'string' ? expires_at : null
  if (expires_at !== null && (expires === null || Number.isNaN(Date.parse(expires)))) {
    throw new ServiceError(400, 'expires_at must be a time as in 2030-01-31T00:00:00Z')
  }
  return { name, role: known, expires }
}

/** Users under each version of the identity surface (service API, section 9), and the token endpoint. */
export function identityRoutes(parts: Parts): Route[] {
  const { users } = parts.state
  const versions = ['v1', 'v2-beta', 'v0']
  return [
    ...versions.map((version) => listRow(`/${version}/users`, users, parts.shape)),
    action('POST', TOKEN_PATH, (call) => issueToken(parts, call)),
  ]
}

/** The one path of the identity surface that needs no credential: it gives them out. */
export const TOKEN_PATH = '/oauth/token'

/** OAuth 2.0 client credentials, as a JSON body (service API, section 5). */
function issueToken({ credentials }: Parts, { request }: Call): NegotiatedAnswer {
  if (!/^application\/json\b/i.test(request.headers['content-type'] ?? '')) {
    throw new ServiceError(400, 'send the parameters as application/json', 'invalid_request')
  }
  const body = bodyObject(request)
  const [id, secret, audience, grant] = NAMES.map((name) => {
    const value = body[name]
    if (typeof value === 'string' && value !== '') return value
    throw new ServiceError(400, `missing parameter: ${name}`, 'invalid_request')
  }) as [string, string, string, string] // one for each of NAMES
  if (grant !== 'client_credentials') {
    throw new ServiceError(400, 'only client_credentials is supported', 'unsupported_grant_type')
  }
  const answer = jsonAnswer(200, credentials.issue({ id, secret }, audience))
  return { ...answer, headers: { ...answer.headers, 'Cache-Control': 'no-store' } }
}

const NAMES = ['client_id', 'client_secret', 'audience', 'grant_type'] as const
