import { counted, plainText } from '../../base/text.ts'
import type { FindingChange, FindingChangeCounts, GoneReason, TagFindings } from './reads.ts'

/** Says that VEX of a tag is not known, and what follows. */
export const VEX_GAP =
  'some VEX of the tag itself is damaged or could not be fetched: what other VEX says of a package alone rules nothing out'

/** What is known of tags beside their findings. */
export interface KnownOfTags {
  /** Ids of the tags of whose own VEX some is not known. */
  readonly withoutVex: readonly string[]
  /** Why the stored SBOM of a tag may be of an earlier image, in words; null: nothing says so. */
  readonly whySbomOld: (id: string) => string | null
}

/** Returns what is not known of a tag, in words; null: nothing of the kind. */
export function tagGaps(tag: TagFindings, { withoutVex, whySbomOld }: KnownOfTags) {
  const { owner, refusal, sbomGap, platformGap } = tag
  const isJudged = refusal === null
  const ofSbom = [isJudged ? whySbomOld(owner) : null, isJudged ? platformGap : null, sbomGap].filter(
    (gap) => gap !== null,
  )
  return {
    sbomGap: ofSbom.length === 0 ? null : ofSbom.join('; '),
    recordGap: isJudged ? recordGapWords(tag) : null,
    vexGap: withoutVex.includes(owner) ? VEX_GAP : null,
  }
}

/** Returns the same as a list. */
export function gapWords(gaps: ReturnType<typeof tagGaps>): string[] {
  return [gaps.sbomGap, gaps.recordGap, gaps.vexGap].filter((gap) => gap !== null)
}

/** Says that nothing was found because nothing was compared; null: something was, or was found. */
function recordGapWords(
  counts: Omit<PackageCounts, 'allReleases' | 'binaryNameOnly'> & { readonly findings: number },
): string | null {
  const { packages, notJudged, unrecorded, findings } = counts
  if (packages > notJudged + unrecorded || findings > 0) return null
  if (packages === 0) return NO_COMPONENTS
  return NONE_COMPARED
}

/** Says that nothing was found because nothing was compared. */
export const NONE_COMPARED =
  'no package of the SBOM was wholly compared with any record: that nothing was found says nothing of its vulnerabilities'

/** Says that an SBOM is empty. */
export const NO_COMPONENTS = 'the SBOM has no components: nothing is known about its vulnerabilities'

/** Says that an SBOM does not list all, by its own word. */
export function sbomGapWords(incomplete: string): string {
  return `the SBOM says itself that it does not list all components (${plainText(incomplete)}): nothing is known of the others`
}

/** What changed, as it may be known of an event: null where it does not say how many have a fix, or had one. */
type KnownCounts = Omit<FindingChangeCounts, 'foundFixable' | 'goneFixable'> & {
  readonly foundFixable: number | null
  readonly goneFixable: number | null
  /** What changed it; absent: it is not known. */
  readonly cause?: unknown
  /** Why findings are gone, of those that are named; absent: none is. */
  readonly whyGone?: readonly unknown[]
}

/**
 * Returns what changed in the findings of a tag, in words: `3 new findings (2 with a fix), 1 finding got a fix, 1 finding gone`.
 * Each finding is in one of these numbers; of what is not known nothing is said. What is gone because other records, or
 * older data, are mirrored is not called fixed.
 */
export function findingWords(counts: KnownCounts): string {
  const { found, gone } = counts
  const got = othersOf(counts.fixes, found, counts.foundFixable)
  const lost = othersOf(counts.fixesGone, gone, counts.goneFixable)
  const whose = lost === 1 ? 'its' : 'their'
  const words = [
    found === 0 ? '' : counted(found, 'new finding') + shareWords(found, counts.foundFixable),
    got === 0 ? '' : `${counted(got, 'finding')} got a fix`,
    gone === 0 ? '' : `${counted(gone, 'finding')} gone${goneShare(counts)}`,
    lost === 0 ? '' : `${counted(lost, 'finding')} lost ${whose} fix`,
  ]
  const all = words.filter((one) => one !== '').join(', ')
  const because = causeWords(counts.cause)
  return because !== null && all !== '' ? `${all} (${because})` : all
}

const CAUSES: ReadonlyMap<unknown, string> = new Map([
  ['scope', 'other records are mirrored: osv.scope'],
  ['unknown', 'whether other records are mirrored is not known: osv.scope'],
  ['rollback', 'the mirror went back to older data'],
  ['sbom', 'the tag has another SBOM'],
  ['vex', 'other VEX counts'],
  ['patches', 'the list of patches changed'],
])

/** Says why findings and records come and go, where it is not that records changed; null: it is, or nothing says so. */
export function causeWords(cause: unknown): string | null {
  return CAUSES.get(cause) ?? null
}

const GONE: ReadonlyMap<unknown, string> = new Map<GoneReason, string>([
  ['removed', 'upstream removed the record'],
  ['left', 'the record is not mirrored any more'],
  ['withdrawn', 'the record was withdrawn'],
  ['cleared', 'the record no longer covers the version'],
  ['uncompared', 'the record can no longer be compared with the version'],
  ['vex', 'VEX rules it out'],
  ['sbom', 'the tag has another SBOM'],
])

