import { counted, nounOf } from '../../../base/text.ts'
import type { Frame } from '../../../base/json/envelope.ts'
import { type Grade, gradeOf, isUsualSize } from '../../../upstream/lists/evidence.ts'
import type { Probed } from '../../../upstream/lists/page.ts'
import type { WalkEnd } from '../../../upstream/lists/walk.ts'
import { type Walk, frameTotal } from './staging.ts'

/** On what the completeness of a list rests, as it is stored with the list. */
export interface ListEvidence {
  grade: Grade
  why: string
  /** What probes showed; null: none were sent, or they were not answered. */
  probed: Probed | null
  /** Whether the last page itself shows the end, so that an unchanged one does; absent: not known. */
  endInPage?: boolean
  /** Whether what its pages state of an end, or a total, says nothing; absent: not known. */
  statesNothing?: boolean | null
  /** The digest of the stored items that it lacked when it was last walked, and that were kept; absent: none were. */
  lacked?: string
  /** When all its pages were last read, and not only confirmed by their ETags, Unix milliseconds; absent: not known. */
  readAt?: number
}

/** Returns the stored evidence of a list; null when it was never judged. */
export function parseEvidence(text: string | null): ListEvidence | null {
  return text === null ? null : (JSON.parse(text) as ListEvidence)
}

/** What is stored of a list. */
interface Before {
  /** Number of its items, if they were on several pages, or some were kept that its page did not have; otherwise 0. */
  entries: number
  isPaged: boolean
  /** Number of its items that the walk did not find. */
  lost: number
}

/**
 * Returns the evidence of a walked list: by its walk, or the stored one where the end of the list is unchanged. Where the end is not
 * proved, the service may have stopped to give more than the first page, and what a page of a usual size lacks may be behind it.
 */
export function evidenceOf(
  walk: Walk,
  end: WalkEnd,
  stored: ListEvidence | null,
  { entries, isPaged, lost }: Before,
): ListEvidence {
  const doubt = doubtOf(walk, end)
  const { probed, endInPage, statesNothing } = end
  const more = { probed, endInPage, statesNothing }
  if (doubt !== null) return { grade: 'cut', why: doubt.slice(0, 1000), ...more }
  if (end.seen === null) return stored ?? { grade: 'unproved', why: 'its end was not seen', ...more }
  const items = foundIn(walk)
  const { grade, why } = gradeOf({ ...end.seen, items })
  if (grade !== 'unproved') return { grade, why, ...more }
  const mayBeBehind = items < entries || (lost > 0 && isUsualSize(items))
  if (!mayBeBehind) return { grade, why, ...more }
  const missing = `${counted(lost, 'stored item is', 'stored items are')} not in it, and may be behind its last page`
  const because = isPaged ? `it had ${entries} items on several pages` : missing
  return { grade: 'cut', why: `${why}; ${because}`, ...more }
}

/** What the service does not lose at once, however little it has. */
export const LASTING: ReadonlySet<string> = new Set(['images', 'tags', 'packages', 'patches', 'users'])

/** Items that a list loses at once, at least, before the loss is looked at. */
const SEVERAL = 5

/**
 * Returns why stored items that a walk lacks are kept until the next sync lacks them too: the total of the list is lower than its items,
 * or half of it is gone, and the service states neither its total nor its end. Null: they are gone.
 */
export function lossDoubt(
  walk: Walk,
  end: WalkEnd,
  { entries, lost, isLasting }: { entries: number; lost: number; isLasting: boolean },
): string | null {
  if (exceedsTotal(walk, end)) return totalMismatch(walk, end)
  const items = foundIn(walk)
  const { total = null, end: shown = null } = end.seen ?? {}
  const isStated = total !== null || shown === 'stated' || shown === 'unnamed'
  const isHalf = isLasting && !isStated && items > 0 && items * 2 <= entries && lost >= SEVERAL
  return isHalf ? `it has ${counted(items, 'item')}, and had ${entries}` : null
}

/** Returns the frame with the reasons why the list may be incomplete, by how its walk ended. */
export function markCompleteness(frame: Frame, walk: Walk, end: WalkEnd, { grade, why }: ListEvidence): Frame {
  const { partial: _partial, unproved: _unproved, cut: _cut, skipped: _skipped, ...plain } = frame
  const { skipped } = walk
  return {
    ...plain,
    ...(grade === 'cut' && { partial: why }),
    ...(grade === 'unproved' && { unproved: why }),
    ...(end.cut !== null && { cut: true }),
    ...(skipped.length > 0 && { skipped: skipped.slice(0, 100) }),
  }
}

/** Returns why a list is not complete by what its walk found; null: nothing speaks against it. */
function doubtOf(walk: Walk, end: WalkEnd): string | null {
  const against = end.cut === null || totalMismatch(walk, end) !== null
  const reasons = [end.cut, skippedOf(walk), against ? contradictionOf(walk, end) : null]
  const known = new Set(reasons.filter((reason) => reason !== null))
  return known.size === 0 ? null : [...known].join('; ')
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
  if (walk.slid) return 'it changes while its pages are read: each reading has other items on two pages'
  return totalMismatch(walk, end)
}

/** Returns whether a list changed while its pages were read, so that an item may have moved to a page already read. */
export function isMoving({ totals, unsteady, slid }: Walk): boolean {
  return totals.size > 1 || unsteady || slid
}

/** Returns how upstream's count differs from the items on its pages; null when it does not, or upstream sends none. */
export function totalMismatch(walk: Walk, end: WalkEnd): string | null {
  const total = totalOf(walk, end)
  const found = foundIn(walk)
  return total === null || total === found
    ? null
    : `upstream counts ${counted(total, 'item')}, but its pages contain ${found}`
}

/** Returns how many items the pages of a walk have, with those that were skipped. */
function foundIn({ skipped, itemCount }: Walk): number {
  return skipped.reduce((sum, { count }) => sum + count, itemCount)
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
