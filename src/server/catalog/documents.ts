import { originFields } from '../http/origin.ts'
import { formatHttpDate } from '../../base/time.ts'
import { MirrorError, messageOf } from '../../base/errors.ts'
import { damagedContent } from '../../store/database/faults.ts'
import { type CatalogDocument, CHUNK_BYTES, chunkContent } from '../../store/catalog/documents.ts'
import { PRIVATE_CACHING, type Exchange, sendFailed, entityTag } from '../http/response.ts'
import { checkConditions, choosePart, rangeStillApplies } from '../http/conditions.ts'
import { refuseStale } from '../snapshot/stale.ts'
import type { ServedSnapshot } from '../snapshot/served.ts'
import { chooseCoding } from '../http/request-headers.ts'
import type { SnapshotOrigin } from '../http/origin.ts'
import type { RouteCall } from '../access/private-route.ts'
import { writable } from '../../base/connections/responses.ts'

/** Path prefix of stored documents; a signed link opens one. */
export const DOCUMENT_PATH = '/-/documents/'

/** A document as an answer names it: its SHA-256, hex, and its media type there; absent: the one stored with it. */
export interface NamedDocument {
  readonly digest: string
  readonly type?: string
  /** Last-Modified of the answer that it is, Unix seconds; absent: that of the document. */
  readonly changed?: number
  /** Further header fields of the answer that it is, flat. */
  readonly more?: readonly string[]
}

/**
 * Sends a document: whole as stored gzip or inflated, or a part of it; one chunk is in memory at a time, however large it
 * is. It has the same media type however it is sent.
 */
export async function sendDocument(
  served: ServedSnapshot,
  call: RouteCall,
  { digest, type, changed = 0, more = [] }: NamedDocument,
  asOf?: string,
): Promise<void> {
  const { request, response, requestHeaders } = call
  const known = served.knownOrigin('catalog')
  if (known !== null) refuseStale(known)
  const stored = findDocument(served, digest)
  if (stored === null) {
    const message = 'the mirror no longer stores this document: request the path that returned this link again'
    return call.refuse({ status: 404, error: 'not_found', message })
  }
  const snapshot = served.originOf('catalog')
  const latest = Math.max(stored.changed, changed, snapshot.notBefore ?? 0)
  const document = { ...stored, type: type ?? stored.type, changed: latest }
  const origin = { ...snapshot, asOf: asOf ?? snapshot.asOf }
  const asked = request.method === 'GET' ? requestHeaders.range : undefined
  const coding = asked === undefined ? chooseCoding(requestHeaders.acceptEncoding) : 'identity'
  const tag = digest.slice(0, 32)
  const validators = {
    etag: entityTag(tag, coding),
    changed: document.changed,
    servedSince: snapshot.servedSince,
  }
  const result = checkConditions(requestHeaders, validators)
  if (result === 'failed') return sendFailed(request, response, origin)
  const head = [...headOf(document, validators.etag, origin), ...more]
  if (result === 'unchanged') {
    response.writeHead(304, head).end()
    return
  }
  if (coding === 'gzip') {
    head.push('Content-Encoding', 'gzip', 'Content-Length', String(document.stored))
    const begin = (): void => void response.writeHead(200, head)
    return pump(served, call, document, { shape: checkedChunk, begin, ...whole(document) })
  }
  return sendPlain(
    served,
    call,
    document,
    head,
    rangeStillApplies(requestHeaders.ifRange, validators) ? asked : undefined,
  )
}

/** A link may have been made from a later commit than the one served from here. */
function findDocument(served: ServedSnapshot, digest: string): CatalogDocument | null {
  const document = served.reads.catalog.readDocument(digest)
  if (document !== null) return document
  served.refresh()
  return served.reads.catalog.readDocument(digest)
}

async function sendPlain(
  served: ServedSnapshot,
  call: RouteCall,
  document: CatalogDocument,
  head: readonly string[],
  asked: string | undefined,
): Promise<void> {
  const part = choosePart(asked, document.size, 'document')
  if ('error' in part) return call.refuse(part)
  const begin = (): void => void call.response.writeHead(part.status, [...head, ...part.fields])
  const shape = (bytes: Buffer, number: number): Buffer => partOf(bytes, number, part)
  await pump(served, call, document, { shape, begin, ...part })
}

/** Returns a stored chunk as it is, once it is known to be sound. */
function checkedChunk(bytes: Buffer): Buffer {
  chunkContent(bytes)
  return bytes
}

function whole({ size }: CatalogDocument): { start: number; end: number } {
  return { start: 0, end: Math.max(0, size - 1) }
}

/** Returns what is made of a chunk; the error about one that is damaged names its document. */
function soundPiece(digest: string, make: () => Buffer): Buffer {
  try {
    return make()
  } catch (error) {
    throw damagedContent(`the stored document ${digest} is damaged (${messageOf(error)})`)
  }
}

function partOf(bytes: Buffer, number: number, { start, end }: { start: number; end: number }): Buffer {
  const base = number * CHUNK_BYTES
  return chunkContent(bytes).subarray(Math.max(0, start - base), Math.max(0, end - base + 1))
}

/** What is sent of a document: bytes `start` to `end` of its content, both included. */
interface SentPart {
  readonly start: number
  readonly end: number
  /** Makes of a stored chunk what is sent of it. Throws where it is damaged. */
  readonly shape: (bytes: Buffer, number: number) => Buffer
  /** Sends the head of the answer. */
  readonly begin: () => void
}

/**
 * Reads the next chunk only when the last one is on its way. The head is sent when the first chunk is known to be sound; the client
 * notices a damaged one behind it by the Content-Length.
 */
async function pump(
  { reads }: ServedSnapshot,
  { request, response }: Exchange,
  { digest }: CatalogDocument,
  { start, end, shape, begin }: SentPart,
): Promise<void> {
  const isHead = request.method === 'HEAD'
  const last = Math.floor(end / CHUNK_BYTES)
  if (isHead) begin()
  for (let number = Math.floor(start / CHUNK_BYTES); !isHead && number <= last; number++) {
    const bytes = reads.catalog.readChunk(digest, number)
    // A sync may have deleted it since the response began; the client notices by the Content-Length.
    if (bytes === null) throw new MirrorError('storage', `a chunk of document ${digest} is not there`)
    if (response.destroyed) return
    const piece = soundPiece(digest, () => shape(bytes, number))
    if (!response.headersSent) begin()
    if (!response.write(piece)) await writable(response)
  }
  if (!response.headersSent) begin() // of an empty document
  response.end()
}

function headOf({ type, changed }: CatalogDocument, etag: string, origin: SnapshotOrigin): string[] {
  return [
    'Content-Type',
    type,
    'ETag',
    etag,
    'Last-Modified',
    formatHttpDate(changed),
    'Cache-Control',
    PRIVATE_CACHING,
    'Vary',
    'Accept-Encoding',
    'Accept-Ranges',
    'bytes',
    'X-Content-Type-Options',
    'nosniff',
    // A document may be XML, which a browser runs scripts of: not with this mirror's origin, nor with anything to reach.
    'Content-Security-Policy',
    "sandbox; default-src 'none'",
    ...originFields(origin),
  ]
}
