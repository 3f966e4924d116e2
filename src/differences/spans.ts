import { findEcosystem } from '../query/orders/ecosystems.ts'
import type { VersionOrder } from '../query/orders/order.ts'
import { semverOrder } from '../query/orders/semver.ts'
import type { AffectedRange } from './facts.ts'

/** Events of one package that are ordered; with more, ranges are compared as texts alone. */
const MAX_EVENTS = 4000
/** Characters of their versions: long ones are compared again and again while they are ordered. */
const MAX_CHARACTERS = 100_000

/** What is known of a change of ranges: which versions are affected now, compared with before. */
type RangeEffect = 'widened' | 'narrowed' | 'rewritten' | 'changed'

/**
 * A boundary between versions, in the order of an ecosystem: right before a version, or right behind it. Null stands for
 * the beginning (as `from`) and the end of all versions (as `to`).
 */
type Boundary = { readonly key: unknown; readonly behind: boolean } | null

interface Span {
  readonly from: Boundary
  readonly to: Boundary
}

/** Returns the order of a range's versions; null for commits, and where the ecosystem's is unknown. */
export function orderOfRange({ type }: AffectedRange, ecosystem: string): VersionOrder | null {
  if (type === 'SEMVER') return semverOrder
  return type === 'ECOSYSTEM' ? (findEcosystem(ecosystem)?.order ?? null) : null
}

/**
 * Compares the versions that ranges of a package affect. `changed` where they overlap in part, and whenever one range
 * has no order, another order than the rest, or an event that its order cannot read: nothing is guessed.
 */
export function compareRanges(
  before: readonly AffectedRange[],
  after: readonly AffectedRange[],
  ecosystem: string,
): RangeEffect {
  const ranges = [...before, ...after]
  const orders = new Set(ranges.map((range) => orderOfRange(range, ecosystem)))
  const [order = null, another] = orders
  const events = ranges.reduce((sum, range) => sum + range.events.length, 0)
  if (order === null || another !== undefined || events > MAX_EVENTS) return 'changed'
  const versions = ranges.flatMap((range) => range.events.flatMap((event) => Object.values(event)))
  if (versions.reduce((sum, { length }) => sum + length, 0) > MAX_CHARACTERS) return 'changed'
  const old = spansOf(before, order)
  const now = spansOf(after, order)
  if (old === null || now === null) return 'changed'
  const wider = includes(now, old, order)
  const narrower = includes(old, now, order)
  if (wider && narrower) return 'rewritten'
  return wider ? 'widened' : narrower ? 'narrowed' : 'changed'
}

/** The versions that any of the ranges affects, as spans in order that do not touch; null when one cannot be ordered. */
function spansOf(ranges: readonly AffectedRange[], order: VersionOrder): Span[] | null {
  const all: Span[] = []
  for (const range of ranges) {
    const spans = spansOfRange(range, order)
    if (spans === null) return null
    all.push(...spans)
  }
  all.sort((one, other) => compareStarts(one.from, other.from, order))
  const joined: Span[] = []
  for (const span of all) {
    const last = joined.at(-1)
    if (last === undefined || (last.to !== null && compareToStart(last.to, span.from, order) < 0))
      joined.push(span)
    else joined[joined.length - 1] = { from: last.from, to: later(last.to, span.to, order) }
  }
  return joined
}

interface Turn {
  readonly at: Boundary
  readonly opens: boolean
}

/** The spans of one range by the OSV schema: of the events up to a version, the last one decides. */
function spansOfRange({ events }: AffectedRange, order: VersionOrder): Span[] | null {
  const turns: Turn[] = []
  let limit: Boundary | undefined
  for (const [kind = '', version = ''] of events.flatMap(Object.entries<string>)) {
    const at = kind === 'introduced' && version === '0' ? null : placeOf(kind, version, order)
    if (at === undefined) return null
    if (kind === 'limit') limit = limit === undefined ? at : later(limit, at, order)
    else turns.push({ at, opens: kind === 'introduced' })
  }
  turns.sort(
    (one, other) =>
      compareStarts(one.at, other.at, order) || Number(other.opens) - Number(one.opens),
  )
  const spans: Span[] = []
  let from: Boundary | undefined
  for (const { at, opens } of turns) {
    if (opens) {
      if (from === undefined) from = at
    } else if (from !== undefined) {
      spans.push({ from, to: at })
      from = undefined
    }
  }
  if (from !== undefined) spans.push({ from, to: null })
  const within = spans.map((span) => (limit === undefined ? span : cut(span, limit, order)))
  return within.filter(({ from: start, to }) => to === null || compareToStart(to, start, order) > 0)
}

/** Undefined for a version that the order cannot read; null for the limit behind all versions. */
function placeOf(kind: string, version: string, order: VersionOrder): Boundary | undefined {
  if (kind === 'limit' && version === '*') return null
  const key = order.read(version)
  return key === null ? undefined : { key, behind: kind === 'last_affected' }
}

function cut({ from, to }: Span, limit: Boundary, order: VersionOrder): Span {
  if (limit === null) return { from, to }
  return { from, to: to === null || compareBoundaries(limit, to, order) < 0 ? limit : to }
}

/** Whether every version of some spans is in the others. */
function includes(outer: readonly Span[], inner: readonly Span[], order: VersionOrder): boolean {
  let at = 0
  return inner.every(({ from, to }) => {
    for (; at < outer.length; at++) {
      const end = outer[at]?.to
      if (end === null || (end !== undefined && compareToStart(end, from, order) > 0)) break
    }
    const around = outer[at]
    if (around === undefined || compareStarts(around.from, from, order) > 0) return false
    return around.to === null || (to !== null && compareBoundaries(around.to, to, order) >= 0)
  })
}

type Place = NonNullable<Boundary>

function compareBoundaries(one: Place, other: Place, order: VersionOrder): number {
  return order.compare(one.key, other.key) || Number(one.behind) - Number(other.behind)
}

function compareStarts(one: Boundary, other: Boundary, order: VersionOrder): number {
  if (one === null || other === null) return Number(one !== null) - Number(other !== null)
  return compareBoundaries(one, other, order)
}

function compareToStart(to: Place, from: Boundary, order: VersionOrder): number {
  return from === null ? 1 : compareBoundaries(to, from, order)
}

function later(one: Boundary, other: Boundary, order: VersionOrder): Boundary {
  if (one === null || other === null) return null
  return compareBoundaries(one, other, order) >= 0 ? one : other
}
