import { toIso, toIsoOrNull } from '../core/time.ts'
import type { LoggedFindings, TagFindings, createFindingsReads } from '../store/findings/reads.ts'

export type FindingsRead = ReturnType<typeof createFindingsReads>

/** Returns by what the tags are judged, as answers show it; null before the first judgement. */
export function stateMessage(reads: FindingsRead): object | null {
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
export function tagMessage({ owner, name, refusal, sbom, ...tag }: TagFindings): object {
  const { packages, notJudged, findings, fixable, critical, high } = tag
  const counts = { packages, notJudged, findings, fixable, critical, high }
  const sboms = sbom === '' ? [] : sbom.split(' ')
  return { id: owner, name, sboms, notJudgedReason: refusal, ...(refusal === null && { counts }) }
}

/** Returns a change of a tag, as answers and events show it. */
export function changeMessage(one: LoggedFindings): object {
  const { at, owner, name, cause, snapshot, found, gone, fixes, fixesGone } = one
  return {
    ...{ at: toIso(at), tag: { id: owner, name }, cause, snapshot },
    ...{ newFindings: found, goneFindings: gone, newFixes: fixes, goneFixes: fixesGone },
    counts: { findings: one.findings, fixable: one.fixable },
    changes: one.details.map(([change, record, component, version, fixable]) => ({
      ...{ change, id: record, package: component, version, fixable: fixable === 1 },
    })),
  }
}
