import { MirrorError } from '../../../base/errors.ts'
import { canonicalPath } from '../../../base/domain/path-templates.ts'
import type { Frame } from '../../../base/json/envelope.ts'
import { type Fields, fieldsOf } from '../../../base/json/objects.ts'
import { elementsOf, locate, sliceText, valueAt } from '../../../base/json/slices.ts'
import { describeIncomplete } from '../../../store/catalog/completeness.ts'
import type { Reads } from '../../../store/reads.ts'
import type { ReadReply } from '../../../server/reading/request.ts'

/** A page of a list, taken out of upstream's envelope. */
export interface ListPage {
  readonly items: readonly Fields[]
  /** Returns the items as upstream wrote them: a number keeps all its digits. */
  readonly texts: () => string[]
  /** Cursor of the next page, for `after`; null on the last one. */
  readonly next: string | null
  /** Items that fit the filter; null: unknown. */
  readonly total: number | null
  /** Why items may be missing; null: it is whole by all evidence. */
  readonly incomplete: string | null
}

/**
 * Parses the answer of a list as a client of the API does, so filters and cursors mean the same. `path`: as it was asked for.
 * Throws `not_ready`.
 */
export function parseListPage({ catalog }: Pick<Reads, 'catalog'>, path: string, reply: ReadReply): ListPage {
  const list = catalog.readList(canonicalPath(path) ?? path)
  if (!('body' in reply) || reply.body === null || list === null)
    throw new MirrorError('not_ready', `${path} is not mirrored yet`)
  const frame = JSON.parse(list.frame) as Frame
  const body = Buffer.from(reply.body)
  const page: unknown = JSON.parse(body.toString('utf8'))
  const items = valueAt(page, frame.items)
  const total = frame.total === null ? null : valueAt(page, frame.total)
  return {
    items: Array.isArray(items) ? items.map(fieldsOf) : [],
    texts: () => (Array.isArray(items) ? textsAt(body, frame) : []),
    next: cursorOf(cursorIn(frame, page), reply.headers),
    total: typeof total === 'number' ? total : null,
    incomplete: describeIncomplete(catalog.whyIncomplete(list.path)),
  }
}

function textsAt(body: Buffer, { items }: Frame): string[] {
  const at = locate(body, items)?.start ?? 0
  return [...elementsOf(body, at)].map((slice) => sliceText(body, slice))
}

function cursorIn({ cursor, link }: Frame, page: unknown): unknown {
  if (cursor === null) return null
  const value = valueAt(page, cursor)
  return link === null ? value : fieldsOf(value)[link]
}

/** Returns the cursor of the next page, from the page or its Link header; both may have it within a URL. */
function cursorOf(value: unknown, headers: readonly string[]): string | null {
  const linked = headers.includes('Link') ? (headers[headers.indexOf('Link') + 1] ?? '') : ''
  const text = typeof value === 'string' && value !== '' ? value : linked
  if (text === '') return null
  const [, within] = /[?&]after=([^&>]+)/.exec(text) ?? []
  return within === undefined ? text : decodeURIComponent(within)
}
