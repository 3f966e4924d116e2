import { toIso, toIsoOrNull } from '../core/time.ts'
import type { FindingsReads, TagFindings } from '../store/findings/reads.ts'

/** Returns by what the tags are judged, as answers show it; null before the first judgement. */
export function stateMessage(reads: FindingsReads) {
  const state = reads.readState()
  if (state === null) return null
  const { osv, osvAsOf, catalog, judgedAt } = state
  return {
    osv: { snapshot: osv, asOf: toIso(osvAsOf) },
    catalog: catalog === null ? null : { snapshot: catalog },
    judgedAt: toIsoOrNull(judgedAt),
    counts: reads.countTags(),
  }
}

/** Returns a tag and its numbers of findings, as answers show it. */
export function tagMessage({ owner, name, refusal, sbom, ...tag }: TagFindings) {
  const { packages, notJudged, findings, fixable, critical, high, suppressed } = tag
  const counts = { packages, notJudged, findings, fixable, critical, high, suppressed }
  const sboms = sbom === '' ? [] : sbom.split(' ')
  return { id: owner, name, sboms, notJudgedReason: refusal, ...(refusal === null && { counts }) }
}
