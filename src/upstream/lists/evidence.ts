import type { Flaw } from '../../base/json/forms/more-beyond.ts'
import { counted } from '../../base/text.ts'

/** What is known about the completeness of a list. `unproved`: nothing speaks of more, and nothing proves the end. */
export type Grade = 'proved' | 'unproved' | 'cut'

/** What was seen of a list when its walk ended. */
export interface Seen {
  /** Items on its pages. */
  items: number
  /** Items on its last page. */
  shown: number
  /** The page size that was asked for. */
  asked: number
  /** Number of items by the service; null: it states none. */
  total: number | null
  /** Why a next page that is named could not be requested; null: none is named. */
  unfollowed: string | null
  /** What speaks of more, in words, and did not lead to it. */
  more: readonly string[]
  /** What its last page says that is not understood and may say that there is more; null: nothing. */
  unread: string | null
  /**
   * How the service ends the list. `stated`: a member says so. `unnamed`: pages name the next one, and the last names none.
   * `empty`: what is after the last page is empty, or not there. `counted`: its numbers are those of what was read.
   * `shorter`: its cursor repeats after a page that is shorter than the one before it.
   */
  end: 'stated' | 'unnamed' | 'empty' | 'counted' | 'shorter' | null
  /** Why the walk ended where it led to nothing new, as a cursor that repeats; null: it did not. */
  circles: string | null
  /** Whether a request for one item gave one; null: it was not asked, or not answered. */
  limitKept: boolean | null
  /** What a mirror that is upstream says of items that may be missing (X-Mirror-Incomplete); null: it says nothing. */
  lacks: string | null
  /** What a page says itself of items that it lacks, the last page or one that no other makes good; null: nothing. */
  flaw: Flaw | null
  /** What other pages gave that were asked for by number, offset and last id; null: they were not asked for. */
  otherPages: 'the same items' | 'no answer' | null
}

/** Page sizes to which services usually cut lists. */
const USUAL_SIZES = new Set([10, 20, 25, 30, 50, 100, 200, 250, 500, 1000])

/** Returns whether a list with this number of items may be one page of a longer one. */
export function isUsualSize(count: number): boolean {
  return USUAL_SIZES.has(count)
}

interface Row {
  grade: Grade
  is: (seen: Seen) => boolean
  why: (seen: Seen) => string
}

const row = (grade: Grade, is: Row['is'], why: Row['why']): Row => ({ grade, is, why })

/** How a service ends a list, in words. */
const ENDS: Readonly<Record<NonNullable<Seen['end']>, string>> = {
  stated: 'its last page says that it is the last',
  unnamed: 'its pages name the next one, and its last page names none',
  empty: 'what is after its last page is empty',
  counted: 'its total was reached',
  shorter: 'its last page is shorter than the one before it',
}
const SILENT = 'the service does not say whether there are more'

/** How the reason begins why a list is cut that a mirror gave. */
export const CUT_ABOVE = 'upstream is a mirror, and its own list may lack items'

/** How the reason begins why a list is cut that has a page with a flaw. */
export const FLAWED = 'a page of it is not whole'

/** The evidence of a list's end, in order: the first row that applies decides. */
const EVIDENCE: readonly Row[] = [
  row(
    'cut',
    ({ lacks }) => lacks !== null && lacks !== 'unproved',
    ({ lacks }) => `${CUT_ABOVE}: ${lacks}`,
  ),
  row(
    'cut',
    ({ flaw }) => flaw !== null,
    ({ flaw }) => `${FLAWED}: ${flaw?.text}`,
  ),
  row(
    'cut',
    ({ unfollowed }) => unfollowed !== null,
    ({ unfollowed }) => unfollowed ?? '',
  ),
  row(
    'cut',
    ({ total, items }) => total !== null && total > items,
    ({ total, items }) => `upstream counts ${counted(total ?? 0, 'item')}, but its pages contain ${items}`,
  ),
  row(
    'cut',
    ({ more }) => more.length > 0,
    ({ more }) => `${more.slice(0, 5).join(', ')}, and no way to request it was found`,
  ),
  row(
    'unproved',
    ({ lacks, circles }) => lacks !== null && circles === null,
    () => 'upstream is a mirror, and the end of its own list is not proved',
  ),
  row(
    'proved',
    ({ total, items }) => total === items,
    () => ENDS.counted,
  ),
  row(
    'cut',
    ({ circles }) => circles !== null,
    ({ circles }) => circles ?? '',
  ),
  row(
    'proved',
    ({ end }) => end !== null,
    ({ end }) => ENDS[end ?? 'stated'],
  ),
  row(
    'unproved',
    ({ unread }) => unread !== null,
    ({ unread }) => `${unread}, which is not understood and may say that there are more`,
  ),
  row(
    'proved',
    ({ items }) => items === 0,
    () => 'it is empty, and nothing speaks of more',
  ),
  row(
    'unproved',
    ({ items }) => isUsualSize(items),
    ({ items }) => `it has ${items} items, a usual page size, and ${SILENT}`,
  ),
  row(
    'proved',
    ({ limitKept, shown, asked, otherPages }) => limitKept === true && shown < asked && otherPages !== null,
    () => 'its page is shorter than was asked for, the service keeps to "limit", and no other page was found',
  ),
  row(
    'proved',
    ({ items }) => items === 1,
    () => 'it has one item, and nothing speaks of more',
  ),
  row(
    'proved',
    ({ otherPages }) => otherPages === 'the same items',
    () => 'it is not paged: each request for another page gives the same items',
  ),
  row(
    'unproved',
    ({ otherPages }) => otherPages === 'no answer',
    () => `${SILENT}, and requests for other pages are refused or give nothing`,
  ),
  row(
    'unproved',
    () => true,
    () => `${SILENT}, and requests for other pages failed`,
  ),
]

/** Returns the grade of a list by what was seen of it, with the reason. */
export function gradeOf(seen: Seen): { grade: Grade; why: string } {
  const row = EVIDENCE.find(({ is }) => is(seen))
  return row === undefined
    ? { grade: 'unproved', why: 'nothing is known of its end' }
    : { grade: row.grade, why: row.why(seen) }
}
