import { type Setting, type Verdict, text } from './kinds.ts'

const MASK = '********'

function urlFault(value: string): string | null {
  if (/[\s\\]/.test(value)) return 'holds white space or a backslash, which no URL may'
  if (!URL.canParse(value)) return 'is not a URL'
  if (!/^https?:\/\/[^/]/i.test(value)) return 'is not an http:// or https:// URL'
  return /[?#]/.test(value) ? 'has a query or a fragment' : null
}

function parseApiRoot(value: string): Verdict<string> {
  const root = value.trim().replace(/\/+$/, '')
  const fault = urlFault(root)
  if (fault !== null) return { fault }
  const { username, password } = new URL(root)
  if (username !== '' || password !== '')
    return { fault: 'holds a user name or password: the public feeds need none' }
  if (/\/v\d+$/.test(root))
    return { fault: 'ends in a version: the public feeds have none, so give the root without it' }
  if (/\/external(\/(osv|globals|patch_feed|cve_feed)\b.*)?$/.test(root))
    return { fault: 'includes /external: the mirror adds the path of each feed, so give the root' }
  return { value: root }
}

/** The service's root, under which `/external/…` lives. Trailing slashes are dropped. */
export function apiRoot(): Setting<string> {
  const allowed = 'an http or https URL without credentials, query, fragment, version or /external'
  return text(allowed, 'https://api.example.com', parseApiRoot)
}

function parseProxy(value: string): Verdict<string> {
  const url = value.trim()
  const fault = urlFault(url)
  if (fault !== null) return { fault }
  return new URL(url).pathname === '/' ? { value: url } : { fault: 'has a path' }
}

/** A forward proxy, with or without `user:password@`. */
export function proxyUrl(): Setting<string> {
  const allowed = 'the http or https URL of a forward proxy, without a path'
  return text(allowed, 'http://user:password@proxy.example.com:3128', parseProxy)
}

/** Text that is safe inside the User-Agent header. */
export function comment(): Setting<string> {
  const allowed = 'at most 200 printable ASCII characters without parentheses'
  return text(allowed, 'security-team@example.com', (value) =>
    /^[\x20-\x27\x2a-\x7e]{1,200}$/.test(value)
      ? { value: value.trim() }
      : { fault: 'has characters a User-Agent comment cannot hold, or is too long' },
  )
}

/** The same text with any `user:password@` of a URL hidden; a text that only looks like a URL is masked too. */
export function maskUrl(value: string): string {
  const url = URL.canParse(value) ? new URL(value) : null
  if (url !== null && url.username === '' && url.password === '') return value
  return value.replace(/\/\/([^\s/:@]*)(:?)\S*@/g, (_match, user: string, colon: string) =>
    colon === '' ? `//${MASK}@` : `//${user}:${MASK}@`,
  )
}
