import { counted, nounOf } from '../../../core/text.ts'
import type { Frame } from '../../../json/envelope.ts'
import type { WalkEnd } from '../../../upstream/lists/walk.ts'
import { isUsualSize } from '../../../upstream/lists/trail.ts'
import { type Walk, frameTotal } from './staging.ts'

/**
 * Returns whether a list of one page may be incomplete: the service can truncate lists without an indication, and the
 * number of items is a usual page size.
 */
export function mayBePart(walk: Walk, end: WalkEnd, frame: Frame): boolean {
  return frame.onward?.silent === true && end.cut === null && isUsualSize(walk.itemCount)
}

/** Returns the frame with the reasons why the list may be incomplete, by how its walk ended. */
export function markCompleteness(frame: Frame, walk: Walk, end: WalkEnd): Frame {
  const { partial: _partial, cut: _cut, skipped: _skipped, ...plain } = frame
  const { skipped } = walk
  const reasons = [end.cut, skippedOf(walk), end.cut === null ? contradictionOf(walk, end) : null]
  const known = reasons.filter((reason) => reason !== null)
  return {
    ...plain,
    ...(known.length > 0 && { partial: known.join('; ').slice(0, 1000) }),
    ...(end.cut !== null && { cut: true }),
    ...(skipped.length > 0 && { skipped: skipped.slice(0, 100) }),
  }
}

function skippedOf({ skipped }: Walk): string | null {
  const [first] = skipped
  const count = skipped.reduce((sum, one) => sum + one.count, 0)
  return first === undefined
    ? null
    : `${count} of its items ${nounOf(count, 'was', 'were')} skipped, the first: ${first.why}`
}

/** Returns how the pages of a walk contradict each other, the walk before it, or upstream's count; null: they do not. */
function contradictionOf(walk: Walk, end: WalkEnd): string | null {
  if (walk.totals.size > 1) {
    const totals = [...walk.totals].join(' and ')
    return `it changes while its pages are read: they count ${totals} items`
  }
  if (walk.unsteady) return 'it changes while its pages are read: each reading lacks other items'
  return totalMismatch(walk, end)
}

/** Returns whether a list changed while its pages were read, so that an item may have moved to a page already read. */
export function isMoving({ totals, unsteady }: Walk): boolean {
  return totals.size > 1 || unsteady
}

/** Returns how upstream's count differs from the items on its pages; null when it does not, or upstream sends none. */
export function totalMismatch(walk: Walk, end: WalkEnd): string | null {
  const total = totalOf(walk, end)
  const found = walk.skipped.reduce((sum, { count }) => sum + count, walk.itemCount)
  return total === null || total === found
    ? null
    : `upstream counts ${counted(total, 'item')}, but its pages contain ${found}`
}

/** Returns whether the pages have more items than upstream counts; then none is missing. */
export function exceedsTotal(walk: Walk, end: WalkEnd): boolean {
  const total = totalOf(walk, end)
  if (isMoving(walk)) return false
  return end.cut === null && walk.skipped.length === 0 && total !== null && total < walk.itemCount
}

/** Returns upstream's count of the items: from the last page, or, where that page is unchanged, from the first. */
function totalOf({ frame }: Walk, end: WalkEnd): number | null {
  return end.total ?? (frame === null ? null : frameTotal(frame))
}
