import type { MirrorError } from '../../core/errors.ts'
import { type ReadPage, unwalkable } from './page.ts'

/** Limits of one list's walk; a longer list counts as endless. */
export interface WalkBounds {
  /** Milliseconds. */
  timeoutMs: number
  bytes: number
  pages: number
}

/** Maximum consecutive empty pages that still name a next one. */
const MAX_EMPTY = 3

/** Creates the guard that ends a walk without progress, or beyond a list's limits. */
export function createGuard(path: string, bounds: WalkBounds, now: () => number) {
  const seen = new Set<string>()
  const startedAt = now()
  let last: Buffer | null = null
  let empty = 0
  let bytes = 0
  const endless = (what: string, setting: string): MirrorError =>
    unwalkable(path, `it does not end after ${what} (${setting}), so none of it was stored`)
  return {
    begin(number: number): void {
      if (number >= bounds.pages) throw endless(`${bounds.pages} pages`, 'catalog.maxListPages')
      if (now() - startedAt > bounds.timeoutMs)
        throw endless(`${bounds.timeoutMs} ms`, 'catalog.listTimeoutMs')
    },
    page({ items, sha256 }: ReadPage, size: number, next: string | null): void {
      bytes += size
      if (bytes > bounds.bytes) throw endless(`${bounds.bytes} bytes`, 'catalog.maxListBytes')
      empty = items.length === 0 && next !== null ? empty + 1 : 0
      if (empty === MAX_EMPTY)
        throw unwalkable(path, `${MAX_EMPTY} empty pages in a row, and more to come`)
      if (last?.equals(sha256) === true && next !== null)
        throw unwalkable(path, `page ${seen.size + 1} repeats the one before it`)
      last = sha256
    },
    goTo(next: string, number: number): void {
      if (seen.has(next))
        throw unwalkable(path, `the cursor of page ${number + 1} leads back to an earlier page`)
      seen.add(next)
    },
  }
}
