import { findEcosystem } from '../../base/versions/ecosystems.ts'
import type { VersionOrder } from '../../base/versions/order.ts'
import { orderOfType } from '../../base/versions/semver.ts'
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
type Boundary = {
  readonly key: unknown
  readonly behind: boolean
  /** Whether a fix is the boundary. */
  readonly fixed: boolean
} | null

/** `fix`: the first fix that ends one of the spans that were joined to this one; absent: none does. */
interface Span {
  readonly from: Boundary
  readonly to: Boundary
  readonly fix?: Place
}

/** Versions that are not affected any more; `fixed`: they begin at a fix; `isFirst`: which is the first one of what had no end. */
interface LostSpan {
  readonly fixed: boolean
  readonly isFirst: boolean
}

/** Returns the order of a range's versions; null for commits, where the ecosystem's is unknown, and where a bound is no text. */
export function orderOfRange({ type, isUnreadable }: AffectedRange, ecosystem: string): VersionOrder | null {
  if (isUnreadable === true) return null
  return orderOfType(type, findEcosystem(ecosystem)?.order ?? null)
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
  if (wider) return 'widened'
  return narrower ? 'narrowed' : 'changed'
}

/**
 * Returns the versions that ranges of one order affected and do not any more, without those behind a fix that was there
 * before. Of ranges that had bounds which cannot be read, the others are compared. Null when the ranges before are too many to be
 * ordered, `unordered` when only those after cannot be.
 */
export function lostSpans(
  before: readonly AffectedRange[],
  after: readonly AffectedRange[],
  order: VersionOrder,
): LostSpan[] | 'unordered' | null {
  if (isTooMany(before)) return null
  const whole = spansOf(before, order)
  const old = whole ?? spansOf(readable(before, order), order) ?? []
  const compared = whole === null ? readable(after, order) : after
  const now = isTooMany(after) ? null : spansOf(compared, order)
  if (now === null) return 'unordered'
  const lost = subtract(old, now, order)
  return lost.flatMap(({ from, within: { to, fix } }) => {
    const fixed = from?.fixed === true
    const isFirst = fixed && to === null
    const isBehind = fix !== undefined && from !== null && compareBoundaries(fix, from, order) <= 0
    return isBehind ? [] : [{ fixed, isFirst }]
  })
}

/** Returns ranges without the events that their order cannot read. */
function readable(ranges: readonly AffectedRange[], order: VersionOrder): AffectedRange[] {
  const isRead = ([kind, version]: [string, string]): boolean =>
    (kind === 'introduced' && version === '0') || placeOf(kind, version, order) !== undefined
  return ranges.map((range) => {
    return { ...range, events: range.events.filter((event) => Object.entries(event).every(isRead)) }
  })
}

/**
 * Creates the function that says whether ranges of one order affect a version; null: the version cannot be read. Returns null
 * when the ranges cannot be ordered.
 */
export function createRangeTest(
  ranges: readonly AffectedRange[],
  order: VersionOrder,
): ((version: string) => boolean | null) | null {
  const spans = isTooMany(ranges) ? null : spansOf(ranges, order)
  if (spans === null) return null
  return (version) => {
    const key = order.read(version)
    if (key === null) return null
    const at = { key, behind: false, fixed: false }
    return spans.some(({ from, to }) => {
      if (to !== null && compareBoundaries(to, at, order) <= 0) return false
      return compareStarts(from, at, order) <= 0
    })
  }
}

function isTooMany(ranges: readonly AffectedRange[]): boolean {
  const events = ranges.flatMap((range) => range.events)
  if (events.length > MAX_EVENTS) return true
  const versions = events.flatMap((event) => Object.values(event))
  return versions.reduce((sum, { length }) => sum + length, 0) > MAX_CHARACTERS
}

/** The parts of spans in order that are in none of the others, each with the span of which it is a part. */
function subtract(old: readonly Span[], now: readonly Span[], order: VersionOrder): { from: Boundary; within: Span }[] {
  const lost: { from: Boundary; within: Span }[] = []
  let first = 0
  for (const within of old) {
    for (; first < now.length; first++) {
      const end = now[first]?.to
      if (end === null || (end !== undefined && compareToStart(end, within.from, order) > 0)) break
    }
    let from: Boundary | undefined = within.from
    for (const other of rest(now, first)) {
      if (within.to !== null && compareToStart(within.to, other.from, order) <= 0) break
      if (compareStarts(from, other.from, order) < 0) lost.push({ from, within })
      from = endsBefore(other.to, within.to, order) ? other.to : undefined
      if (from === undefined) break
    }
    if (from !== undefined) lost.push({ from, within })
  }
  return lost
}

function* rest<Value>(values: readonly Value[], from: number): Generator<Value> {
  for (let at = from; at < values.length; at++) yield values[at] as Value
}

function endsBefore(one: Boundary, other: Boundary, order: VersionOrder): boolean {
  return one !== null && (other === null || compareBoundaries(one, other, order) < 0)
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
      joined.push(withFix(span, [span], order))
    else {
      const both = { from: last.from, to: later(last.to, span.to, order) }
      joined[joined.length - 1] = withFix(both, [last, span], order)
    }
  }
  return joined
}

/** Adds the first of the fixes that end some spans. */
function withFix(span: Span, parts: readonly Span[], order: VersionOrder): Span {
  const fixes = parts.flatMap(({ to, fix }) => fix ?? (to?.fixed === true ? to : []))
  const [first, ...more] = fixes
  if (first === undefined) return { from: span.from, to: span.to }
  const fix = more.reduce((a, b) => (compareBoundaries(a, b, order) <= 0 ? a : b), first)
  return { from: span.from, to: span.to, fix }
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
  turns.sort((one, other) => compareStarts(one.at, other.at, order))
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
  return key === null ? undefined : { key, behind: kind === 'last_affected', fixed: kind === 'fixed' }
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
