import { counted } from '../../base/text.ts'
import type { Problem } from '../http/problems.ts'

/** What a request brings to show that it may read: nothing, a key, or something that cannot be one. */
export type Credential =
  | { readonly kind: 'none' }
  | { readonly kind: 'key'; readonly key: string }
  | { readonly kind: 'unusable'; readonly why: string }

/**
 * Reads the values of `Authorization` as the service does (service API, section 5): `Bearer KEY`, or Basic with the key
 * as user name and an empty password. `why` never repeats what was sent.
 */
export function readCredential(values: readonly string[] | undefined): Credential {
  const [value, another] = values ?? []
  if (value === undefined || value.trim() === '') return { kind: 'none' }
  if (another !== undefined) return unusable('there is more than one Authorization header')
  const [, scheme = '', token = ''] = /^\s*(\S+)\s*(.*?)\s*$/.exec(value) ?? []
  switch (scheme.toLowerCase()) {
    case 'bearer':
      return token === '' ? unusable('the bearer token is empty') : { kind: 'key', key: token }
    case 'basic':
      return readBasic(token)
    default:
      return unusable('the Authorization header is neither Basic nor Bearer')
  }
}

function readBasic(token: string): Credential {
  const pair = Buffer.from(token, 'base64').toString()
  const colon = pair.indexOf(':')
  if (colon < 0) return unusable('the Basic credential is not base64 of "KEY:"')
  if (colon !== pair.length - 1)
    return unusable('the Basic password is not empty: the key is the user name, without a password')
  const key = pair.slice(0, colon)
  return key === '' ? unusable('the Basic user name is empty') : { kind: 'key', key }
}

function unusable(why: string): Credential {
  return { kind: 'unusable', why }
}

/** What the operator of the mirror does to let a client in. */
export const MAKE_KEY = 'Make a key with "patchmirror keys create", or set server.keys'

const SEND = 'send a key of this mirror as "Authorization: Bearer KEY", or as Basic user name with an empty password'

/** Returns the message of a 401 without how programs send a key: a browser asks for it. */
export function withoutHeader(message: string): string {
  return message.replace(`: ${SEND}`, '')
}

const REALM = 'realm="patchmirror"'

/** 401: the request brings no key. */
export function missingKey(): Problem {
  return denial(
    `this path takes a key: ${SEND}. The operator of this mirror finds one in the file local.key of its data folder, unless server.keys is set or that key was revoked. More are made with "patchmirror keys create"`,
  )
}

/** 401: what the request brings is no valid key; `why` when it cannot be one at all. */
export function wrongKey(why: string | null): Problem {
  const what = why ?? 'this key is not valid here, or was revoked. Keys of the service itself do not count'
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
  const message = `too many wrong keys from this address: wait ${counted(wait, 'second')}, or send a right one`
  return { status: 429, error: 'too_many_requests', message, headers }
}
