import { MirrorError } from '../base/errors.ts'
import { counted } from '../base/text.ts'
import { walkList } from './lists/walk.ts'
import { type Session, pathAsked } from './http/session.ts'
import { jsonTextOf } from '../base/json/objects.ts'

/** The contract's maximum page size, and the limits of a list in memory. */
const PAGE_SIZE = 1000
const BOUNDS = { timeoutMs: 600_000, bytes: 1_000_000_000, pages: 10_000 }

/**
 * Fetches all items of a list into memory, for commands. Throws `upstream_shape` when a page is not a list, the pages
 * form a cycle, or the list is incomplete.
 */
export async function fetchList(session: Session, path: string, maxBytes: number): Promise<unknown[]> {
  const items: unknown[] = []
  const sink = {
    begin: (): void => void (items.length = 0),
    page: ({ shape }: { shape: { items: readonly unknown[] } }): boolean => {
      items.push(...shape.items)
      return true
    },
    kept: (): void => undefined,
  }
  const known = { onward: null, cursorPath: null, cut: null, probed: UNPROBED, graded: false }
  const options = {
    limit: PAGE_SIZE,
    maxBytes,
    bounds: BOUNDS,
    known,
    now: () => performance.now(),
  }
  const reads = { stored: () => null, refuse: () => null, idOf }
  const { cut: found, grade } = await walkList(session, path, { ...options, ...reads }, sink)
  const cut = found ?? (isFull(items.length) && grade?.grade === 'unproved' ? grade.why : null)
  if (cut === null) return items
  const message = `${pathAsked(session, path)}: only ${counted(items.length, 'item')} of the list could be read: ${cut}`
  throw new MirrorError('upstream_shape', message)
}

/** Commands probe lists of a usual page size only. */
const UNPROBED = { items: -1, limitKept: null, otherPages: null }

/** Returns whether a list is as long as the contract's pages: by default, or at most (service API, section 4). */
function isFull(count: number): boolean {
  return count === 100 || count === PAGE_SIZE
}

function idOf(item: Buffer): string | null {
  const { id } = (JSON.parse(item.toString('utf8')) ?? {}) as { id?: unknown }
  return typeof id === 'string' || typeof id === 'number' ? String(id) : null
}

/** Fetches a JSON response to a GET. Throws `upstream_shape` when it is not JSON. */
export async function fetchJson(session: Session, path: string, maxBytes: number): Promise<unknown> {
  const { body } = await session.request({ method: 'GET', path, maxBytes })
  return parseJson(pathAsked(session, path), body)
}

/** Parses a body; null for an empty one (204). Throws `upstream_shape` when it is not JSON. */
export function parseJson(path: string, body: Buffer): unknown {
  if (body.length === 0) return null
  try {
    return JSON.parse(jsonTextOf(body)) as unknown
  } catch (error) {
    throw new MirrorError('upstream_shape', `${path}: the answer is not JSON`, { cause: error })
  }
}
