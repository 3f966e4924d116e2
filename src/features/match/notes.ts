import { counted, nounOf } from '../../base/text.ts'
import { listed } from './gaps.ts'
import type { MatchFinding } from './judging/finding.ts'
import type { MatchResult } from './result.ts'

/** Says of how many packages less was known than of others, so that too much or too little may be found. */
export function notesOf({ counts, withoutRecords }: Pick<MatchResult, 'counts' | 'withoutRecords'>): string[] {
  const { allReleases, binaryNameOnly, rebuilt } = counts
  const notes: string[] = []
  if (withoutRecords.length > 0)
    notes.push(
      `no record here is about ${counted(withoutRecords.length, 'package')}, in whatever version (${listed(withoutRecords)}): a misspelt name looks the same${withoutRecords.some(isBelowModule) ? ', and a Go package in place of its module' : ''}`,
    )
  if (allReleases > 0)
    notes.push(
      `${wereJudged(allReleases)} by the records of all releases of ${their(allReleases)} distribution, whose fixes may be of another one: the SBOM does not name ${their(allReleases)} release, and --distro does`,
    )
  if (binaryNameOnly > 0)
    notes.push(
      `${wereJudged(binaryNameOnly)} by ${their(binaryNameOnly)} binary name only, so that findings may be missing: records name source packages, and the SBOM does not name ${their(binaryNameOnly)} source`,
    )
  if (rebuilt > 0)
    notes.push(
      `${wereJudged(rebuilt)} by the records of Red Hat, and VEX about its packages: OSV has none of CentOS, which rebuilds these packages, and whose fixes may come later`,
    )
  return notes
}

/** Whether a package URL of Go names more than a repository: a folder of it may be a module of its own, or a package of one. */
function isBelowModule(purl: string): boolean {
  return /^pkg:golang\/[^/@?#]+\/[^/@?#]+\/[^/@?#]+\/(?!v\d+(?:[@?#]|$))[^@?#]/.test(purl)
}

function wereJudged(count: number): string {
  return counted(count, 'package was judged', 'packages were judged')
}

function their(count: number): string {
  return nounOf(count, 'its', 'their')
}

/** Says of components that are not judged how many there are, for each reason, and names the first. */
export function unjudgedWords(notJudged: MatchResult['notJudged']): { count: number; reason: string; names: string }[] {
  return [...Map.groupBy(notJudged, ({ reason }) => reason)].map(([reason, ones]) => ({
    count: ones.length,
    reason,
    names: listed(ones.map(({ name, purl }) => purl ?? name)),
  }))
}

/** Says how a finding was found where that was not by the component's own name; '' for others. */
export function foundByWords({ source }: Pick<MatchFinding, 'source'>): string {
  return source === null ? '' : `found by its source package ${source}`
}
