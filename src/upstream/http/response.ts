import { gunzipSync } from 'node:zlib'
import { readHttpDate } from '../../base/time.ts'
import { trailerSize } from '../../base/gzip/member.ts'
import { inflatedPieces } from '../../base/gzip/pieces.ts'
import { MirrorError, messageOf, systemCode } from '../../base/errors.ts'
import { isFlawHeader, saysLack } from '../../base/json/forms/more-beyond.ts'
import { textOfJson } from '../../base/json/objects.ts'
import { isHtmlPage } from '../../base/text.ts'
import { type RawAnswer, faultNotes } from './transport.ts'

/** Upstream's validators of a document. */
export interface Validators {
  etag: string | null
  lastModified: string | null
}

/** Metadata of a response. */
export interface Meta extends Validators {
  status: number
  /** Upstream's time (its Date header, otherwise the local clock), or the date of a mirror's data; unix milliseconds. */
  date: number
  /** Length of the response's body; null when chunked. */
  length: number | null
  contentRange: string | null
  contentEncoding: string | null
  contentType: string
  retryAfter: string | null
  /** The Location header: of a 200 it may name what the answer is about. */
  location: string | null
  /** The Link header (RFC 8288). */
  link: string | null
  /** Number of items in a list, where a header contains it (`X-Total-Count`). */
  total: number | null
  /** All headers, names in lower case. */
  headers: Readonly<Record<string, unknown>>
}

/** A response whose body is not read yet. Read it to its end, or destroy it. */
export interface OpenAnswer {
  status: number
  meta: Meta
  body: RawAnswer['body']
}

/** Longest value that is kept, characters. */
const LONGEST_LACK = 500

/** Reads a response's headers; `now` replaces a missing Date. */
export function metaOf({ status, headers }: RawAnswer, now: () => number): Meta {
  const text = (name: string): string | null => {
    const value = headers[name]
    return typeof value === 'string' ? value : null
  }
  const length = Number(text('content-length') ?? Number.NaN)
  const date = readHttpDate(text('date'))
  const total = text('x-total-count') ?? text('x-total') ?? ''
  return {
    status,
    etag: validator(text('etag')),
    lastModified: validator(text('last-modified')),
    // A date ahead of the local clock would make the mirror look fresher than it is, and so would one that a cache renewed.
    date: Math.min(date ?? now(), mirrorDate(headers) ?? now(), now() - ageOf(headers)),
    length: Number.isSafeInteger(length) ? length : null,
    contentRange: text('content-range'),
    contentEncoding: codingOf(text('content-encoding')),
    contentType: text('content-type') ?? '',
    retryAfter: text('retry-after'),
    location: text('location'),
    link: links(headers['link']),
    total: /^\d{1,15}$/.test(total) ? Number(total) : null,
    headers,
  }
}

/**
 * Returns what a mirror that is upstream says of things that it may lack (X-Mirror-Incomplete): what its answer does not have is then
 * not known to be absent. Null for the service, and for an answer that is whole.
 */
export function lackOf({ headers }: Pick<Meta, 'headers'>): string | null {
  const value = headers['x-mirror-incomplete']
  return typeof value === 'string' ? value.slice(0, LONGEST_LACK).replace(/[^\x20-\x7e]/g, '?') : null
}

/** Returns the date of what a mirror that is upstream serves, unix milliseconds; null where the service itself answers. */
export function mirrorDate(headers: Meta['headers']): number | null {
  const asOf = headers['x-mirror-as-of']
  const at = typeof asOf === 'string' ? Date.parse(asOf) : Number.NaN
  return Number.isNaN(at) ? null : at
}

/** Returns for how long a cache has had an answer (`Age`), milliseconds; 0 where none says so. */
export function ageOf({ age }: Meta['headers']): number {
  return typeof age === 'string' && /^\s*\d{1,9}\s*$/.test(age) ? Number(age) * 1000 : 0
}

/** Codes of a Warning header (RFC 7234, 5.5) of a cache that could not ask: a stale answer, a failed check, no connection. */
const STALE_WARNING = /(?:^|,)\s*11[0-2]\b/

/** Returns what a Warning header, or a flag in a header, says of an answer that is old or not whole, in words; null: nothing. */
export function warningOf(headers: Meta['headers']): string | null {
  const warning = textOfJson(headers['warning'])
  const isSaid = STALE_WARNING.test(warning) || saysLack(warning)
  if (isSaid) return `it has the header warning: ${warning.slice(0, 60)}`
  const flag = Object.entries(headers).find(([name, value]) => isFlawHeader(name, value))
  return flag === undefined ? null : `it has the header ${flag[0]}: ${textOfJson(flag[1]).slice(0, 60)}`
}

