import type { FindingChangeCounts, FindingChange, FindingCounts, GoneReason } from '../../../store/findings/reads.ts'
import { folderOf } from '../../scanners/store/generations.ts'
import type { TagFinding } from '../../../store/findings/writes.ts'

/** Changes that are named in the log of a tag, at most; all are counted. */
export const MOST_DETAILS = 10

/** How two sets of findings differ. */
interface FindingsDifference extends FindingChangeCounts {
  /** How much higher the counts are now. */
  readonly counts: FindingCounts
  /** Some of the changes. */
  readonly details: readonly FindingChange[]
}

/**
 * Compares findings by record and package, whatever its version: a new version that is affected by the same record has no new
 * finding. `gone` and `found` are what one set has more often than the other. `whyGone`: why one of the first set is not in the other.
 */
export function compareFindingSets(
  before: readonly TagFinding[],
  after: readonly TagFinding[],
  whyGone: (finding: TagFinding) => GoneReason,
): FindingsDifference {
  const old = Map.groupBy(before, keyOf)
  const now = Map.groupBy(after, keyOf)
  const counts = { found: 0, foundFixable: 0, gone: 0, goneFixable: 0, fixes: 0, fixesGone: 0 }
  const details: FindingChange[] = []
  for (const key of new Set([...old.keys(), ...now.keys()])) {
    const was = old.get(key) ?? []
    const is = now.get(key) ?? []
    const more = is.length - was.length
    const fixes = fixableIn(is) - fixableIn(was)
    const added = { found: Math.max(0, more), fixes: Math.max(0, fixes) }
    const lost = { gone: Math.max(0, -more), fixesGone: Math.max(0, -fixes) }
    counts.found += added.found
    counts.foundFixable += Math.min(added.found, added.fixes)
    counts.gone += lost.gone
    counts.goneFixable += Math.min(lost.gone, lost.fixesGone)
    counts.fixes += added.fixes
    counts.fixesGone += lost.fixesGone
    if (details.length < MOST_DETAILS) details.push(...detailOf(more, fixes, { was, is, whyGone }))
  }
  const first = countFindings(before)
  const second = countFindings(after)
  return { ...counts, counts: differenceOf(first, second), details }
}

/** An image that moves to another release of its distribution keeps the findings that it still has. */
function keyOf({ ecosystem, name, record }: TagFinding): string {
  return JSON.stringify([folderOf(ecosystem), name, record])
}

function fixableIn(findings: readonly TagFinding[]): number {
  return findings.filter(isFixed).length
}

function isFixed({ fixable, patched }: TagFinding): boolean {
  return fixable === 1 || patched === 1
}

/** The findings of a record and a package in two sets. */
interface Compared {
  readonly was: readonly TagFinding[]
  readonly is: readonly TagFinding[]
  readonly whyGone: (finding: TagFinding) => GoneReason
}

function detailOf(more: number, fixes: number, { was, is, whyGone }: Compared): FindingChange[] {
  const change = changeOf(more, fixes)
  const [of, others] = change === 'gone' ? [was, is] : [is, was]
  const one = exampleOf(of, others, more === 0, (change === 'gone' ? -fixes : fixes) > 0)
  if (one === undefined || (more === 0 && fixes === 0)) return []
  const detail = [change, one.record, one.name, one.version, isFixed(one) ? 1 : 0, one.source] as const
  return [change === 'gone' ? [...detail, whyGone(one)] : detail]
}

function changeOf(more: number, fixes: number): FindingChange[0] {
  if (more > 0) return 'new'
  if (more < 0) return 'gone'
  return fixes > 0 ? 'fix' : 'fix gone'
}

/**
 * Returns a finding of a version that is not among the others, preferably with a fix, or without one (`fixed`). Where as many are
 * there as before, others in which a fix came or went do not count.
 */
function exampleOf(
  findings: readonly TagFinding[],
  others: readonly TagFinding[],
  asMany: boolean,
  fixed: boolean,
): TagFinding | undefined {
  const known = others.filter((one) => !asMany || isFixed(one) === fixed)
  const versions = new Set(known.map(({ version }) => version))
  const own = findings.filter(({ version }) => !versions.has(version))
  const ones = own.length > 0 ? own : findings
  return ones.find((one) => isFixed(one) === fixed) ?? ones[0]
}

/** Returns the numbers of findings, which VEX rules none of out. */
export function countFindings(findings: readonly TagFinding[]): FindingCounts {
  const count = (is: (one: TagFinding) => boolean): number => findings.filter(is).length
  return {
    findings: findings.length,
    fixable: fixableIn(findings),
    critical: count(({ level }) => level === 0),
    high: count(({ level }) => level === 1),
    suppressed: 0,
  }
}

function differenceOf(before: FindingCounts, after: FindingCounts): FindingCounts {
  return {
    findings: after.findings - before.findings,
    fixable: after.fixable - before.fixable,
    critical: after.critical - before.critical,
    high: after.high - before.high,
    suppressed: after.suppressed - before.suppressed,
  }
}

/** Whether any of the numbers is not 0. */
export function isChange({ found, gone, fixes, fixesGone }: FindingChangeCounts): boolean {
  return found + gone + fixes + fixesGone > 0
}
