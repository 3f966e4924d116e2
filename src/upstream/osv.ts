import { MirrorError } from '../base/errors.ts'
import { OSV_ARCHIVE, OSV_INDEX, osvRecordPath } from '../base/domain/feed-paths.ts'
import { type Meta, type RequestPlace, type Validators, isPlain, parseContentRange } from './http/response.ts'
import { type PassedAnswer, type PieceReader, confirmsAnother } from './http/document.ts'
import { atRoot } from './feeds.ts'
import type { Session } from './http/session.ts'

/** Fetches the index, `[{id, modified}]`, conditionally on the stored validators; passes its bytes in pieces to the reader that `open` creates. */
export function passIndex<R extends PieceReader>(
  session: Session,
  stored: Validators | null,
  maxBytes: number,
  open: (size: number) => R,
): Promise<PassedAnswer<R>> {
  const options = { maxBytes, stored, gzip: true }
  return atRoot(session, session.passDocument(OSV_INDEX, options, open))
}

/** Fetches one record's exact bytes and metadata. Throws `upstream_not_found` for an unknown id. */
export async function fetchRecord(
  session: Session,
  id: string,
  maxBytes: number,
): Promise<{ body: Buffer; meta: Meta }> {
  const answer = await session.fetchDocument(osvRecordPath(id), { maxBytes })
  if (answer.status === 200) return answer
  throw new MirrorError('upstream_status', `${osvRecordPath(id)}: upstream answered ${answer.status}`)
}

/** A range of the archive: its position, its validators, and the archive's total size. */
interface RangeAnswer {
  body: Buffer
  start: number
  total: number
  meta: Meta
}

/** `unchanged`: the archive is the stored one; `unavailable`: ranges are not supported, or the archive changed. */
type RangeOutcome = RangeAnswer | 'unchanged' | 'unavailable'

/**
 * Requests a range of the archive: `{ suffix }` bytes from its end, or `{ from, length }`. `ifRange` and `known` are
 * validators to send: `known` those of the stored archive, its date only where it has no ETag. Any response but exactly
 * the requested range is `unavailable`.
 */
export async function fetchArchiveRange(
  session: Session,
  range: Range,
  validators: { ifRange?: string | null; known?: Validators | null },
  timeoutMs: number,
): Promise<RangeOutcome> {
  const wanted = 'suffix' in range ? `-${range.suffix}` : `${range.from}-${range.from + range.length - 1}`
  const headers: Record<string, string> = {
    accept: '*/*',
    'accept-encoding': 'identity',
    range: `bytes=${wanted}`,
  }
  if (validators.ifRange) headers['if-range'] = validators.ifRange
  const known = validators.known ?? null
  if (known?.etag) headers['if-none-match'] = known.etag
  else if (known?.lastModified) headers['if-modified-since'] = known.lastModified
  const isConditional = Boolean(known?.etag ?? known?.lastModified)
  return session.retrying(async () => {
    const answer = await session.openBody(OSV_ARCHIVE, headers, AbortSignal.timeout(timeoutMs))
    const plain = answer.status === 206 && isPlain(answer.meta)
    const place = plain ? parseContentRange(answer.meta.contentRange) : null
    if (place === null || !matches(place, range)) {
      answer.body.destroy()
      const isConfirmed = answer.status === 304 && isConditional && !confirmsAnother(headers, answer)
      return isConfirmed ? 'unchanged' : 'unavailable'
    }
    const body = await collect(session, answer.body, place.end - place.start + 1)
    return { body, start: place.start, total: place.total, meta: answer.meta }
  })
}

type Range = { suffix: number } | { from: number; length: number }

function matches(place: RequestPlace, range: Range): boolean {
  if ('suffix' in range) {
    return place.end === place.total - 1 && place.start === Math.max(0, place.total - range.suffix)
  }
  return place.start === range.from && place.end === range.from + range.length - 1
}

async function collect(session: Session, body: AsyncIterable<Buffer>, length: number): Promise<Buffer> {
  const part = Buffer.allocUnsafe(length)
  let filled = 0
  try {
    for await (const chunk of body) {
      session.countBytes(chunk.length)
      if (filled + chunk.length > length) break
      chunk.copy(part, filled)
      filled += chunk.length
    }
  } catch (error) {
    throw new MirrorError('upstream_unreachable', `${OSV_ARCHIVE}: the range broke off`, {
      cause: error,
    })
  }
  if (filled === length) return part
  throw new MirrorError('upstream_unreachable', `${OSV_ARCHIVE}: the range is not as long as announced`)
}
