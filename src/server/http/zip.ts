import { originFields } from './origin.ts'
import { formatHttpDate } from '../../base/time.ts'
import { googHash } from '../../archive/zip/crc32c.ts'
import { type Exchange, sendFailed, cacheFields, entityTag, PUBLIC_CACHING } from './response.ts'
import type { OpenArchive } from './send-file.ts'
import { checkConditions, choosePart, rangeStillApplies } from './conditions.ts'
import type { Coding } from './request-headers.ts'
import type { SnapshotOrigin } from './origin.ts'
import { sendProblem } from './problems.ts'

/** How a file is sent. */
interface FileManner {
  readonly origin: SnapshotOrigin
  readonly cacheControl: string
  readonly type: string
  /** Of the file's content, as it is without a coding. */
  readonly sha256: string
  readonly crc32c: number
  /** The coding that the file is in; null: the file exists in no other. */
  readonly coding: Coding | null
  /** More header fields, as a flat list. */
  readonly more: readonly string[]
}

/** Answers a request for an archive; never with a Content-Encoding. `more`: further header fields, flat. */
export function sendArchive(
  exchange: Exchange,
  archive: OpenArchive,
  origin: SnapshotOrigin,
  more: readonly string[],
): Promise<void> {
  const { sha256, crc32c } = archive.info
  const manner = { origin, cacheControl: PUBLIC_CACHING, sha256, crc32c, type: 'application/zip', more }
  return sendFile(exchange, archive, { ...manner, coding: null })
}

/**
 * Answers a request for a file: 200, 206, 304, 412 or 416, with its true length and `x-goog-hash` on HEAD as well:
 * clients decide by them whether to download at all.
 */
export async function sendFile(
  { request, response, requestHeaders }: Exchange,
  file: OpenArchive,
  manner: FileManner,
): Promise<void> {
  const { size } = file.info
  const { origin, coding } = manner
  const changed = Math.max(file.info.changed, origin.notBefore ?? 0)
  const tag = manner.sha256.slice(0, 32)
  const validators = { etag: entityTag(tag, coding), changed, servedSince: origin.servedSince }
  const result = checkConditions(requestHeaders, validators)
  if (result === 'failed') return sendFailed(request, response, origin)
  const head = headOf(manner, validators)
  if (result === 'unchanged') {
    response.writeHead(304, head).end()
    return
  }
  const asked = request.method === 'GET' && rangeStillApplies(requestHeaders.ifRange, validators)
  const part = choosePart(asked ? requestHeaders.range : undefined, size, coding === null ? 'archive' : 'file')
  if ('error' in part) return sendProblem(request, response, { ...part, origin })
  head.push('Content-Type', manner.type, ...part.fields)
  if (coding === 'gzip') head.push('Content-Encoding', 'gzip')
  response.writeHead(part.status, head)
  if (request.method === 'HEAD') response.end()
  else await file.send(response, part.start, part.end)
}

function headOf(manner: FileManner, validators: { etag: string; changed: number }): string[] {
  const { origin, cacheControl, crc32c, coding, more } = manner
  return [
    'ETag',
    validators.etag,
    'Last-Modified',
    formatHttpDate(validators.changed),
    ...cacheFields(cacheControl),
    'Accept-Ranges',
    'bytes',
    'x-goog-hash',
    googHash(crc32c),
    ...originFields(origin),
    ...(coding === null ? [] : ['Vary', 'Accept-Encoding']),
    ...more,
  ]
}
