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
