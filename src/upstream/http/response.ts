import { gunzipSync } from 'node:zlib'
import { MirrorError, messageOf, systemCode } from '../../core/errors.ts'
import { type RawAnswer, faultNotes } from './transport.ts'

/** What an answer says about itself. */
export interface Meta {
  etag: string | null
  lastModified: string | null
  /** Upstream's clock (its Date header, else ours), unix milliseconds. */
  date: number
  /** Of this answer's body; null when chunked. */
  length: number | null
  contentRange: string | null
  contentEncoding: string | null
  contentType: string
  retryAfter: string | null
  /** The Link header (RFC 8288). */
  link: string | null
  /** How many items a list has, where a header tells (`X-Total-Count`). */
  total: number | null
}

/** Reads an answer's headers; `now` stands in for a missing Date. */
export function metaOf({ headers }: RawAnswer, now: () => number): Meta {
  const text = (name: string): string | null => {
    const value = headers[name]
    return typeof value === 'string' ? value : null
  }
  const length = Number(text('content-length') ?? Number.NaN)
  const date = Date.parse(text('date') ?? '')
  const total = text('x-total-count') ?? text('x-total') ?? ''
  return {
    etag: validator(text('etag')),
    lastModified: validator(text('last-modified')),
    // A clock ahead of ours would make the mirror look fresh for as long as it is ahead.
    date: Number.isNaN(date) ? now() : Math.min(date, now()),
    length: Number.isSafeInteger(length) ? length : null,
    contentRange: text('content-range'),
    contentEncoding: text('content-encoding')?.trim().toLowerCase() ?? null,
    contentType: text('content-type') ?? '',
    retryAfter: text('retry-after'),
    link: links(headers['link']),
    total: /^\d{1,15}$/.test(total) ? Number(total) : null,
  }
}

/** A Link header may come in several lines. */
function links(value: string | string[] | undefined): string | null {
  return Array.isArray(value) ? value.join(', ') : (value ?? null)
}

/** A validator that is too long to be sent back is as good as none: its echo would be refused (431). */
function validator(value: string | null): string | null {
  return value !== null && value.length > 1024 ? null : value
}

/** The part of a whole that a Content-Range names: bytes `start` to `end` of `total`, both included. */
export interface RequestPlace {
  start: number
  end: number
  total: number
}

/** Reads a Content-Range; null when there is none, or one that is not sound or leaves the total open. */
export function parseContentRange(value: string | null): RequestPlace | null {
  const match = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(value ?? '')
  if (match === null) return null
  const [start, end, total] = match.slice(1).map(Number) as [number, number, number] // three groups
  return start <= end && end < total ? { start, end, total } : null
}

/** Whether the body is the file itself, not a compressed form of it. */
export function isPlain({ contentEncoding }: Meta): boolean {
  return contentEncoding === null || contentEncoding === 'identity'
}

/**
 * Reads a body to its end, up to `maxBytes`, telling `count` of each piece. Throws `upstream_too_large` or
 * `upstream_unreachable`; `deadlineMs` is named when the deadline was the reason.
 */
export async function readAnswerBody(
  body: RawAnswer['body'],
  meta: Meta,
  reading: { path: string; maxBytes: number; deadlineMs: number; count: (bytes: number) => void },
): Promise<Buffer> {
  const { path, maxBytes, deadlineMs, count } = reading
  const tooLarge = (bytes: number): MirrorError =>
    new MirrorError('upstream_too_large', `${path}: ${bytes} bytes or more, the cap is ${maxBytes}`)
  if (meta.length !== null && meta.length > maxBytes) {
    body.destroy()
    throw tooLarge(meta.length)
  }
  const chunks: Buffer[] = []
  let total = 0
  try {
    for await (const chunk of body) {
      total += chunk.length
      count(chunk.length)
      if (total > maxBytes) throw tooLarge(total)
      chunks.push(chunk)
    }
  } catch (error) {
    throw networkError(error, `${path}: the answer broke off after ${total} bytes`, deadlineMs)
  }
  return chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks, total)
}

/** Undoes the content encoding, within the same cap. */
export function decodeBody(raw: Buffer, meta: Meta, maxBytes: number, path: string): Buffer {
  if (isPlain(meta)) return raw
  if (meta.contentEncoding !== 'gzip') {
    throw new MirrorError(
      'upstream_shape',
      `${path}: content encoding ${String(meta.contentEncoding)}`,
    )
  }
  try {
    return gunzipSync(raw, {
      maxOutputLength: maxBytes,
      chunkSize: Math.max(65_536, raw.length * 4),
    })
  } catch (error) {
    if (systemCode(error) === 'ERR_BUFFER_TOO_LARGE') {
      throw new MirrorError(
        'upstream_too_large',
        `${path}: inflates to more than ${maxBytes} bytes`,
      )
    }
    throw new MirrorError('upstream_shape', `${path}: the gzip body is damaged`, { cause: error })
  }
}

/**
 * Names a network fault: what it was, the proxy that it went through, and for a certificate the setting that decides whom
 * to trust. `deadlineMs` is told when the deadline was the reason.
 */
export function networkError(error: unknown, what: string, deadlineMs: number): MirrorError {
  if (error instanceof MirrorError) return error
  const late = error instanceof Error && error.name === 'TimeoutError'
  const why = late ? `no complete answer within ${deadlineMs} ms` : detail(error)
  return new MirrorError('upstream_unreachable', `${what}: ${why}${faultNotes(error)}`, {
    cause: error,
  })
}

function detail(error: unknown): string {
  const code = systemCode(error)
  // Several addresses were tried: an AggregateError has no words of its own.
  const message = messageOf(error) || 'the connection failed'
  return code === undefined || message.includes(code) ? message : `${message} (${code})`
}

/** Reads and drops a body whose status has said it all. */
export async function discardBody(body: RawAnswer['body']): Promise<void> {
  try {
    await body.dump()
  } catch {
    // The status is what counts; a body that breaks off adds nothing to it.
  }
}
