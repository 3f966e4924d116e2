import { requestedPath } from '../../api/catalog/not-found.ts'
import { MirrorError } from '../../core/errors.ts'
import type { Frame } from '../../json/envelope.ts'
import { type Fields, fieldsOf } from '../../json/objects.ts'
import type { PageCall } from '../page.ts'

/** A page of one of the service's lists. */
interface ListPage {
  readonly items: readonly Fields[]
  /** Cursor of the next page; null on the last. */
  readonly next: string | null
  readonly total: number | null
}

/** Items on a page. */
const PAGE = 50

/**
 * Reads a page of a list as the API gives it to programs, so filters and cursors mean the same here. `path` is the
 * route as declared. Throws `not_found` or `not_ready` with the API's reason.
 */
export function readListPage(
  { readApi, reads }: PageCall,
  path: string,
  params: Readonly<Record<string, string>>,
  wanted: URLSearchParams,
  after: string,
): ListPage {
  const query = new URLSearchParams(wanted)
  query.set('limit', String(PAGE))
  if (after !== '') query.set('after', after)
  const reply = readApi(path, { params, query })
  if ('problem' in reply) {
    const { status, message } = reply.problem
    throw new MirrorError(status === 404 ? 'not_found' : 'not_ready', message)
  }
  const list = reads.catalog.readList(requestedPath(path, params))
  if (!('body' in reply) || reply.body === null || list === null)
    throw new MirrorError('not_ready', `${path} is not mirrored yet`)
  const frame = JSON.parse(list.frame) as Frame
  const page: unknown = JSON.parse(Buffer.from(reply.body).toString('utf8'))
  const items = at(page, frame.items)
  const total = frame.total === null ? null : at(page, frame.total)
  return {
    items: Array.isArray(items) ? items.map(fieldsOf) : [],
    next: cursorOf(frame.cursor === null ? null : at(page, frame.cursor), reply.headers),
    total: typeof total === 'number' ? total : null,
  }
}

function at(value: unknown, path: NonNullable<Frame['cursor']>): unknown {
  return path.reduce<unknown>((within, key) => fieldsOf(within)[key], value)
}

/** Returns the cursor of the next page, from the page or its Link header; both may have it within a URL. */
function cursorOf(value: unknown, headers: readonly string[]): string | null {
  const linked = headers[headers.indexOf('Link') + 1] ?? ''
  const text =
    typeof value === 'string' && value !== '' ? value : headers.includes('Link') ? linked : ''
  if (text === '') return null
  const [, within] = /[?&]after=([^&>]+)/.exec(text) ?? []
  return within === undefined ? text : decodeURIComponent(within)
}
