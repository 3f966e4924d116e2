import { MirrorError, messageOf } from '../errors.ts'
import type { Session } from './session.ts'
import { learnList } from './shape.ts'

const PAGE_SIZE = 1000 // the contract's maximum
const MAX_PAGES = 10_000

/**
 * All items of a list, its pages walked by what they say of the next one. For people who look: everything is kept
 * in memory. Throws `upstream_shape` when a page is no list, or the pages go in a circle.
 */
export async function fetchList(
  session: Session,
  path: string,
  maxBytes: number,
): Promise<unknown[]> {
  const items: unknown[] = []
  const asked = new Set<string>()
  for (let after: string | null = null; ;) {
    const query = new URLSearchParams({ limit: String(PAGE_SIZE), ...(after && { after }) })
    const page = await fetchJson(session, `${path}?${query.toString()}`, maxBytes)
    const { items: more, next } = learn(path, page)
    items.push(...more)
    if (next === null) return items
    if (asked.has(next) || asked.size === MAX_PAGES) {
      throw new MirrorError('upstream_shape', `${path}: the pages of the list never end`)
    }
    asked.add(next)
    after = next
  }
}

function learn(path: string, page: unknown): ReturnType<typeof learnList> {
  try {
    return learnList(page)
  } catch (error) {
    throw new MirrorError('upstream_shape', `${path}: ${messageOf(error)}`, { cause: error })
  }
}

/** A JSON answer to a GET. Throws `upstream_shape` when it is not JSON. */
export async function fetchJson(
  session: Session,
  path: string,
  maxBytes: number,
): Promise<unknown> {
  const { body } = await session.request({ method: 'GET', path, maxBytes })
  return parseJson(path, body)
}

/** What a body says; null for none (204). Throws `upstream_shape` when it is not JSON. */
export function parseJson(path: string, body: Buffer): unknown {
  if (body.length === 0) return null
  try {
    return JSON.parse(body.toString()) as unknown
  } catch (error) {
    throw new MirrorError('upstream_shape', `${path}: the answer is not JSON`, { cause: error })
  }
}
