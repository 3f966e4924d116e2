import { remember } from '../../base/text.ts'

/** What a request asks for beyond its path: the header fields that change an answer. */
export interface RequestHeaders {
  acceptEncoding: string | undefined
  ifMatch: string | undefined
  ifNoneMatch: string | undefined
  ifModifiedSince: string | undefined
  ifUnmodifiedSince: string | undefined
  ifRange: string | undefined
  range: string | undefined
}

const FIELDS: Readonly<Partial<Record<string, keyof RequestHeaders>>> = {
  'accept-encoding': 'acceptEncoding',
  'if-match': 'ifMatch',
  'if-none-match': 'ifNoneMatch',
  'if-modified-since': 'ifModifiedSince',
  'if-unmodified-since': 'ifUnmodifiedSince',
  'if-range': 'ifRange',
  range: 'range',
}
const LENGTHS = new Set(Object.keys(FIELDS).map((name) => name.length))

/**
 * Reads the fields from a request's raw headers (name, value, name, value, …); a repeated field is joined
 * with a comma. Going through the raw list spares building an object of all headers for every request.
 */
export function readRequestHeaders(rawHeaders: readonly string[]): RequestHeaders {
  const requestHeaders: RequestHeaders = {
    acceptEncoding: undefined,
    ifMatch: undefined,
    ifNoneMatch: undefined,
    ifModifiedSince: undefined,
    ifUnmodifiedSince: undefined,
    ifRange: undefined,
    range: undefined,
  }
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? ''
    if (!LENGTHS.has(name.length)) continue
    const field = FIELDS[name.toLowerCase()]
    if (field === undefined) continue
    const before = requestHeaders[field]
    const value = rawHeaders[at + 1] ?? ''
    requestHeaders[field] = before === undefined ? value : `${before}, ${value}`
  }
  return requestHeaders
}

/** What a request asks for beyond its path: nothing. */
export const PLAIN_REQUEST: Readonly<RequestHeaders> = readRequestHeaders([])

/** The two codings an answer exists in. */
export type Coding = 'gzip' | 'identity'

/** Values of `Accept-Encoding` whose coding is remembered: clients send few different ones. */
const REMEMBERED = { results: 256, characters: 256 }
const codingFor = remember((header): Coding => decide(readWeights(header)), REMEMBERED)

/**
 * Returns the coding for an `Accept-Encoding` value (RFC 9110, 12.5.3): gzip wherever it is accepted, unless
 * identity is preferred by its q-value. A client that refuses both gets identity, which is more useful than a 406.
 */
export function chooseCoding(header: string | undefined): Coding {
  return header === undefined ? 'identity' : codingFor(header)
}

/**
 * Returns what a header such as `Accept` names, in lower case, each with its weight (RFC 9110, 12.4.2). It is 1 where none is given, and
 * 0 where it cannot be read: then that is better left alone. Of the same name twice the first counts.
 */
export function readWeights(header: string): ReadonlyMap<string, number> {
  const weights = new Map<string, number>()
  for (const item of header.toLowerCase().split(',')) {
    const [name = '', ...parameters] = item.split(';').map((part) => part.trim())
    if (!weights.has(name)) weights.set(name, weightOf(parameters))
  }
  return weights
}

function weightOf(parameters: readonly string[]): number {
  const [, value] = /^q\s*=\s*(.*)$/.exec(parameters.find((one) => /^q\s*=/.test(one)) ?? '') ?? []
  if (value === undefined) return 1
  return /^(0(\.\d*)?|1(\.0*)?)$/.test(value) ? Number(value) : 0
}

function decide(weights: ReadonlyMap<string, number>): Coding {
  const gzip = weights.get('gzip') ?? weights.get('x-gzip')
  const identity = weights.get('identity')
  const any = weights.get('*')
  const wanted = gzip ?? any ?? 0
  if (wanted > 0) return identity !== undefined && identity > wanted ? 'identity' : 'gzip'
  const gzipRefused = gzip === 0 || any === 0
  return identity === 0 && !gzipRefused ? 'gzip' : 'identity'
}

/** Header fields that change nothing about the answer to a plain GET, or, the last three, whose value is looked at. */
const PLAIN_FIELDS: ReadonlySet<string> = new Set([
  'user-agent',
  'accept',
  'accept-language',
  'authorization',
  'api-key',
  'cache-control',
  'cookie',
  'dnt',
  'from',
  'origin',
  'pragma',
  'referer',
  'host',
  'connection',
  'accept-encoding',
])

/** A longer block is Node's to read. */
const MAX_BLOCK = 8192
/** One class, so that a failed match takes one pass. */
const PLAIN_VALUE = /^[\t -~]*$/

/**
 * Parses a block of headers (from the end of the request line on). Returns the coding to answer with, or null when it contains
 * anything that is not plain. A client repeats the same block on a connection, so the last result is cached.
 */
export function createHeaderMemory(): (block: string) => Coding | null {
  let last = ''
  let coding: Coding | null = null
  return (block) => {
    if (block.length > MAX_BLOCK) return null
    if (block !== last) {
      coding = readPlainHeaders(block)
      last = block
    }
    return coding
  }
}

function readPlainHeaders(block: string): Coding | null {
  if (!block.endsWith('\r\n\r\n')) return null
  const fields = new Map<string, string>()
  for (const line of block.slice(2, -4).split('\r\n')) {
    const colon = line.indexOf(':')
    const name = line.slice(0, Math.max(0, colon)).toLowerCase()
    if (!PLAIN_FIELDS.has(name) || fields.has(name)) return null
    const value = line.slice(colon + 1)
    if (!PLAIN_VALUE.test(value)) return null
    fields.set(name, value.trim())
  }
  const connection = fields.get('connection') ?? 'keep-alive'
  if (!fields.has('host') || connection.toLowerCase() !== 'keep-alive') return null
  return chooseCoding(fields.get('accept-encoding'))
}
