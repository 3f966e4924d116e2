import { parseExactly } from '../../base/json/objects.ts'
import type { Reading } from './page.ts'
import { type ListSession, type WalkOptions, type WalkedPage, walkList } from './walk.ts'

/** The pages of a list, in order, and upstream's date of the last one. */
interface CollectedList {
  readonly pages: readonly WalkedPage[]
  /** Why the list may be incomplete; null: nothing speaks of more. */
  readonly cut: string | null
  readonly asOf: number
}

/** The contract's maximum page size, and the limits of a list in memory. */
const PAGE_SIZE = 1000
const BOUNDS = { timeoutMs: 600_000, bytes: 1_000_000_000, pages: 10_000 }

/** Collects the pages of a list in memory. Throws `upstream_shape` when a page is not a list, or the pages form a cycle. */
export async function collectList(
  session: ListSession,
  path: string,
  options: Pick<WalkOptions, 'maxBytes'> & Reading,
): Promise<CollectedList> {
  const pages: WalkedPage[] = []
  const sink = {
    begin: (): void => void (pages.length = 0),
    page: (page: WalkedPage): boolean => {
      pages.push(page)
      return true
    },
    kept: (): void => undefined,
  }
  const learned = { items: null, onward: null, cursorPath: null, cut: null }
  const known = { ...learned, probed: UNPROBED, graded: false, endInPage: false, statesNothing: null }
  const walk = { limit: PAGE_SIZE, bounds: BOUNDS, known, now: () => performance.now(), stored: () => null, idOf }
  const { cut: found, grade, asOf } = await walkList(session, path, { ...options, ...walk }, sink)
  const count = pages.reduce((sum, { items }) => sum + items.length, 0)
  const cut = found ?? (isFull(count) && grade?.grade === 'unproved' ? grade.why : null)
  return { pages, cut, asOf }
}

/** Lists that are collected are probed for a usual page size only. */
const UNPROBED = { items: -1, limitKept: null, otherPages: null }

/** Returns whether a list is as long as the contract's pages: by default, or at most (service API, section 4). */
function isFull(count: number): boolean {
  return count === 100 || count === PAGE_SIZE
}

function idOf(item: Buffer): string | null {
  const { id } = (parseExactly(item.toString('utf8')) ?? {}) as { id?: unknown }
  return typeof id === 'string' || typeof id === 'number' ? String(id) : null
}
