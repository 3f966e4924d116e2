import type { Frame } from '../../../json/envelope.ts'
import { valueAt } from '../../../json/slices.ts'
import type { WalkEnd } from '../../../upstream/lists/walk.ts'
import { isUsualSize } from '../../../upstream/lists/trail.ts'
import type { Walk } from './staging.ts'

/** Whether a list that came as one page may be a part: the service cuts its lists without a word, and its size is usual for that. */
export function mayBePart(walk: Walk, end: WalkEnd, frame: Frame): boolean {
  return frame.onward?.silent === true && end.cut === null && isUsualSize(walk.met)
}

/** The frame with why the list may not be whole, by how its walk ended. */
export function judged(frame: Frame, walk: Walk, end: WalkEnd): Frame {
  const { partial: _partial, cut: _cut, skipped: _skipped, ...plain } = frame
  const { skipped } = walk
  const reasons = [end.cut, skippedOf(walk), end.cut === null ? unlikeTotal(walk, end) : null]
  const told = reasons.filter((reason) => reason !== null)
  return {
    ...plain,
    ...(told.length > 0 && { partial: told.join('; ').slice(0, 1000) }),
    ...(end.cut !== null && { cut: true }),
    ...(skipped.length > 0 && { skipped: skipped.slice(0, 100) }),
  }
}

function skippedOf({ skipped }: Walk): string | null {
  const [first] = skipped
  const count = skipped.reduce((sum, one) => sum + one.count, 0)
  return first === undefined
    ? null
    : `${count} of its items could not be taken, such as ${first.why}`
}

/** How upstream's count of the items differs from what its pages hold; null when it does not, or there is none. */
export function unlikeTotal(walk: Walk, end: WalkEnd): string | null {
  const total = totalOf(walk, end)
  const found = walk.skipped.reduce((sum, { count }) => sum + count, walk.met)
  return total === null || total === found
    ? null
    : `upstream counts ${total} items, and its pages hold ${found}`
}

/** Whether there are more items than upstream counts: then none can be missing. */
export function isOverfull(walk: Walk, end: WalkEnd): boolean {
  const total = totalOf(walk, end)
  return end.cut === null && walk.skipped.length === 0 && total !== null && total < walk.met
}

/** How many items the list has by upstream's own word: on the last page, else, where that is as it was, on the first. */
function totalOf({ frame }: Walk, end: WalkEnd): number | null {
  const total = frame === null || frame.total === null ? null : valueAt(frame.envelope, frame.total)
  const isTold = typeof total === 'number' && frame?.estimated !== true
  return end.total ?? (isTold ? total : null)
}
