import { toIso, toIsoOrNull } from '../../base/time.ts'
import type { MissingParts } from '../../server/snapshot/missing.ts'
import type { FindingsReads, TagFindings } from '../../store/findings/reads.ts'
import { type KnownOfTags, tagGaps } from '../../store/findings/words.ts'

/** Returns what a snapshot lacks of what upstream lists (`missingOf`). */
export type MissingOf = (source: 'osv' | 'catalog', snapshot: string) => MissingParts

/** Returns by what the tags are judged, as answers show it, and what that lacks; null before the first judgement. */
export function stateMessage(reads: FindingsReads, missing: MissingOf) {
  const state = reads.readState()
  if (state === null) return null
  const { osv, osvAsOf, catalog, judgedAt } = state
  return {
    osv: { snapshot: osv, asOf: toIso(osvAsOf), ...missing('osv', osv) },
    catalog: catalog === null ? null : { snapshot: catalog, ...missing('catalog', catalog) },
    judgedAt: toIsoOrNull(judgedAt),
    counts: reads.countTags(),
  }
}

/** Returns a tag and its numbers of findings, as answers show it. */
export function tagMessage(tag: TagFindings, known: KnownOfTags) {
  const { owner, name, refusal, sbom } = tag
  const { packages, notJudged, unrecorded, allReleases, binaryNameOnly } = tag
  const { findings, fixable, critical, high, suppressed } = tag
  const judged = { packages, notJudged, unrecorded, allReleases, binaryNameOnly }
  const counts = { ...judged, findings, fixable, critical, high, suppressed }
  const sboms = sbom === '' ? [] : sbom.split(' ')
  const gaps = tagGaps(tag, known)
  return { id: owner, name, sboms, notJudgedReason: refusal, ...gaps, ...(refusal === null && { counts }) }
}
