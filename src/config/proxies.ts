import { relayUrls } from './kinds/relay-targets.ts'
import { isLoopbackHost, maskUrl } from './kinds/urls.ts'
import { BlockList, isIP } from 'node:net'
import { domainToASCII } from 'node:url'
import { MirrorError } from '../base/errors.ts'
import type { Config } from './schema.ts'

/** A forward proxy, and the setting or the environment variable that names it. */
export interface Proxy {
  readonly url: string
  readonly setting: string
}

/** Which proxy a request goes through; null: none. Throws `config` when the one to take is no URL of a proxy. */
type ProxyRule = (target: URL) => Proxy | null

/** The environment of a process. */
export type Environment = Readonly<Record<string, string | undefined>>

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
  const isExcepted = parseExceptions(value(env, EXCEPTION_NAMES)?.text ?? '')
  return (target) => {
    if (isOwnMachine(target.hostname) || isExcepted(target)) return null
    if (own !== null) return { url: own, setting: 'upstream.proxy' }
    return fromEnvironment(target.protocol, env)
  }
}

/** Throws `config`, naming the variable, when what these settings ask for would go through a proxy that is no URL of one. */
export function checkProxies({ upstream, oauth, identity, relay }: Config, env: Environment): void {
  const rule = createProxyRule(upstream.proxy, env)
  const roots = [upstream.apiRoot, upstream.catalogUrl, oauth.authUrl, identity.apiUrl]
  for (const root of roots) if (root !== null) rule(new URL(root))
  const relayRule = createProxyRule(null, env)
  for (const target of relayUrls(relay)) relayRule(new URL(target))
}

function fromEnvironment(protocol: string, env: Environment): Proxy | null {
  const found = value(env, BY_SCHEME[protocol] ?? [])
  if (found === null) return null
  const { name, text } = found
  const url = URL.parse(text)
  if (url !== null && /^https?:$/.test(url.protocol) && url.hostname !== '') return { url: text, setting: name }
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

/** The names of the variable, in the order of preference. */
const EXCEPTION_NAMES = ['NO_PROXY', 'no_proxy']

/**
 * NO_PROXY: entries separated by commas or white space, each a host (and all below it), the same behind `.` or `*.`, a name with
 * other asterisks, an address, a network such as 10.0.0.0/8, or `*`; with `:port` for that port alone.
 */
function parseExceptions(text: string): (target: URL) => boolean {
  const entries = entriesOf(text).flatMap((entry) => parseException(entry) ?? [])
  return ({ protocol, hostname, port }) => {
    const host = plainAddress(hostname.toLowerCase().replace(/^\[|\]$|\.$/g, ''))
    const usual = protocol === 'https:' ? '443' : '80'
    const at = port === '' ? usual : port
    return entries.some((entry) => (entry.port === null || entry.port === at) && entry.has(host))
  }
}

function entriesOf(text: string): string[] {
  return text.split(/[\s,;]+/).filter((entry) => entry !== '')
}

/** Returns warnings for entries of NO_PROXY that name no host: requests that they were meant for go through the proxy. */
export function describeUnusableExceptions(env: Environment): string[] {
  const found = value(env, EXCEPTION_NAMES)
  const unusable = entriesOf(found?.text ?? '').filter((entry) => parseException(entry) === null)
  return unusable.map(
    (entry) =>
      `${found?.name ?? ''}: ${JSON.stringify(maskUrl(entry))} is no host, address or network, so it excepts nothing: ` +
      'write it as example.com, .example.com, 10.1.2.3, 10.0.0.0/8 or [2001:db8::]/32, each with or without :port',
  )
}

interface Exception {
  readonly port: string | null
  readonly has: (host: string) => boolean
}

/** An entry with its port: behind a host, or an address in brackets; an IPv6 address without brackets has none. */
const WITH_PORT = /^(.*?)(?::0*(\d{1,5}))?$/

/** Null: the entry names no host. */
function parseException(entry: string): Exception | null {
  const [, name = '', port = null] = isBareIpv6(entry) ? ['', entry] : (WITH_PORT.exec(entry) ?? [])
  if (port !== null && (Number(port) < 1 || Number(port) > 65_535)) return null
  const has = hostsOf(name.toLowerCase())
  return has === null ? null : { port, has }
}

/** Whether an entry is an IPv6 address or network without brackets, whose last part is no port. */
function isBareIpv6(entry: string): boolean {
  return isIP(entry.replace(/\/\d+$/, '')) === 6
}

function hostsOf(name: string): Exception['has'] | null {
  if (name === '*') return () => true
  const [, address = '', bits = null] = /^\[?([\da-f.:]+)\]?(?:\/(\d{1,3})\]?)?$/.exec(name) ?? []
  if (isIP(address) !== 0) return inNetwork(address, bits === null ? null : Number(bits))
  const own = name.replace(/^\*?\.(?=.)/, '').replace(/\.$/, '')
  if (own.includes('*')) return hostsLike(own)
  if (/[^\p{L}\p{M}\p{N}_.-]/u.test(own)) return null // of which the next line would take the beginning
  const host = domainToASCII(own)
  // A name that ends in a number can only be a part of an IPv4 address.
  if (!HOST.test(host) || /(^|\.)(\d+|0x[\da-f]*)$/.test(host)) return null
  return (one) => one === host || one.endsWith(`.${host}`)
}

const HOST = /^[\w-]{1,63}(\.[\w-]{1,63})*$/

/** Hosts that a name with asterisks fits: `10.1.*`, `*example.com`, `api.*.example.com`. */
function hostsLike(name: string): Exception['has'] | null {
  if (!HOST.test(name.replaceAll('*', 'x'))) return null
  const form = name
    .split('*')
    .map((part) => part.replace(/[.\\-]/g, '\\$&'))
    .join('.*')
  const pattern = new RegExp(`^${form}$`)
  return (host) => pattern.test(host)
}

const MAPPED = /^(?:0*:)*:?ffff:/

/** Returns an IPv4 address for one that is written as IPv6 (`::ffff:10.1.2.3`), and any other text unchanged. */
function plainAddress(address: string): string {
  if (isIP(address) !== 6 || !MAPPED.test(address)) return address
  const tail = address.replace(MAPPED, '')
  if (isIP(tail) === 4) return tail
  const [high = '', low = ''] = tail.split(':')
  const bytes = Buffer.from(high.padStart(4, '0') + low.padStart(4, '0'), 'hex')
  return bytes.length === 4 && tail.includes(':') ? bytes.join('.') : address
}

/** `bits` null: the address alone. Null for a network that has more bits than its addresses. */
function inNetwork(given: string, bits: number | null): Exception['has'] | null {
  const address = plainAddress(given)
  const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
  const most = family === 'ipv6' ? 128 : 32
  let own = bits ?? most
  if (bits !== null && address !== given) own = bits - 96
  if (own < 0 || own > most) return null
  const list = new BlockList()
  list.addSubnet(address, own, family)
  return (host) => isIP(host) !== 0 && list.check(host, isIP(host) === 6 ? 'ipv6' : 'ipv4')
}
