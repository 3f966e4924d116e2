import type { ArchiveInfo } from '../store/osv.ts'
import { googHash } from '../zip/crc32c.ts'
import { type Exchange, sendFailed } from './answer.ts'
import type { OpenArchive } from './archive.ts'
import { checkConditions, formatHttpDate, rangeStillApplies } from './conditional.ts'
import type { Origin } from './origin.ts'
import { sendProblem } from './problem.ts'
import { parseRange } from './range.ts'

/**
 * Answers a request for the archive: 200, 206, 304, 412 or 416. Never with a Content-Encoding, and with its
 * true length and `x-goog-hash` on HEAD as well: clients decide by them whether to download at all.
 */
export async function sendArchive(
  { request, response, wishes }: Exchange,
  archive: OpenArchive,
  origin: Origin,
  cacheControl: string,
): Promise<void> {
  const { info } = archive
  const held = { etag: `"${info.sha256.slice(0, 32)}"`, changed: info.changed }
  const verdict = checkConditions(wishes, held)
  if (verdict === 'failed') return sendFailed(request, response, origin)
  const head = headOf(info, held.etag, origin, cacheControl)
  if (verdict === 'unchanged') {
    response.writeHead(304, head).end()
    return
  }
  const asked = request.method === 'GET' && rangeStillApplies(wishes.ifRange, held)
  const range = asked ? parseRange(wishes.range, info.size) : 'whole'
  if (range === 'unsatisfiable') {
    const message = `the archive has ${info.size} bytes`
    const headers = { 'Content-Range': `bytes */${info.size}`, 'Accept-Ranges': 'bytes' }
    const problem = { status: 416, error: 'range_not_satisfiable', message, headers, origin }
    return sendProblem(request, response, problem)
  }
  const part = range === 'whole' ? { start: 0, end: info.size - 1 } : range
  head.push('Content-Type', 'application/zip', 'Content-Length', String(part.end - part.start + 1))
  if (range !== 'whole') head.push('Content-Range', `bytes ${part.start}-${part.end}/${info.size}`)
  response.writeHead(range === 'whole' ? 200 : 206, head)
  if (request.method === 'HEAD') response.end()
  else await archive.send(response, part.start, part.end)
}

function headOf(info: ArchiveInfo, etag: string, origin: Origin, cacheControl: string): string[] {
  return [
    'ETag',
    etag,
    'Last-Modified',
    formatHttpDate(info.changed),
    'Cache-Control',
    cacheControl,
    'Accept-Ranges',
    'bytes',
    'x-goog-hash',
    googHash(info.crc32c),
    'X-Mirror-Snapshot',
    origin.snapshot,
    'X-Mirror-As-Of',
    origin.asOf,
  ]
}
