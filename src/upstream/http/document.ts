import { trailerSize } from '../../base/gzip/member.ts'
import { createPacker } from '../../base/gzip/pieces.ts'
import { statusError } from './errors.ts'
import type { Wire } from './request.ts'
import {
  type Meta,
  type OpenAnswer,
  type BodyReading,
  decodeBody,
  decodedPieces,
  discardBody,
  isPlain,
  passAnswerBody,
  readAnswerBody,
  refuseHtml,
  type Validators,
} from './response.ts'

export type DocumentAnswer =
  /** `gzip`: the body as received, when it was sent as gzip. */
  { status: 200 | 206; body: Buffer; gzip: Buffer | null; meta: Meta } | { status: 304; meta: Meta }

/** A document whose content was passed on: what read it, and the content as one gzip member. */
export type PassedAnswer<R> = { status: 200 | 206; reader: R; gzip: Buffer; meta: Meta } | { status: 304; meta: Meta }

/** Reads the decoded content of a document in pieces; each is valid during the call. Must not throw. */
export interface PieceReader {
  push(piece: Buffer): void
}

/** Options of a document request. */
export interface FetchOptions {
  /** Cap on the decoded body, bytes. */
  maxBytes: number
  /** Validators of the stored copy, for conditional headers. */
  stored?: Validators | null
  headers?: Record<string, string>
  /** Whether to accept gzip; off for ranges and archives. */
  gzip?: boolean
}

/** Returns the headers of a document request. */
export function requestHeaders(options: FetchOptions): Record<string, string> {
  const headers: Record<string, string> = { accept: 'application/json', ...options.headers }
  headers['accept-encoding'] = options.gzip === true ? 'gzip' : 'identity'
  const stored = options.stored ?? null
  if (stored === null) return headers
  if (stored.etag !== null) headers['if-none-match'] = stored.etag
  else if (stored.lastModified !== null) headers['if-modified-since'] = stored.lastModified
  return headers
}

/**
 * Returns whether a 304 has the ETag of another version than was asked about, as from a cache that mixes two up: it confirms
 * nothing. Some servers leave out what names the content coding (`"a-gzip"`).
 */
export function confirmsAnother(headers: Record<string, string>, { status, meta }: OpenAnswer): boolean {
  const asked = headers['if-none-match']
  if (status !== 304 || asked === undefined || meta.etag === null) return false
  const plain = (etag: string): string =>
    etag
      .trim()
      .replace(/^W\//, '')
      .replace(/[-;:+.]+(gzip|br|zstd|df)(?="?$)/i, '')
  return plain(asked) !== plain(meta.etag)
}

/** Reads the response to a document request with these headers as a whole. */
export async function receiveDocument(
  wire: Wire,
  answer: OpenAnswer,
  headers: Record<string, string>,
  reading: BodyReading,
): Promise<DocumentAnswer> {
  const { meta, body } = answer
  const { path, maxBytes } = reading
  const status = await expectDocument(wire, answer, headers, reading)
  if (status === 304) return { status, meta }
  const raw = await readAnswerBody(body, meta, reading)
  const gzip = meta.contentEncoding === 'gzip' ? raw : null
  const content = decodeBody(raw, meta, maxBytes, path)
  refuseHtml(content, path)
  wire.secrets.check(content, path)
  if (gzip !== null) wire.secrets.check(gzip, path) // the gzip bytes are stored too, including the texts of their header
  return { status, meta, body: content, gzip }
}

/**
 * Does the same without keeping the content, which is passed to the reader that `open` creates; `open` gets the size
 * that is expected, bytes.
 */
export async function passDocument<R extends PieceReader>(
  wire: Wire,
  answer: OpenAnswer,
  headers: Record<string, string>,
  reading: BodyReading,
  open: (size: number) => R,
): Promise<PassedAnswer<R>> {
  const { meta } = answer
  const status = await expectDocument(wire, answer, headers, reading)
  if (status === 304) return { status, meta }
  const pass = isPlain(meta) ? passPlain : passGzip
  return { status, meta, ...(await pass(wire, answer, reading, open)) }
}

type Passed<R> = Pick<Extract<PassedAnswer<R>, { gzip: Buffer }>, 'reader' | 'gzip'>

async function passPlain<R extends PieceReader>(
  { secrets }: Wire,
  { body, meta }: OpenAnswer,
  reading: BodyReading,
  open: (size: number) => R,
): Promise<Passed<R>> {
  const reader = open(meta.length ?? 0)
  const search = secrets.stream(reading.path)
  const packer = createPacker()
  let total = 0
  await passAnswerBody(body, meta, reading, (chunk) => {
    if (total === 0) refuseHtml(chunk, reading.path)
    total += chunk.length
    search(chunk)
    reader.push(chunk)
    packer.push(chunk)
  })
  return { reader, gzip: packer.end() }
}

async function passGzip<R extends PieceReader>(
  { secrets }: Wire,
  { body, meta }: OpenAnswer,
  reading: BodyReading,
  open: (size: number) => R,
): Promise<Passed<R>> {
  const { path, maxBytes } = reading
  const raw = await readAnswerBody(body, meta, reading)
  const size = trailerSize(raw)
  const reader = open(Math.min(size ?? 0, maxBytes))
  const search = secrets.stream(path)
  let total = 0
  for await (const piece of decodedPieces(raw, meta, maxBytes, path)) {
    if (total === 0) refuseHtml(piece, path)
    search(piece)
    reader.push(piece)
    total += piece.length
  }
  secrets.check(raw, path)
  return { reader, gzip: size === total ? raw : await packedAgain(raw, meta, reading) }
}

/** Packs content as one member that was received as several, or with bytes behind it. */
async function packedAgain(raw: Buffer, meta: Meta, reading: BodyReading): Promise<Buffer> {
  const packer = createPacker()
  for await (const piece of decodedPieces(raw, meta, reading.maxBytes, reading.path)) packer.push(piece)
  return packer.end()
}

/** Returns the status of a response that has the document, or that confirms the stored one. Throws for any other. */
async function expectDocument(
  { now }: Wire,
  { status, meta, body }: OpenAnswer,
  headers: Record<string, string>,
  reading: BodyReading,
): Promise<200 | 206 | 304> {
  const { path } = reading
  if (status === 304) {
    await discardBody(body)
    if (isConditional(headers)) return status
    throw statusError(status, {}, path, now)
  }
  if (isWhole(status, headers, meta)) return status
  await readAnswerBody(body, meta, reading)
  const wait = meta.retryAfter === null ? {} : { 'retry-after': meta.retryAfter }
  throw statusError(status, wait, path, now)
}

/**
 * Returns whether the status is a complete response: a 206 only for a range request, or for a page of a list whose
 * `Content-Range` counts items and not bytes; and no other 2xx.
 */
function isWhole(
  status: number,
  headers: Record<string, string>,
  { contentRange }: Pick<Meta, 'contentRange'>,
): status is 200 | 206 {
  if (status !== 206) return status === 200
  return 'range' in headers || (contentRange !== null && !/^\s*bytes\b/i.test(contentRange))
}

/** Returns whether the request was conditional; otherwise a 304 is not a valid response. */
function isConditional(headers: Record<string, string>): boolean {
  return 'if-none-match' in headers || 'if-modified-since' in headers
}
