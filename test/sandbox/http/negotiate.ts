import type { IncomingHttpHeaders } from 'node:http'
import { gzipSync } from 'node:zlib'
import type { HttpForm, Validators } from '../service/shapes/shape.ts'
import { type Representation, slice } from '../feed/representation.ts'

/** A response before it is sent. `body` is not called for HEAD. */
export interface NegotiatedAnswer {
  status: number
  headers: Record<string, string | number>
  /** Body bytes; the value of Content-Length. */
  length: number
  body: () => Iterable<Buffer>
}

/** What the server offers beyond the plain bytes. */
export interface Policy {
  ranges: boolean
  validators: Validators
  gzip: HttpForm['gzip']
  /** Whether answers have a Content-Length. */
  length: boolean
}

/** Chooses between 200, 206, 304 and 416 for a GET or HEAD (RFC 9110, sections 13 and 14). */
export function negotiate(
  method: string,
  asked: IncomingHttpHeaders,
  what: Representation,
  policy: Policy,
): NegotiatedAnswer {
  const zipped = mayZip(policy, asked) ? what.gzip?.() : undefined
  const etag = zipped === undefined ? what.etag : what.etag.replace(/"$/, '-gzip"')
  const headers: NegotiatedAnswer['headers'] = {
    ...what.headers,
    ...validatorsOf(policy, what, etag),
  }
  if (policy.gzip === 'asked' && what.gzip !== undefined) headers['Vary'] = 'Accept-Encoding'
  if (policy.ranges && what.ranges) headers['Accept-Ranges'] = 'bytes'
  if (isUnchanged(asked, etag, what.lastModified, policy)) {
    return { status: 304, headers, length: 0, body: () => [] }
  }
  headers['Content-Type'] = what.type
  if (zipped !== undefined) {
    headers['Content-Encoding'] = 'gzip'
    return { status: 200, headers, length: zipped.length, body: () => [zipped] }
  }
  const mayRange = method === 'GET' && policy.ranges && what.ranges
  const ranged = mayRange ? rangeAnswer(asked, what, etag, headers, policy) : undefined
  return ranged ?? { status: 200, headers, length: what.size, body: what.chunks }
}

function rangeAnswer(
  asked: IncomingHttpHeaders,
  what: Representation,
  etag: string,
  headers: NegotiatedAnswer['headers'],
  policy: Policy,
): NegotiatedAnswer | undefined {
  const range = parseRange(asked.range, what.size)
  if (range === undefined) return undefined
  const condition = asked['if-range']
  if (condition !== undefined) {
    const { ETag, 'Last-Modified': date } = validatorsOf(policy, what, etag)
    if (condition !== ETag && condition !== date) return undefined
    if (condition.startsWith('W/')) return undefined // a weak tag does not prove the same bytes
  }
  if (range === 'unsatisfiable') {
    headers['Content-Range'] = `bytes */${what.size}`
    delete headers['Content-Type']
    return { status: 416, headers, length: 0, body: () => [] }
  }
  const { start, end } = range
  headers['Content-Range'] = `bytes ${start}-${end - 1}/${what.size}`
  return {
    status: 206,
    headers,
    length: end - start,
    body: () => slice(what.chunks(), start, end),
  }
}

/** A single byte range as [start, end); undefined when there is none to honour. */
function parseRange(
  header: string | undefined,
  size: number,
): { start: number; end: number } | 'unsatisfiable' | undefined {
  const match = /^bytes=\s*(\d*)-(\d*)\s*$/.exec(header ?? '')
  if (match === null) return undefined
  const [, first = '', last = ''] = match
  if (first === '') {
    if (last === '') return undefined
    const length = Math.min(Number(last), size)
    return length === 0 ? 'unsatisfiable' : { start: size - length, end: size }
  }
  const start = Number(first)
  if (last !== '' && Number(last) < start) return undefined
  if (start >= size) return 'unsatisfiable'
  return { start, end: last === '' ? size : Math.min(size, Number(last) + 1) }
}

function isUnchanged(asked: IncomingHttpHeaders, etag: string, lastModified: number, { validators }: Policy): boolean {
  if (validators === 'none') return false
  const tags = validators === 'date' ? undefined : asked['if-none-match']
  if (tags !== undefined) {
    if (tags.trim() === '*') return true
    return tags.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag)
  }
  const since = validators === 'etag' ? undefined : asked['if-modified-since']
  return since !== undefined && Date.parse(since) >= lastModified
}

function validatorsOf({ validators }: Policy, { lastModified }: Representation, etag: string): Record<string, string> {
  const tagged = validators !== 'none' && validators !== 'date'
  const dated = validators !== 'none' && validators !== 'etag'
  const tag = validators === 'weak' ? `W/${etag}` : etag
  return {
    ...(tagged ? { ETag: tag } : {}),
    ...(dated ? { 'Last-Modified': httpDate(lastModified) } : {}),
  }
}

/** An answer that was not negotiated, and any answer's length, as the policy has them. */
export function finished(answer: NegotiatedAnswer, policy: Policy, asked: IncomingHttpHeaders): NegotiatedAnswer {
  const isWhole = answer.status !== 204 && answer.status !== 304 && answer.status !== 206
  const isPlain = !('Content-Encoding' in answer.headers) && !('ETag' in answer.headers)
  const isJson = /json/.test(String(answer.headers['Content-Type']))
  const zips = isWhole && isPlain && isJson && answer.length > 0 && mayZip(policy, asked)
  const body = zips ? gzipSync(Buffer.concat([...answer.body()])) : undefined
  const shown: NegotiatedAnswer =
    body === undefined || policy.gzip !== 'always'
      ? answer
      : {
          ...answer,
          headers: { ...answer.headers, 'Content-Encoding': 'gzip' },
          length: body.length,
          body: () => [body],
        }
  if (policy.length || !isWhole) return shown
  return { ...shown, headers: { ...shown.headers, 'Transfer-Encoding': 'chunked' } }
}

function mayZip({ gzip }: Policy, asked: IncomingHttpHeaders): boolean {
  return gzip === 'always' || (gzip === 'asked' && acceptsGzip(asked['accept-encoding']))
}

function acceptsGzip(header: string | string[] | undefined): boolean {
  const codings = String(header ?? '').split(',')
  return codings.some((coding) => {
    const [name = '', ...parameters] = coding.split(';').map((part) => part.trim().toLowerCase())
    const refused = parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter))
    return (name === 'gzip' || name === '*') && !refused
  })
}

/** IMF-fixdate, as HTTP wants it. */
export function httpDate(time: number): string {
  return new Date(time).toUTCString()
}

/** An error as the service words it: a JSON message (wire facts, error bodies). */
export function refusal(status: number, message: string): NegotiatedAnswer {
  return jsonAnswer(status, { message })
}

/** Any value as a JSON answer. */
export function jsonAnswer(status: number, value: unknown): NegotiatedAnswer {
  const body = Buffer.from(JSON.stringify(value))
  const headers = { 'Content-Type': 'application/json' }
  return { status, headers, length: body.length, body: () => [body] }
}
