import { describeMissing } from '../api/snapshot/missing.ts'
import { counted, nounOf } from '../core/text.ts'
import { NO_AGE, ageSecondsOf } from '../domain/sources.ts'
import type { MatchPatches } from '../judging/finding.ts'
import type { MatchGap, MatchSnapshot, MatchVex } from './result.ts'

interface JudgedBy {
  readonly snapshot: MatchSnapshot
  readonly vex: MatchVex
  readonly patches: MatchPatches
}

/** Returns what the mirror does not know about an SBOM, by the state of what it was judged with. `now`: Unix milliseconds. */
export function gapsOf({ snapshot, vex, patches }: JudgedBy, now: number): MatchGap[] {
  const isVexAhead = vex.asOf !== null && ageSecondsOf(Date.parse(vex.asOf), now) === null
  const gaps: readonly [MatchGap['code'], string | null][] = [
    [
      'age',
      snapshot.ageSeconds === null ? `the records are dated ${snapshot.asOf}, ${NO_AGE}` : null,
    ],
    ['records', describeMissing('osv', snapshot)],
    ['vex', isVexAhead ? `the VEX is dated ${vex.asOf}, ${NO_AGE}` : null],
    ['vex', vex.missing === 0 ? null : describeMissingVex(vex.missing)],
    ['patches', patches.partial === null ? null : describePartialPatches(patches.partial)],
  ]
  return gaps.flatMap(([code, reason]) => (reason === null ? [] : [{ code, reason }]))
}

/** Says how many VEX documents could not be fetched. */
export function describeMissingVex(missing: number): string {
  return `partial: ${counted(missing, 'document')} of VEX ${nounOf(missing, 'is', 'are')} missing or outdated`
}

/** Says that patches may be missing in the list, and why. */
export function describePartialPatches(reason: string): string {
  return `partial: the list of patches may be incomplete or outdated: ${reason}`
}
