import type { FixDifference } from './difference.ts'
import type { AffectedRange, PackageName } from './facts.ts'
import { orderOfRange } from './spans.ts'

/** A version or commit that fixes a package, and the introduction that it ends, by which two records' fixes are paired. */
interface Fix {
  readonly version: string
  readonly range: AffectedRange
  readonly branch: number
}

/**
 * Compares the fixes of a package. A fix that replaces another one after the same introduction, or the only one that went
 * for the only one that came, is lowered or raised in the order of the ecosystem; else it is removed or added.
 */
export function fixDifferences(
  named: PackageName,
  before: readonly AffectedRange[],
  after: readonly AffectedRange[],
): FixDifference[] {
  const numbers = createNumbers()
  const old = fixesOf(before, numbers)
  const now = fixesOf(after, numbers)
  const removed = [...old].filter(([key]) => !now.has(key)).map(([, fix]) => fix)
  const added = [...now].filter(([key]) => !old.has(key)).map(([, fix]) => fix)
  const { pairs, rest } = pairUp(removed, added)
  return [
    ...pairs.map(([from, to]): FixDifference => {
      const kind = effectOf(from, to, named.ecosystem)
      return { kind, package: named, from: from.version, to: to.version }
    }),
    ...rest.removed.map(({ version }): FixDifference => {
      return { kind: 'fix_removed', package: named, from: version, to: null }
    }),
    ...rest.added.map(({ version }): FixDifference => {
      return { kind: 'fix_added', package: named, from: null, to: version }
    }),
  ]
}

/** Numbers texts, the same for equal ones: a long text is then compared once, and not once for each fix. */
function createNumbers(): (text: string) => number {
  const numbers = new Map<string, number>()
  return (text) => {
    const found = numbers.get(text) ?? numbers.size
    if (found === numbers.size) numbers.set(text, found)
    return found
  }
}

/** Fixes by version, and by repository for commits. */
function fixesOf(ranges: readonly AffectedRange[], numberOf: (text: string) => number): Map<string, Fix> {
  const fixes = new Map<string, Fix>()
  for (const range of ranges) {
    const place = numberOf(range.type === 'GIT' ? `GIT ${range.repo ?? ''}` : '')
    let branch = numberOf(`${place}`)
    for (const { introduced, fixed } of range.events) {
      if (introduced !== undefined) branch = numberOf(`${place} ${introduced}`)
      if (fixed !== undefined) fixes.set(`${place} ${fixed}`, { version: fixed, range, branch })
    }
  }
  return fixes
}

function pairUp(removed: readonly Fix[], added: readonly Fix[]) {
  const waiting = new Map(
    [...Map.groupBy(removed, ({ branch }) => branch)].map(([branch, fixes]) => [branch, fixes.values()]),
  )
  const pairs: [Fix, Fix][] = []
  const came: Fix[] = []
  for (const fix of added) {
    const from = waiting.get(fix.branch)?.next().value
    if (from === undefined) came.push(fix)
    else pairs.push([from, fix])
  }
  const went = [...waiting.values()].flatMap((fixes) => [...fixes])
  const from = went[0]
  const to = came[0]
  if (went.length !== 1 || came.length !== 1 || from === undefined || to === undefined)
    return { pairs, rest: { removed: went, added: came } }
  return { pairs: [...pairs, [from, to] as const], rest: { removed: [], added: [] } }
}

function effectOf(from: Fix, to: Fix, ecosystem: string): FixDifference['kind'] {
  const order = orderOfRange(from.range, ecosystem)
  if (order === null || order !== orderOfRange(to.range, ecosystem)) return 'fix_changed'
  const one = order.read(from.version)
  const other = order.read(to.version)
  if (one === null || other === null) return 'fix_changed'
  const difference = order.compare(other, one)
  if (difference < 0) return 'fix_lowered'
  return difference > 0 ? 'fix_raised' : 'fix_changed'
}
