import type { NegotiatedAnswer } from '../../negotiate.ts'
import { jsonAnswer } from '../../refusal.ts'
import { type Call, ServiceError, bodyObject } from '../call.ts'
import type { Parts } from '../parts.ts'
import type { Route } from '../router.ts'
import { action, listRow } from './rows.ts'

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
