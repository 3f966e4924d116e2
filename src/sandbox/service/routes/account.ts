import { randomUUID, randomBytes } from 'node:crypto'
import { seconds } from '../../generate.ts'
import { jsonAnswer } from '../../refusal.ts'
import { jsonRepresentation } from '../../representation.ts'
import {
  type Call,
  type Caller,
  type Reply,
  type Role,
  type ServiceRequest,
  ServiceError,
  bodyObject,
  missing,
} from '../call.ts'
import type { ApiKey } from '../credentials.ts'
import { NEWEST } from '../generate-tickets.ts'
import { jsonBytes } from '../json.ts'
import type { Parts } from '../parts.ts'
import { emptyReply, itemReply, listReply } from '../replies.ts'
import type { Route } from '../router.ts'

const ROLES: readonly Role[] = ['readonly', 'member', 'admin']

/** Account, organization and API keys (service API, section 4). */
export function accountRoutes(parts: Parts): Route[] {
  const { state, shape } = parts
  const { apiKeys, organization } = state
  const keyOf = (id: string) => {
    const entry = apiKeys.get(id)
    if (entry === undefined) throw missing('API key', id)
    return entry
  }
  const route = (
    method: Route['method'],
    path: string,
    kind: Route['kind'],
    serve: Route['serve'],
  ) => ({
    method,
    path,
    kind,
    serve,
  })
  return [
    route('GET', '/v1/me', 'item', ({ caller }) => {
      return jsonRepresentation(jsonBytes({ ...account(caller), organization }), NEWEST)
    }),
    route('GET', '/v1/orgs/', 'item', ({ caller }) => {
      const accounts = [account(caller)]
      const stamps = { created_at: seconds(NEWEST), updated_at: seconds(NEWEST) }
      return jsonRepresentation(jsonBytes({ ...organization, accounts, ...stamps }), NEWEST)
    }),
    route('POST', '/v1/api_keys/', 'action', (call) => createKey(parts, call)),
    route('GET', '/v1/api_keys/', 'list', (call) =>
      listReply(call, shape, { entries: apiKeys.all(), lastModified: apiKeys.lastModified() }),
    ),
    route('GET', '/v1/api_keys/{apiKeyID}/', 'item', ({ params: [id = ''] }) =>
      itemReply(keyOf(id)),
    ),
    route('DELETE', '/v1/api_keys/{apiKeyID}/', 'action', ({ params: [id = ''], caller }) => {
      mayWrite(caller)
      apiKeys.remove(keyOf(id).id)
      return emptyReply()
    }),
  ]
}

/** Refuses with 403 whoever may only read. */
export function mayWrite({ role }: Caller): void {
  if (role === 'readonly') throw new ServiceError(403, 'the credential may only read')
}

function account({ role }: Caller): object {
  const stamps = { created_at: seconds(NEWEST), updated_at: seconds(NEWEST) }
  const id = `00000000-0000-4000-b000-00000000000${ROLES.indexOf(role)}`
  return { id, email: `${role}@example.com`, name: 'Zoë Ångström', role, ...stamps }
}

/** The only answer that holds the key itself. */
function createKey({ state, credentials, now }: Parts, { request, caller }: Call): Reply {
  mayWrite(caller)
  const { name, role, expires } = readKeyRequest(request)
  if (ROLES.indexOf(role) > ROLES.indexOf(caller.role)) {
    throw new ServiceError(403, `a ${caller.role} cannot make a key of role ${role}`)
  }
  const time = Math.floor(now() / 1000) * 1000
  const listed: ApiKey & Record<string, unknown> = {
    id: randomUUID(),
    name,
    role,
    type: 'user',
    active: true,
    created_at: seconds(time),
    expires_at: expires,
    last_used_at: null,
  }
  const detail = { account: account(caller) }
  const key = `key_${randomBytes(24).toString('base64url')}`
  state.apiKeys.put({ id: listed.id, lastModified: time, listed, detail })
  credentials.addKey(key, listed.id)
  return jsonAnswer(201, { ...listed, ...detail, key })
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