/** Headers in which caches say what they did. */
const OF_CACHE = /^(x-|cf-|x-proxy-)?(varnish-)?cache(-status|-result)?$/
/** An answer that a cache gave though it had expired; `fwd=stale` is one that it asked for again (RFC 9211). */
const STALE = /(?:^|[\s;,])(?:stale|updating)(?![\w=])|\bhit\b[^,]*;\s*ttl=-/i

/** Returns what a cache says of an answer that had expired, in words; null: nothing. */
export function staleOf(headers: Meta['headers']): string | null {
  const found = Object.entries(headers).find(([name, value]) => OF_CACHE.test(name) && STALE.test(textOfJson(value)))
  return found === undefined
    ? null
    : `a cache gave it that had expired (${found[0]}: ${textOfJson(found[1]).slice(0, 60)})`
}

/** Returns the content coding; `x-gzip` is another name of gzip (RFC 9110, section 8.4.1.3). */
function codingOf(value: string | null): string | null {
  const coding = value?.trim().toLowerCase() ?? null
  return coding === 'x-gzip' ? 'gzip' : coding
}

/** Joins the lines of a Link header. */
function links(value: string | string[] | undefined): string | null {
  return Array.isArray(value) ? value.join(', ') : (value ?? null)
}

/** Returns a validator; null for one too long to be sent back in a request (431). */
function validator(value: string | null): string | null {
  return value !== null && value.length > 1024 ? null : value
}

/** Range of a Content-Range header: bytes `start` to `end` of `total`, both included. */
export interface RequestPlace {
  start: number
  end: number
  total: number
}

/** Parses a Content-Range; null when it is absent, invalid or without a total. */
export function parseContentRange(value: string | null): RequestPlace | null {
  const match = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(value ?? '')
  if (match === null) return null
  const [start, end, total] = match.slice(1).map(Number) as [number, number, number] // three groups
  return start <= end && end < total ? { start, end, total } : null
}

/** Returns whether the body is not compressed. */
export function isPlain({ contentEncoding }: Meta): boolean {
  return contentEncoding === null || contentEncoding === 'identity'
}

/**
 * Returns whether a response shows where its body ends: by a length, by chunks or within gzip. One without these ends with its
 * connection, also when that is cut.
 */
export function hasEnd({ length, contentEncoding, headers }: Meta): boolean {
  return length !== null || contentEncoding === 'gzip' || /\bchunked\b/i.test(String(headers['transfer-encoding']))
}

/** How a body is read: its path for messages, its cap, bytes, its deadline, and what gets the size of each chunk. */
export interface BodyReading {
  path: string
  maxBytes: number
  deadlineMs: number
  count: (bytes: number) => void
}

/**
 * Reads a body to its end, up to `maxBytes`; calls `count` with the size of each chunk. Throws `upstream_too_large`
 * or `upstream_unreachable`; the message names `deadlineMs` when the deadline was the reason.
 */
export async function readAnswerBody(body: RawAnswer['body'], meta: Meta, reading: BodyReading): Promise<Buffer> {
  const chunks: Buffer[] = []
  await passAnswerBody(body, meta, reading, (chunk) => chunks.push(chunk))
  return chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks)
}

/** Does the same, and passes each chunk on instead of keeping it; rejects as `take` throws. */
export async function passAnswerBody(
  body: RawAnswer['body'],
  meta: Meta,
  { path, maxBytes, deadlineMs, count }: BodyReading,
  take: (chunk: Buffer) => void,
): Promise<void> {
  let total = 0
  const add = (chunk: Buffer): void => {
    total += chunk.length
    count(chunk.length)
    if (total > maxBytes) throw tooLarge(path, total, maxBytes)
    take(chunk)
  }
  if (meta.length !== null && meta.length > maxBytes) {
    body.destroy()
    throw tooLarge(path, meta.length, maxBytes)
  }
  const whole = body.whole()
  if (whole !== null) return add(whole)
  try {
    for await (const chunk of body) add(chunk)
  } catch (error) {
    throw networkError(error, `${path}: the answer broke off after ${total} bytes`, deadlineMs)
  }
}

function tooLarge(path: string, bytes: number, maxBytes: number): MirrorError {
  const message = `${path}: ${bytes} bytes or more, the cap is ${maxBytes}`
  return new MirrorError('upstream_too_large', message)
}

/** Bytes at the start of a body in which an HTML page is recognised. */
const HEAD_BYTES = 2048

