import type { Problem } from './problem.ts'

/** What the operator of the mirror does to let a client in. */
export const MAKE_KEY = 'Make a key with "patchmirror keys create", or set server.keys'

const SEND =
  'send a key of this mirror as "Authorization: Bearer KEY", or as Basic user name with an empty password'
const REALM = 'realm="patchmirror"'

/** 401: the request brings no key. */
export function missingKey(): Problem {
  return denial(
    `this path takes a key: ${SEND}. The operator of this mirror finds one in the file local.key of its data folder, or makes one with "patchmirror keys create"`,
  )
}

/** 401: what the request brings is no valid key; `why` when it cannot be one at all. */
export function wrongKey(why: string | null): Problem {
  const what =
    why ?? 'this key is not valid here, or was revoked. Keys of the service itself do not count'
  return denial(`${what}: ${SEND}`, ', error="invalid_token"')
}

/** 401: there is no key yet that the request could bring. */
export function noKeyYet(): Problem {
  return denial(`this path takes a key, and this mirror has none yet. ${MAKE_KEY}`)
}

function denial(message: string, more = ''): Problem {
  const challenge = `Basic ${REALM}, charset="UTF-8", Bearer ${REALM}${more}`
  return { status: 401, error: 'unauthorized', message, headers: { 'WWW-Authenticate': challenge } }
}

/** 429: too many wrong keys from one client. A right one is let in meanwhile. */
export function tooManyFailures(limit: number, wait: number): Problem {
  const headers = {
    'Retry-After': String(wait),
    'X-RateLimit-Limit': String(limit),
    'X-RateLimit-Remaining': '0',
  }
  const message = `too many wrong keys from this address: wait ${wait} seconds, or send a right one`
  return { status: 429, error: 'too_many_requests', message, headers }
}
