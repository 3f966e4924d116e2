import { isIP, isIPv6 } from 'node:net'
import { UNIX_PEER } from '../../base/connections/limit.ts'
import { plainAddress } from '../../base/connections/network.ts'
import type { TrustedProxies } from './client-address.ts'
import type { IncomingMessage } from 'node:http'

/** Header fields by lower-case name, each with all its values, as Node's `headersDistinct`. */
type HeaderLists = Readonly<Partial<Record<string, readonly string[]>>>

/** What trusted proxies report about the request that they forwarded; null where no trusted proxy reports a usable value. */
interface Forwarding {
  /** The client's own address: the nearest that no trusted proxy has. */
  readonly client: string
  readonly scheme: 'http' | 'https' | null
  /** Host, with its port if it has one. */
  readonly host: string | null
  /** What the proxy takes off the front of the path, such as `/mirror`; empty when nothing. */
  readonly prefix: string
}

/**
 * Request headers that proxies, load balancers and content networks add, beside all that begin with `x-forwarded`, `x-envoy-`
 * or `cf-`.
 */
const FIELDS: ReadonlySet<string> = new Set([
  'forwarded',
  'forwarded-for',
  'via',
  'true-client-ip',
  'cdn-loop',
  'client-ip',
  'fastly-client-ip',
  'proxy-connection',
  'x-client-ip',
  'x-cluster-client-ip',
  'x-host',
  'x-original-forwarded-for',
  'x-original-host',
  'x-original-uri',
  'x-original-url',
  'x-originating-ip',
  'x-proxyuser-ip',
  'x-real-ip',
  'x-remote-addr',
  'x-remote-ip',
  'x-rewrite-url',
  'x-scheme',
])
const FAMILIES = /^(x-forwarded|x-envoy-|cf-)/

/** Reports whether a request carries a header of a forwarding proxy. */
export function isForwarded(headers: HeaderLists): boolean {
  return Object.keys(headers).some((name) => FIELDS.has(name) || FAMILIES.test(name))
}

/**
 * Reads `Forwarded` (RFC 7239) and the `X-Forwarded-*` family. Each proxy appends on the right, so the lists are read
 * from there: entries further left may be invented by the client. The first address from the right that is not trusted is
 * the client's. An element of `Forwarded` is complete, so host and scheme are taken from the one that the farthest trusted
 * proxy wrote; not every proxy appends to the lists of the family, so there the nearest entry counts. When both families
 * are present and name different hosts, neither is used: a proxy passed one of them through unchanged.
 */
export function readForwarding(peer: string | undefined, headers: HeaderLists, trusted: TrustedProxies): Forwarding {
  const direct = { client: plainAddress(peer ?? UNIX_PEER), scheme: null, host: null, prefix: '' }
  if (!trusted(peer)) return direct
  const one = readStandard(headers)
  const other = readFamily(headers)
  const hops = one.addresses.length > 0 ? one.addresses : other.addresses
  const { client, depth } = walk(direct.client, hops, trusted)
  const scheme = agreed(pick(one.schemes, depth), pick(other.schemes, 0))?.toLowerCase()
  const host = agreed(pick(one.hosts, depth), pick(other.hosts, 0))
  return {
    client,
    scheme: scheme === 'http' || scheme === 'https' ? scheme : null,
    host: host !== null && isHost(host) ? host : null,
    prefix: plainPrefix(pick(other.prefixes, 0)),
  }
}

interface Lists {
  readonly addresses: readonly string[]
  readonly schemes: readonly string[]
  readonly hosts: readonly string[]
  readonly prefixes: readonly string[]
}

function readFamily(headers: HeaderLists): Lists {
  const listOf = (name: string): string[] =>
    (headers[`x-forwarded-${name}`] ?? []).join(',').split(',').map(trim).filter(isThere)
  return {
    addresses: listOf('for').map(withoutPort),
    schemes: listOf('proto'),
    hosts: listOf('host'),
    prefixes: listOf('prefix'),
  }
}

/** `for=192.0.2.1;proto=https;host=a, for="[2001:db8::1]:80"`: parameters of elements, values quoted or not. */
function readStandard(headers: HeaderLists): Lists {
  const text = withoutOpenQuote((headers['forwarded'] ?? []).join(','))
  // Quoted strings may contain commas and semicolons, so the text is cut around them.
  const elements = text.match(/(?:"(?:\\.|[^"\\])*"|[^,"])+/g) ?? []
  const pairs = elements.map((element) => {
    const parts = element.match(/(?:"(?:\\.|[^"\\])*"|[^;"])+/g) ?? []
    return new Map(parts.map(readPair))
  })
  const valuesOf = (name: string): string[] => pairs.map((pair) => pair.get(name) ?? '')
  const addresses = pairs.map((pair) => withoutPort(pair.get('for') ?? ''))
  return { addresses, schemes: valuesOf('proto'), hosts: valuesOf('host'), prefixes: [] }
}

/**
 * Returns a text with a comma for each quote from the first that is never closed: the patterns above then take linear time,
 * where each open quote would be searched to the end of the header again.
 */
