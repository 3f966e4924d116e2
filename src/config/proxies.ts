import { relayUrls, isLoopbackHost, maskUrl } from './kinds/urls.ts'
import { BlockList, isIP } from 'node:net'
import { MirrorError } from '../core/errors.ts'
import type { Config } from './schema.ts'

/** A forward proxy, and the setting or the environment variable that names it. */
export interface Proxy {
  readonly url: string
  readonly setting: string
}

/** Which proxy a request goes through; null: none. Throws `config` when the one to take is no URL of a proxy. */
type ProxyRule = (target: URL) => Proxy | null

type Environment = Readonly<Record<string, string | undefined>>

const HTTPS_NAMES = ['HTTPS_PROXY', 'https_proxy']
const HTTP_NAMES = ['HTTP_PROXY', 'http_proxy']
const ALL_NAMES = ['ALL_PROXY', 'all_proxy']
/** In the order of preference; https goes through the proxy for http where it has none of its own. */
const BY_SCHEME: Readonly<Record<string, readonly string[]>> = {
  'https:': [...HTTPS_NAMES, ...HTTP_NAMES, ...ALL_NAMES],
  'http:': [...HTTP_NAMES, ...ALL_NAMES],
}

/**
 * Creates the proxy rule of a process: `upstream.proxy` (`own`), else the variables of the environment. Loopback and the
 * hosts of NO_PROXY are always reached directly.
 */
export function createProxyRule(own: string | null, env: Environment): ProxyRule {
  const isExcepted = parseExceptions(value(env, ['NO_PROXY', 'no_proxy'])?.text ?? '')
  return (target) => {
    if (isOwnMachine(target.hostname) || isExcepted(target)) return null
    if (own !== null) return { url: own, setting: 'upstream.proxy' }
    return fromEnvironment(target.protocol, env)
  }
}

/** Throws `config`, naming the variable, when what these settings ask for would go through a proxy that is no URL of one. */
export function checkProxies({ upstream, identity, relay }: Config, env: Environment): void {
  const rule = createProxyRule(upstream.proxy, env)
  const roots = [
    ...[upstream.apiRoot, upstream.catalogUrl, upstream.authUrl],
    ...[identity.apiUrl, identity.authUrl],
  ]
  for (const root of roots) if (root !== null) rule(new URL(root))
  const relayRule = createProxyRule(null, env)
  for (const target of relayUrls(relay)) relayRule(new URL(target))
}

function fromEnvironment(protocol: string, env: Environment): Proxy | null {
  const found = value(env, BY_SCHEME[protocol] ?? [])
  if (found === null) return null
  const { name, text } = found
  const url = URL.parse(text)
  if (url !== null && /^https?:$/.test(url.protocol) && url.hostname !== '')
    return { url: text, setting: name }
  throw new MirrorError(
    'config',
    `${name}: ${maskUrl(text)} is not the http:// or https:// URL of a proxy, such as http://proxy.example.com:3128. ` +
      'Correct it, or set upstream.proxy instead.',
  )
}

/** The first of these variables that is set and not empty. */
function value(env: Environment, names: readonly string[]): { name: string; text: string } | null {
  for (const name of names) {
    const text = env[name]?.trim() ?? ''
    if (text !== '') return { name, text }
  }
  return null
}

function isOwnMachine(hostname: string): boolean {
  const host = hostname.toLowerCase().replace(/\.$/, '')
  return isLoopbackHost(host) || host === '0.0.0.0' || host === '[::]' || /^\[::ffff:7f/.test(host)
}

/**
 * NO_PROXY: entries separated by commas or spaces, each a host (and all below it), the same behind `.` or `*.`, an
 * address, a network such as 10.0.0.0/8, or `*`; with `:port` for that port alone.
 */
function parseExceptions(text: string): (target: URL) => boolean {
  const entries = text
    .toLowerCase()
    .split(/[\s,]+/)
    .filter((entry) => entry !== '')
    .map(parseException)
  return ({ protocol, hostname, port }) => {
    const host = hostname.toLowerCase().replace(/^\[|\]$|\.$/g, '')
    const at = port === '' ? (protocol === 'https:' ? '443' : '80') : port
    return entries.some((entry) => (entry.port === null || entry.port === at) && entry.has(host))
  }
}

interface Exception {
  readonly port: string | null
  readonly has: (host: string) => boolean
}

function parseException(entry: string): Exception {
  if (entry === '*') return { port: null, has: () => true }
  const network = /^\[?([\da-f.:]+)\]?\/(\d{1,3})$/.exec(entry)
  if (network !== null) return { port: null, has: inNetwork(network[1] ?? '', Number(network[2])) }
  const bare = isIP(entry) === 6 ? entry : null
  const [, name = '', port = null] =
    bare === null ? (/^(.*?)(?::(\d+))?$/.exec(entry) ?? []) : ['', bare]
  const own = name.replace(/^\[|\]$/g, '').replace(/^\*?\./, '')
  if (isIP(own) !== 0) return { port, has: inNetwork(own, isIP(own) === 6 ? 128 : 32) }
  return { port, has: (host) => own !== '' && (host === own || host.endsWith(`.${own}`)) }
}

function inNetwork(address: string, bits: number): (host: string) => boolean {
  const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
  const list = new BlockList()
  if (isIP(address) === 0 || bits > (family === 'ipv6' ? 128 : 32)) return () => false
  list.addSubnet(address, bits, family)
  return (host) => isIP(host) !== 0 && list.check(host, isIP(host) === 6 ? 'ipv6' : 'ipv4')
}
