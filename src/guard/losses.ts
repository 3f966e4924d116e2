import type { RecordDifference } from '../documents/differences/difference.ts'
import { type AffectedRange, type PackageFacts, type RecordFacts, packageText } from '../documents/differences/facts.ts'
import { compareRanges, createRangeTest, lostSpans, orderOfRange } from '../documents/differences/spans.ts'
import { decisiveName } from '../base/identity/identity.ts'
import { findEcosystem } from '../base/versions/ecosystems.ts'
import { rpmOrder } from '../base/versions/rpm.ts'

/**
 * What a package lost of its affected versions: up to a fix that is named now (`fixLowered`), without one (`rangesLost`),
 * behind its first fix (`firstFixed`), or its ranges cannot be ordered any more as they could be before (`incomparable`).
 */
type Loss = 'fixLowered' | 'rangesLost' | 'firstFixed' | 'incomparable'

type RangeOfPackage = RecordDifference & { readonly kind: `range_${string}` }

/**
 * Returns the changes of ranges by what they lose. A first fix of what had none is no loss, nor is what lies behind a fix
 * that was there before.
 */
export function lossesIn(
  differences: readonly RecordDifference[],
  old: RecordFacts,
  now: RecordFacts,
): ReadonlyMap<Loss, readonly RangeOfPackage[]> {
  const found = new Map<Loss, RangeOfPackage[]>()
  for (const one of differences) {
    if (!isOfRange(one)) continue
    const name = packageText(one.package)
    const was = old.packages.get(name)
    const is = now.packages.get(name)
    if (was === undefined || is === undefined) continue
    for (const loss of lossesOf(was, is)) {
      const ones = found.get(loss) ?? []
      ones.push(one)
      found.set(loss, ones)
    }
  }
  return found
}

/** Whether ranges changed so that versions may be affected no more. */
function isOfRange(one: RecordDifference): one is RangeOfPackage {
  return one.kind.startsWith('range_') && !LOSSLESS.has(one.kind)
}

/** By the comparison of ranges, all versions that were affected still are. */
const LOSSLESS: ReadonlySet<string> = new Set(['range_added', 'range_widened', 'range_rewritten'])

/** Each order is judged for itself: a record may have ranges of versions and of commits. */
function lossesOf(was: PackageFacts, is: PackageFacts): ReadonlySet<Loss> {
  const found = new Set<Loss>()
  const orderOf = (range: AffectedRange) => orderOfRange(range, was.package.ecosystem)
  const after = Map.groupBy(is.ranges, orderOf)
  for (const [order, ranges] of Map.groupBy(was.ranges, orderOf)) {
    if (order === null || is.ranges.length === 0) continue
    const lost = lostSpans(ranges, after.get(order) ?? [], order)
    if (lost === null) continue
    if (lost === 'unordered' || !after.has(order)) found.add('incomparable')
    else for (const { fixed, isFirst } of lost) found.add(lossOf(fixed, isFirst))
  }
  if (found.has('firstFixed') && losesVersions(was, is)) found.add('fixLowered')
  return found
}

function lossOf(fixed: boolean, isFirst: boolean): Loss {
  if (isFirst) return 'firstFixed'
  return fixed ? 'fixLowered' : 'rangesLost'
}

/**
 * Returns the packages that came beside others of their ecosystem and are affected in fewer versions than each of these, where a
 * record that has a binary package by its own name decides about it alone: as one of a source package it was affected before.
 */
export function narrowerPackages(
  differences: readonly RecordDifference[],
  old: RecordFacts,
  now: RecordFacts,
): RecordDifference[] {
  return differences.filter((one) => {
    if (one.kind !== 'package_added') return false
    const { ecosystem } = one.package
    if (!isDecisive(ecosystem)) return false
    const come = now.packages.get(packageText(one.package))?.ranges ?? []
    const others = [...old.packages.values()].filter((other) => other.package.ecosystem === ecosystem)
    const isNarrower = ({ ranges }: PackageFacts) => LOSING.has(compareRanges(ranges, come, ecosystem))
    return others.length > 0 && others.slice(0, MOST_OTHERS).every(isNarrower)
  })
}

/** Packages that one that came is compared with. */
const MOST_OTHERS = 20

const LOSING: ReadonlySet<string> = new Set(['narrowed', 'changed'])

function isDecisive(name: string): boolean {
  const ecosystem = findEcosystem(name)
  if (ecosystem === null) return false
  return ecosystem.order === rpmOrder || decisiveName(ecosystem, name, '') !== null
}

/** Listed versions that are looked at. */
const MOST_VERSIONS = 300

/**
 * Whether a package lost listed versions: where its ranges decide, all of them, as with a first fix below every affected
 * version, or any that was in none of these; else any that is neither listed nor in a range now.
 */
export function losesVersions(was: PackageFacts | undefined, is: PackageFacts | undefined): boolean {
  const versions = [...(was?.versions ?? [])]
  if (was === undefined || versions.length === 0) return false
  const looked = versions.slice(-MOST_VERSIONS)
  const isAffected = createAffectedTest(is)
  const isLost = (version: string): boolean => !isAffected(version)
  const isOrdered = was.ranges.some((range) => orderOfRange(range, was.package.ecosystem) !== null)
  if (!isOrdered) return looked.some(isLost)
  const isInRange = createAffectedTest({ ...was, versions: new Set() })
  return looked.every(isLost) || looked.some((version) => isLost(version) && !isInRange(version))
}

function createAffectedTest(facts: PackageFacts | undefined): (version: string) => boolean {
  if (facts === undefined) return () => false
  const byOrder = Map.groupBy(facts.ranges, (range) => orderOfRange(range, facts.package.ecosystem))
  const tests = [...byOrder].flatMap(([order, ranges]) =>
    order === null ? [] : (createRangeTest(ranges, order) ?? []),
  )
  return (version) => facts.versions.has(version) || tests.some((test) => test(version) !== false)
}