function withoutOpenQuote(text: string): string {
  const [closed = ''] = /^(?:[^"]+|"(?:\\.|[^"\\])*")*/.exec(text) ?? []
  return closed + text.slice(closed.length).replaceAll('"', ',')
}

function readPair(part: string): [string, string] {
  const at = part.indexOf('=')
  const value = part.slice(at + 1).trim()
  const quoted = /^"(.*)"$/s.exec(value)?.[1]
  const name = part.slice(0, Math.max(0, at)).trim().toLowerCase()
  return [name, quoted === undefined ? value : quoted.replace(/\\(.)/gs, '$1')]
}

const trim = (text: string): string => text.trim()
const isThere = (text: string): boolean => text !== ''

function withoutPort(text: string): string {
  const bracketed = /^\[([^\]]*)\](:\d+)?$/.exec(text)?.[1]
  return plainAddress(bracketed ?? text.replace(/^([\d.]+):\d+$/, '$1'))
}

/** Goes back along the addresses while they are trusted; `depth` is how many of them are. */
function walk(peer: string, hops: readonly string[], trusted: TrustedProxies) {
  let client = peer
  let depth = 0
  for (const hop of [...hops].reverse()) {
    if (isIP(hop) === 0) break // "unknown", or an obfuscated identifier
    client = hop
    if (!trusted(hop)) break
    depth++
  }
  return { client, depth }
}

/** The element `depth` steps from the right; a proxy may have replaced the list instead of adding to it. */
function pick(list: readonly string[], depth: number): string | null {
  const element = list[Math.max(0, list.length - 1 - depth)] ?? ''
  return element === '' ? null : element
}

function agreed(one: string | null, other: string | null): string | null {
  if (one === null || other === null) return one ?? other
  return one.toLowerCase() === other.toLowerCase() ? one : null
}

const NAME = /^[a-z\d_]([\w-]*[a-z\d_])?(\.[a-z\d_]([\w-]*[a-z\d_])?)*\.?$/i

/** Whether a text is a host with or without a port and nothing else: a name in ASCII, an IPv4 or a bracketed IPv6 address. */
export function isHost(text: string): boolean {
  const [, name = '', port] = /^(\[[^\]]*\]|[^:]*)(?::(\d{1,5}))?$/.exec(text) ?? []
  if (port !== undefined && (Number(port) > 65_535 || Number(port) === 0)) return false
  const inner = /^\[(.*)\]$/.exec(name)?.[1]
  if (inner !== undefined) return isIP(inner) === 6 && !inner.includes('%')
  if (/^[\d.]+$/.test(name)) return isIP(name) === 4
  return name.length <= 253 && NAME.test(name)
}

function plainPrefix(text: string | null): string {
  const path = (text ?? '').replace(/\/+$/, '')
  return /^(\/[\w~-][\w.~-]*)+$/.test(path) && path.length <= 512 ? path : ''
}

/** The facts of a request that show which way it came. */
export interface RequestSource {
  readonly headers: HeaderLists
  /** The address at the other end of the connection. */
  readonly peer: string | undefined
  /** The address and port of this end. */
  readonly local: { readonly address: string; readonly port: number }
  readonly scheme: 'http' | 'https'
}

/** Whom to believe about where the mirror is reached. */
interface BaseUrlOptions {
  /** `server.publicUrl`: settles the matter. */
  readonly publicUrl: string | null
  readonly trusted: TrustedProxies
}

/**
 * Returns the URL under which this client reaches the mirror, without a trailing slash: `server.publicUrl`; else what trusted
 * proxies report; else the Host header. A value that is not a plain host is skipped, so the answer never contains an unsafe
 * character; the last choice is the listening address.
 */
export function baseUrl({ publicUrl, trusted }: BaseUrlOptions, arrival: RequestSource): string {
  if (publicUrl !== null) return publicUrl.replace(/\/+$/, '')
  const forwarded = readForwarding(arrival.peer, arrival.headers, trusted)
  const host = forwarded.host ?? askedHost(arrival.headers) ?? ownHost(arrival.local)
  return `${forwarded.scheme ?? arrival.scheme}://${host}${forwarded.prefix}`
}

function askedHost(headers: HeaderLists): string | null {
  const [host, another] = headers['host'] ?? []
  return host !== undefined && another === undefined && isHost(host) ? host : null
}

function ownHost({ address, port }: RequestSource['local']): string {
  const plain = plainAddress(address)
  return `${isIPv6(plain) ? `[${plain}]` : plain}:${port}`
}

/** The arrival of a request on Node's own server. */
export function arrivalOf({ headersDistinct, socket }: IncomingMessage): RequestSource {
  const { localAddress = '127.0.0.1', localPort = 80, remoteAddress } = socket
  return {
    headers: headersDistinct,
    peer: remoteAddress,
    local: { address: localAddress, port: localPort },
    scheme: 'encrypted' in socket && socket.encrypted === true ? 'https' : 'http',
  }
}
