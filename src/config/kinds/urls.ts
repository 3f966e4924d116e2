import { type Setting, type Parsed, textSetting } from './base.ts'

const MASK = '********'

/** What is wrong with a text that should be an http or https URL without query and fragment; null: nothing. */
function urlFault(value: string): string | null {
  if (/[\s\\]/.test(value)) return 'contains white space or a backslash, which a URL must not contain'
  if (!URL.canParse(value)) return 'is not a URL'
  if (!/^https?:\/\/[^/]/i.test(value)) return 'is not an http:// or https:// URL'
  return /[?#]/.test(value) ? 'has a query or a fragment' : null
}

/** Whether a URL's host is this machine itself. */
export function isLoopbackHost(hostname: string): boolean {
  return /^(localhost|.+\.localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname)
}

function parseApiRoot(value: string): Parsed<string> {
  const root = value.trim().replace(/\/+$/, '')
  const fault = urlFault(root)
  if (fault !== null) return { fault }
  const { username, password } = new URL(root)
  if (username !== '' || password !== '')
    return { fault: 'contains a user name or password: the public feeds need none' }
  if (/\/v\d+$/.test(root))
    return { fault: 'ends in a version: the public feeds have none, so give the root without it' }
  if (/\/external(\/(osv|globals|patch_feed|cve_feed)\b.*)?$/.test(root))
    return { fault: 'includes /external: the mirror adds the path of each feed, so give the root' }
  return { value: root }
}

/** The service's root, under which `/external/…` lives. Trailing slashes are dropped. */
export function apiRoot(): Setting<string> {
  const allowed = 'an http or https URL without credentials, query, fragment, version or /external'
  return textSetting(allowed, 'https://api.example.com', parseApiRoot)
}

/** The root of the public package catalog. */
export function catalogUrl(): Setting<string> {
  const allowed = 'an http or https URL without credentials or query, up to before /packages'
  return textSetting(allowed, 'https://catalog.example.com', (value) =>
    parsePlain(value, (path) =>
      /\/packages(\/.*)?$/.test(path) ? 'includes /packages: the mirror adds the path, so give the root' : null,
    ),
  )
}

/** The base of the identity surface, its version included. */
export function identityUrl(): Setting<string> {
  const allowed = 'an http or https URL without credentials or query that ends in a version'
  return textSetting(allowed, 'https://identity.example.com/v1', (value) =>
    parsePlain(value, (path) => (/\/v\d+(-[a-z]+)?$/.test(path) ? null : 'does not end in a version, such as /v1')),
  )
}

/** The host of the token endpoint. */
export function authUrl(): Setting<string> {
  const allowed = 'an http or https URL without credentials or query, up to before /oauth/token'
  return textSetting(allowed, 'https://auth.example.com', (value) =>
    parsePlain(value, (path) =>
      /\/oauth(\/token)?$/.test(path)
        ? 'includes /oauth: the program adds /oauth/token, so give the part before /oauth'
        : null,
    ),
  )
}

/** The address under which clients know this mirror. */
export function publicUrl(): Setting<string> {
  const allowed = 'an http or https URL without credentials or query'
  return textSetting(allowed, 'https://mirror.example.com', (value) => parsePlain(value, () => null))
}

/** A URL with neither credentials nor query, slashes at its end dropped; `pathFault` looks at its path. */
function parsePlain(value: string, pathFault: (path: string) => string | null): Parsed<string> {
  const base = value.trim().replace(/\/+$/, '')
  const fault = urlFault(base)
  if (fault !== null) return { fault }
  const { username, password, pathname } = new URL(base)
  if (username !== '' || password !== '') return { fault: 'contains a user name or password' }
  const wrong = pathFault(pathname)
  return wrong === null ? { value: base } : { fault: wrong }
}

function parseProxy(value: string): Parsed<string> {
  const url = value.trim()
  const fault = urlFault(url)
  if (fault !== null) return { fault }
  return new URL(url).pathname === '/' ? { value: url } : { fault: 'has a path' }
}

/** A forward proxy, with or without `user:password@`. */
export function proxyUrl(): Setting<string> {
  const allowed = 'the http or https URL of a forward proxy, without a path'
  return textSetting(allowed, 'http://user:password@proxy.example.com:3128', parseProxy)
}

/** Text that is safe inside the User-Agent header. */
export function comment(): Setting<string> {
  const allowed = 'at most 200 printable ASCII characters without parentheses'
  return textSetting(allowed, 'security-team@example.com', (value) =>
    /^[\x20-\x27\x2a-\x7e]{1,200}$/.test(value)
      ? { value: value.trim() }
      : { fault: 'contains characters that a User-Agent comment must not contain, or is too long' },
  )
}

/** The same text with any `user:password@` and query of a URL hidden; a text that only looks like a URL is masked too. */
export function maskUrl(value: string): string {
  const url = URL.canParse(value) ? new URL(value) : null
  const isPlain = url !== null && url.username === '' && url.password === ''
  const text = isPlain ? value : value.replace(/\/\/([^\s/:@]*)(:?)\S*@/g, maskUser)
  return text.replace(/(\/\/[^\s?#"]*\?)[^\s#"]+/g, `$1${MASK}`)
}

function maskUser(_match: string, user: string, colon: string): string {
  return colon === '' ? `//${MASK}@` : `//${user}:${MASK}@`
}

/** A bucket, as the stores name it, with the characters that some of them add to those of S3. */
const BUCKET = /^[A-Za-z\d][\w.-]{1,253}[A-Za-z\d]$/

function parseStoreUrl(value: string): Parsed<string> {
  const text = value.trim().replace(/\/+$/, '')
  if (/^file:/i.test(text)) return parseFolderUrl(text)
  const [, bucket, prefix = ''] = /^s3:\/\/([^/]*)((?:\/.*)?)$/.exec(text) ?? []
  if (bucket === undefined) return { fault: 'is not an s3:// or file:/// URL' }
  if (bucket.includes('@')) return { fault: 'contains a user name or password' }
  if (!BUCKET.test(bucket)) return { fault: 'does not name a bucket, as s3://bucket/prefix does' }
  return /^(\/[\w-][\w.-]*)*$/.test(prefix) && prefix.length <= 400
    ? { value: text }
    : { fault: 'has a prefix with other characters than letters, digits, ".", "_", "-" and "/"' }
}

function parseFolderUrl(text: string): Parsed<string> {
  const url = URL.parse(text)
  if (url === null || !/^file:\/\/\/[^/]/i.test(text) || /[?#]|%00|%2f/i.test(text))
    return { fault: 'does not name a folder, as file:///srv/fleet does' }
  return { value: url.href }
}

/** The object store that a fleet shares: a bucket with or without a prefix, or a folder. */
export function storeUrl(): Setting<string> {
  const allowed = 's3://BUCKET/PREFIX or file:///FOLDER'
  return textSetting(allowed, 's3://security-mirror/prod', parseStoreUrl)
}

/** The address of an S3-compatible store, with its options as a query. */
export function storeEndpoint(): Setting<string> {
  const allowed = 'an http or https URL without credentials; options: ?region=NAME, &pathStyle=false'
  return textSetting(allowed, 'https://s3.internal:8333?region=eu-1', (value) => {
    const [base = '', query = ''] = value.trim().split(/\?(.*)/s)
    const parsed = parsePlain(base, () => null)
    if ('fault' in parsed) return parsed
    const options = new URLSearchParams(query)
    const wrong = [...options].find(([name, text]) => !isEndpointOption(name, text))
    if (wrong !== undefined)
      return { fault: `has the option ${wrong[0]}, which is not region=NAME or pathStyle=true or false` }
    return { value: options.size === 0 ? parsed.value : `${parsed.value}?${options.toString()}` }
  })
}

function isEndpointOption(name: string, text: string): boolean {
  return name === 'region' ? /^[\w-]{1,100}$/.test(text) : name === 'pathStyle' && /^(true|false)$/.test(text)
}

/** Returns the parts of a checked endpoint: its region, and whether the path has the bucket, as most other stores need it. */
export function endpointOptions(endpoint: string | null) {
  const options = new URLSearchParams(endpoint?.split('?')[1] ?? '')
  return { region: options.get('region') ?? 'us-east-1', pathStyle: options.get('pathStyle') !== 'false' }
}

/** Checks the URL of a receiver. It may have a query: receivers like to keep a token there. */
export function parseReceiver(url: string): Parsed<string> {
  const fault = urlFault(url.replace(/\?.*$/s, ''))
  if (fault !== null) return { fault }
  if (url.includes('#')) return { fault: 'has a fragment' }
  const { username, password } = new URL(url)
  return username === '' && password === ''
    ? { value: url }
    : { fault: 'contains a user name or password: put a token into its path or query' }
}

/** A shared cache to purge: a PURGE request is sent there. */
export function purgeUrl(): Setting<string> {
  const allowed = 'http or https URLs without user name, password or fragment'
  return textSetting(allowed, 'http://varnish:6081/', (value) => parseReceiver(value.trim()))
}