/** Throws `upstream_shape` for content that begins as an HTML page where the service answers `what`. */
export function refuseHtml(content: Buffer, path: string, what = 'JSON'): void {
  if (!isHtmlPage(content.toString('utf8', 0, HEAD_BYTES))) return
  const message = `${path}: an HTML page came instead of ${what} (a sign-in page or a proxy?)`
  throw new MirrorError('upstream_shape', message)
}

/** Decodes the content encoding, within the same cap. */
export function decodeBody(raw: Buffer, meta: Meta, maxBytes: number, path: string): Buffer {
  if (isPlain(meta)) return raw
  expectGzip(meta, path)
  try {
    return inflated(raw, maxBytes)
  } catch (error) {
    if (systemCode(error) === 'ERR_BUFFER_TOO_LARGE') throw inflatesTooLarge(path, maxBytes)
    throw damaged(path, error)
  }
}

/** Size of zlib's output buffers, bytes, from which a content is inflated into several. */
const OUTPUT = 65_536

/**
 * Inflates a body in gzip. The output of a small one has the size that its trailer says: it lives as long as the content, and
 * 64 KiB for each made V8 mark the whole heap twice a second. Where the trailer is wrong, as that of the last of several
 * members, the body is inflated again: millions of small buffers would take more than the content.
 */
function inflated(raw: Buffer, maxBytes: number): Buffer {
  const size = (trailerSize(raw) ?? OUTPUT) + 16
  if (size < OUTPUT) {
    try {
      const chunkSize = Math.max(64, size)
      return gunzipSync(raw, { maxOutputLength: Math.min(maxBytes, chunkSize), chunkSize })
    } catch (error) {
      if (systemCode(error) !== 'ERR_BUFFER_TOO_LARGE') throw error
    }
  }
  const chunkSize = Math.min(Math.max(OUTPUT, raw.length * 4), Math.max(OUTPUT, size))
  return gunzipSync(raw, { maxOutputLength: maxBytes, chunkSize })
}

/** Does the same with a body in gzip, in pieces that are valid until the next one is requested. */
export async function* decodedPieces(raw: Buffer, meta: Meta, maxBytes: number, path: string): AsyncGenerator<Buffer> {
  expectGzip(meta, path)
  let total = 0
  try {
    for await (const piece of inflatedPieces(raw)) {
      total += piece.length
      if (total > maxBytes) break
      yield piece
    }
  } catch (error) {
    throw damaged(path, error)
  }
  if (total > maxBytes) throw inflatesTooLarge(path, maxBytes)
}

function expectGzip({ contentEncoding }: Meta, path: string): void {
  if (contentEncoding !== 'gzip')
    throw new MirrorError('upstream_shape', `${path}: content encoding ${String(contentEncoding)}`)
}

function inflatesTooLarge(path: string, maxBytes: number): MirrorError {
  return new MirrorError('upstream_too_large', `${path}: inflates to more than ${maxBytes} bytes`)
}

function damaged(path: string, cause: unknown): MirrorError {
  return new MirrorError('upstream_shape', `${path}: the gzip body is damaged`, { cause })
}

/**
 * Creates the error for a network fault: the cause, the proxy that was used, and for a certificate the setting for
 * trusted authorities. The message names `deadlineMs` when the deadline was the reason.
 */
export function networkError(error: unknown, what: string, deadlineMs: number): MirrorError {
  if (error instanceof MirrorError) return error
  const late = error instanceof Error && error.name === 'TimeoutError'
  const why = late ? `no complete answer within ${deadlineMs} ms` : detail(error)
  return new MirrorError('upstream_unreachable', `${what}: ${why}${faultNotes(error)}`, {
    cause: error,
  })
}

/** How OpenSSL writes what went wrong: `40AD21:error:0A00010B:SSL routines:tls_validate:wrong version number:../deps/…`. */
const OPENSSL = /^[\dA-F]+:error:[\dA-F]+:[^:]*:[^:]*:([^:]+):.*$/s

function detail(error: unknown): string {
  const code = systemCode(error)
  // An AggregateError (several addresses were tried) has no message of its own.
  const message = (messageOf(error) || 'the connection failed').replace(OPENSSL, 'TLS: $1')
  return code === undefined || message.includes(code) ? message : `${message} (${code})`
}

/** Reads and discards a body whose status is sufficient. */
export async function discardBody(body: RawAnswer['body']): Promise<void> {
  try {
    await body.dump()
  } catch {
    // The status is sufficient; a body that ends early adds nothing.
  }
}
