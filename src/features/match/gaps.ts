import { differentSystems } from '../../base/identity/surroundings.ts'
import { describeMissing } from '../../server/snapshot/missing.ts'
import { counted, nounOf, plainText } from '../../base/text.ts'
import { NO_AGE, ageSecondsOf } from '../../base/domain/sources.ts'
import { NONE_COMPARED, NO_COMPONENTS, VEX_GAP, sbomGapWords } from '../../store/findings/words.ts'
import type { MatchPatches } from './judging/finding.ts'
import type { MatchGap, MatchSnapshot, MatchVex } from './result.ts'

interface JudgedBy {
  /** Packages of the SBOM, and those of them that were judged, completely or in part. */
  readonly packages: number
  readonly judged: number
  /** Whether anything was found, or a package compared with all records about it, of which there is one. */
  readonly isCompared: boolean
  readonly snapshot: MatchSnapshot
  readonly vex: MatchVex
  /** Whether the VEX of a tag that the SBOM may be of is damaged, or could not be fetched; absent: no. */
  readonly isOwnUnknown?: boolean
  readonly patches: MatchPatches
  /** The SBOM's own word that it does not list all; absent: it does not say so. */
  readonly incomplete?: string | undefined
  /** Why it may be of another image than the one that is meant; absent: nothing says so. */
  readonly ofAnother?: string | undefined
  /** The operating systems that the SBOM names. */
  readonly systems: readonly string[]
  /** Releases that it names, and that are not known here. */
  readonly unreadReleases: readonly string[]
  /** Ecosystems of its packages of which not all records are mirrored. */
  readonly partEcosystems: readonly string[]
}

/** Returns what the mirror does not know about an SBOM, by the state of what it was judged with. `now`: Unix milliseconds. */
export function gapsOf(by: JudgedBy, now: number): MatchGap[] {
  const { snapshot, vex, patches } = by
  const isVexAhead = vex.asOf !== null && ageSecondsOf(Date.parse(vex.asOf), now) === null
  const gaps: readonly [MatchGap['code'], string | null][] = [
    ['components', describeUnjudged(by)],
    ['sbom', by.incomplete === undefined ? null : sbomGapWords(by.incomplete)],
    ['sbom', by.ofAnother ?? null],
    ['age', snapshot.ageSeconds === null ? `the records are dated ${snapshot.asOf}, ${NO_AGE}` : null],
    ['records', describeMissing('osv', snapshot)],
    ['records', describeScope(snapshot.scope, by.partEcosystems)],
    ['vex', isVexAhead ? `the VEX is dated ${vex.asOf}, ${NO_AGE}` : null],
    ['vex', vex.missing === 0 ? null : describeMissingVex(vex.missing)],
    ['vex', by.isOwnUnknown === true ? VEX_GAP : null],
    ['patches', patches.partial === null ? null : describePartialPatches(patches.partial)],
    ['release', describeSystems(differentSystems(by.systems))],
    ['release', describeReleases(by.unreadReleases)],
  ]
  return gaps.flatMap(([code, reason]) => (reason === null ? [] : [{ code, reason }]))
}

function describeUnjudged({ packages, judged, isCompared }: JudgedBy): string | null {
  if (packages === 0) return NO_COMPONENTS
  if (judged > 0) return isCompared ? null : NONE_COMPARED
  return 'the SBOM has no component that could be judged: nothing is known about its vulnerabilities'
}

/** Releases that are named in a text. */
const MOST_NAMED = 5

function describeScope(scope: string | null, ecosystems: readonly string[]): string | null {
  if (scope === null || ecosystems.length === 0) return null
  return `not all records of ${listed(ecosystems)} are mirrored here: osv.scope is ${scope}`
}

function describeSystems(systems: readonly string[]): string | null {
  if (systems.length < 2) return null
  return `the SBOM names ${systems.length} operating systems (${listed(systems)}): none of them is taken for the release of components that name none`
}

function describeReleases(releases: readonly string[]): string | null {
  if (releases.length === 0) return null
  const what = releases.length === 1 ? 'a release that is' : `${releases.length} releases that are`
  return `components name ${what} not known here (${listed(releases)}): they are judged by the records of all releases`
}

/** Names the first of some names. */
export function listed(names: readonly string[]): string {
  const shown = names.slice(0, MOST_NAMED).map((one) => plainText(one.slice(0, 100)))
  return names.length > MOST_NAMED ? `${shown.join(', ')}, …` : shown.join(', ')
}

/** Says how many VEX documents could not be fetched. */
export function describeMissingVex(missing: number): string {
  return `partial: ${counted(missing, 'document')} of VEX ${nounOf(missing, 'is', 'are')} missing or outdated`
}

/** Says that patches may be missing in the list, and why. */
export function describePartialPatches(reason: string): string {
  return `partial: the list of patches may be incomplete or outdated: ${reason}`
}
