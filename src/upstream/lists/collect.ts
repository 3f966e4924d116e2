import { parseExactly } from '../../base/json/objects.ts'
import { counted } from '../../base/text.ts'
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
  const known = new Set<string>()
  let moved = 0
  const sink = {
    begin(): void {
      pages.length = 0
      known.clear()
      moved = 0
    },
    page(page: WalkedPage): boolean {
      const items = page.items.map((item) => item.toString('latin1'))
      const again = items.filter((item) => known.has(item)).length
      if (again > 0 && again === items.length) return false
      for (const item of items) known.add(item)
      moved += again
      pages.push(page)
      return true
    },
    kept: (): void => undefined,
  }
  const learned = { items: null, onward: null, cursorPath: null, cut: null }
  const unknown = { ...learned, probed: UNPROBED, graded: false, endInPage: false, statesNothing: null }
  const walk = {
    limit: PAGE_SIZE,
    bounds: BOUNDS,
    known: unknown,
    now: () => performance.now(),
    stored: () => null,
    idOf,
  }
  const { cut: found, grade, asOf, total, statesNothing } = await walkList(session, path, { ...options, ...walk }, sink)
  const count = pages.reduce((sum, { items }) => sum + items.length, 0)
  const cut =
    found ??
    whyShort({ total: statesNothing === true ? null : total, count, moved }) ??
    (isPageLong(count) && grade?.grade === 'unproved' ? grade.why : null)
  return { pages, cut, asOf }
}

/** Returns why pages that were read may lack items: they are fewer than upstream counts, or some moved to another page meanwhile. */
function whyShort({ total, count, moved }: { total: number | null; count: number; moved: number }): string | null {
  if (moved > 0)
    return `${counted(moved, 'item')} of a page ${moved === 1 ? 'is' : 'are'} on an earlier one too: it changed meanwhile`
  return total === null || total <= count
    ? null
    : `upstream counts ${counted(total, 'item')}, but its pages contain ${count}`
}

/** Lists that are collected are probed for a usual page size only. */
const UNPROBED = { items: -1, limitKept: null, otherPages: null }

/** Returns whether a list is as long as the contract's pages: by default, or at most (service API, section 4). */
export function isPageLong(count: number): boolean {
  return count === 100 || count === PAGE_SIZE
}

function idOf(item: Buffer): string | null {
  const { id } = (parseExactly(item.toString('utf8')) ?? {}) as { id?: unknown }
  return typeof id === 'string' || typeof id === 'number' ? String(id) : null
}
