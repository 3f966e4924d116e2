import type { MirrorError } from '../../base/errors.ts'
import { type ReadPage, unwalkable } from './page.ts'

/** Limits of one list's walk; a longer list counts as endless. */
export interface WalkBounds {
  /** Milliseconds. */
  timeoutMs: number
  bytes: number
  pages: number
}

/** Limits the consecutive empty pages that still name a next one. */
export const MAX_EMPTY = 3

/** Notes the progress of a walk, and ends one without any, or beyond a list's limits. */
export function createProgress(path: string, bounds: WalkBounds, now: () => number) {
  const seen = new Set<string>()
  const startedAt = now()
  let last: Buffer | null = null
  let empty = 0
  let bytes = 0
  const endless = (what: string): MirrorError =>
    unwalkable(path, `it does not end after ${what}, so none of it was stored`)
  return {
    begin(number: number): void {
      if (number >= bounds.pages)
        throw endless(`${bounds.pages} pages; ask the service to end it, or to give larger pages`)
      if (now() - startedAt > bounds.timeoutMs)
        throw endless(`${bounds.timeoutMs} ms; ask the service to answer sooner, or to give larger pages`)
    },
    /** Counts a page. Throws where the list is larger than its limit. */
    page({ items, sha256 }: ReadPage, size: number): void {
      bytes += size
      if (bytes > bounds.bytes) throw endless(`${bounds.bytes} bytes (upstream.maxBytes, list)`)
      empty = items.length === 0 ? empty + 1 : 0
      last = sha256
    },
    /** Records a page that equals the stored one. */
    kept(sha256: Buffer | null): void {
      last = sha256
    },
    /** Returns whether a page with items is the one before it again. */
    repeats: ({ items, sha256 }: ReadPage): boolean => items.length > 0 && last?.equals(sha256) === true,
    /** Returns whether the last pages were all empty. */
    isEmptyAgain: ({ items }: ReadPage): boolean => items.length === 0 && empty >= MAX_EMPTY,
    /** Returns whether the walk has requested a page already. */
    isAsked: (next: string): boolean => seen.has(next),
    goTo(next: string): void {
      seen.add(next)
    },
  }
}