/** Says why findings are gone because records changed, where that is known of each of them. */
function goneShare({ gone, cause, whyGone = [] }: KnownCounts): string {
  const groups = [...Map.groupBy(whyGone, (one) => GONE.get(one))]
  const isKnown = whyGone.length === gone && groups.every(([words]) => words !== undefined)
  if (!isKnown || causeWords(cause) !== null) return ''
  const words = groups.map(([text = '', ones]) => (groups.length === 1 ? text : `${ones.length}: ${text}`))
  return ` (${words.join('; ')})`
}

/** Returns why the findings are gone that are named among some changes. */
export function whyGoneIn(details: readonly FindingChange[]): unknown[] {
  return details.flatMap(([change, , , , , , why]) => (change === 'gone' ? [why] : []))
}

/** Returns how many findings changed: as many as there are words of each. */
export function changedFindings({ found, gone, ...counts }: FindingChangeCounts): number {
  const got = othersOf(counts.fixes, found, counts.foundFixable)
  return found + gone + got + othersOf(counts.fixesGone, gone, counts.goneFixable)
}

/** Of fixes that came, or went, those of findings that are neither new nor gone; 0 where it is not known. */
function othersOf(fixes: number, findings: number, fixable: number | null): number {
  if (fixable === null) return findings === 0 ? fixes : 0
  return Math.max(0, fixes - fixable)
}

function shareWords(findings: number, fixable: number | null): string {
  if (fixable === null) return ''
  if (findings === 1) return fixable === 0 ? ' (without a fix)' : ' (with a fix)'
  if (fixable === 0) return ' (none with a fix)'
  return fixable >= findings ? ' (all with a fix)' : ` (${fixable} with a fix)`
}

/** Numbers of the packages of a tag. */
interface PackageCounts {
  readonly packages: number
  readonly notJudged: number
  readonly unrecorded: number
  readonly allReleases: number
  readonly binaryNameOnly: number
}

/** Returns how many packages a tag has, and how many of them are judged with less than everything known, in words. */
export function packageWords(counts: PackageCounts): string {
  const { packages, notJudged, unrecorded, allReleases, binaryNameOnly } = counts
  const words = [
    counted(packages, 'package'),
    notJudged === 0 ? '' : `${notJudged} not judged, or not completely`,
    unrecorded === 0
      ? ''
      : `${unrecorded} that no record here is about, in whatever version: a misspelt name looks the same`,
    allReleases === 0
      ? ''
      : `${allReleases} judged by the records of all releases, as their own is not known: some findings and fixes may be of another`,
    binaryNameOnly === 0 ? '' : `${binaryNameOnly} judged by their binary name only`,
  ]
  return words.filter((one) => one !== '').join('; ')
}

/** Returns one of the changes in words: `got a fix: CVE-2026-1 in openssl 3.0.11`. */
export function detailWords(detail: FindingChange): string {
  const [change, record, name, version, fixable, source, why] = detail
  const by = source === '' ? '' : ` (by its source package ${source})`
  const of = `${record} in ${name} ${version}${by}`
  if (change === 'new') return `new finding${fixable === 1 ? ', with a fix' : ''}: ${of}`
  if (change === 'fix') return `got a fix: ${of}`
  if (change === 'fix gone') return `lost its fix: ${of}`
  const because = GONE.get(why)
  return because === undefined ? `gone: ${of}` : `gone: ${of} (${because})`
}

/** Says that one of several SBOMs of a tag could not be read, and why. */
export function unreadSbomWords(why: string): string {
  return `${why}: the tag is judged by its other SBOMs alone, and nothing is known of what only this one lists`
}

/** Why a tag is not judged where nothing of its SBOM is stored, as it is kept: the reason for that may change meanwhile. */
export const NO_SBOM = 'no SBOM is stored here'

/** Why tags have no findings although the settings have them judged. */
export const NOT_JUDGED =
  'the tags are not judged yet: the daemon (patchmirror serve) judges them once it has a catalog, records and their views'

/** Returns the same; `counts`: what is judged so far by the first judgement, null where it has not begun. */
export function notJudgedYet(counts: Parameters<typeof judgedWords>[0] | null): string {
  return counts === null ? NOT_JUDGED : judgedWords(counts, false)
}

/** Returns how many tags are judged, in words. `isWhole`: all were judged once; before that the numbers are those so far. */
export function judgedWords(
  { tags, judged }: { readonly tags: number; readonly judged: number },
  isWhole: boolean,
): string {
  if (!isWhole)
    return `the tags are not all judged yet: the first judgement is in progress, ${counted(judged, 'tag')} so far`
  if (tags === 0) return 'no tag is judged: the mirrored catalog has none'
  return `${judged} of ${counted(tags, 'tag')} ${judged === 1 ? 'is' : 'are'} judged`
}

/** The settings that have tags judged. */
export interface JudgingSettings {
  readonly match: { readonly tags: boolean }
  readonly views: { readonly query: boolean }
}

/** Returns why tags are not judged by the settings; null: they are. */
export function whyNoTags({ match, views }: JudgingSettings): string | null {
  if (match.tags && views.query) return null
  return `this mirror judges no tags: views.serve has no ${match.tags ? 'query' : 'findings'}`
}
