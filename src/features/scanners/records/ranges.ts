import { eachObject } from '../../../base/json/objects.ts'
import type { Steps } from '../../../base/pacing.ts'
import type { VersionOrder } from '../../../base/versions/order.ts'
import { patchedVersion } from '../../../base/versions/patches.ts'

/** A version that is compared with many. */
export type AskedVersion = ReturnType<typeof askVersion>

/** Prepares a version for comparison; '' means any. */
export function askVersion(text: string) {
  const keys = new Map<VersionOrder, unknown>()
  return {
    /** Empty: any version. */
    text,
    /** As an order reads it; each order reads it once. */
    keyOf(order: VersionOrder): unknown {
      if (!keys.has(order)) keys.set(order, order.read(text))
      return keys.get(order)
    },
  }
}

/** Whether a version is another build of one that is named. */
export function isBuildOf({ text }: AskedVersion, named: unknown, order: VersionOrder): boolean {
  return typeof named === 'string' && order.isBuildOf?.(text, named) === true
}

const KINDS = ['introduced', 'last_affected', 'fixed', 'limit'] as const

interface Event {
  readonly kind: (typeof KINDS)[number]
  readonly place: Place
  /** As it is written. */
  readonly text: unknown
}

/** `introduced: "0"` is before every version, `limit: "*"` behind every one. */
type Place = 'start' | 'end' | { readonly key: unknown }

/**
 * The OSV schema's IncludedInRanges and BeforeLimits, for a version as `order` parses it. Of all events that precede
 * the version, the last one in the order of versions decides whether it is affected, so they are visited once, in any order.
 *
 * An unreadable event is skipped. But a range with an unreadable upper bound (`fixed`,
 * `last_affected`, `limit`) only affects versions that a readable bound above them confirms: without one it is unknown where
 * the affected versions end, and so for a version behind which no readable introduction is but an unreadable one. Such a
 * version is `bounds`: what decides cannot be read. So is every version in a range without an introduction, which the OSV schema
 * requires: it is unknown where the affected versions begin. And so is one behind the end of a range that names another end above it:
 * by the schema it is clear. But of `3.0.15.root.io.1`, what a vendor patched, and 3.0.16, what upstream fixed, neither clears 3.0.15-2.
 *
 * A vendor's build comes behind fixes that what it patches lacks: `1.0-1.root.io.1` behind 1.0-1+deb12u1, `1.0-r00071` behind 1.0-r8. It
 * is affected where the range names a patch above it, and else `patch`.
 */
export function* isIncluded(
  events: unknown,
  version: AskedVersion,
  order: VersionOrder,
  pace: Pace,
): Steps<'affected' | 'clear' | 'bounds' | 'patch'> {
  const key = version.keyOf(order)
  let last: Event | null = null
  let next: Event | null = null
  let isOpen = false
  let isUnbegun = false
  let isBegun = false
  let limited = false
  let beforeLimit = false
  for (const fields of eachObject(events)) {
    for (const kind of KINDS) {
      if (pace.isOver()) yield
      const place = placeOf(kind, fields[kind], order)
      if (place === 'unreadable') {
        if (kind === 'introduced') isUnbegun = true
        else isOpen = true
      }
      if (place === null || place === 'unreadable') continue
      if (kind === 'introduced') isBegun = true
      const after = compareToPlace(key, place, order)
      if (kind === 'limit') {
        limited = true
        beforeLimit ||= after < 0
        continue
      }
      const event: Event = { kind, place, text: fields[kind] }
      const isLast = kind === 'last_affected' && (after <= 0 || isBuildOf(version, fields[kind], order))
      if (!isLast && (kind === 'last_affected' || after >= 0)) {
        if (last === null || compareEvents(event, last, order) >= 0) last = event
      } else if (next === null || compareEvents(event, next, order) < 0) next = event
    }
  }
  if (!isBegun) return 'bounds'
  if (limited && !beforeLimit) return 'clear'
  const isEndNext = next?.kind === 'fixed' || next?.kind === 'last_affected'
  if (last !== null && isBehindByPatch(version.text, last, order))
    return next?.kind === 'fixed' && patchOf(next.text, order) !== null ? 'affected' : 'patch'
  if (last?.kind === 'introduced') return !isOpen || isEndNext ? 'affected' : 'bounds'
  // An introduction that cannot be read may be before the version.
  if (isUnbegun) return 'bounds'
  const isFixed =
    last?.kind === 'fixed' && (compareToPlace(key, last.place, order) === 0 || isOfLine(version.text, last.text))
  return !isEndNext || (isFixed && next?.kind === 'fixed') ? 'clear' : 'bounds'
}

/** Whether what a vendor's build patches comes before an end of affected versions, which is none of such a build. */
function isBehindByPatch(version: string, { kind, text, place }: Event, order: VersionOrder): boolean {
  const plain = kind === 'introduced' || patchOf(text, order) !== null ? null : patchOf(version, order)
  const key = plain === null ? null : order.read(plain)
  return key !== null && compareToPlace(key, place, order) < Number(kind === 'last_affected')
}

function patchOf(version: unknown, order: VersionOrder): string | null {
  return typeof version === 'string' ? patchedVersion(version, order.hasRevisions) : null
}

/** Whether a version is one of those that continue a fixed one: only their last numbers differ, as in `2.0.root.io.1`, `2.0.root.io.3`. */
function isOfLine(version: string, fixed: unknown): boolean {
  const lineOf = (text: string): string => text.trim().replace(/^v/i, '').replace(/\d+$/, '')
  return typeof fixed === 'string' && lineOf(version) === lineOf(fixed)
}

/** Returns null for an event of another kind; a field that is null or empty counts as absent. */
function placeOf(kind: Event['kind'], text: unknown, order: VersionOrder): Place | 'unreadable' | null {
  if (text === undefined || text === null || text === '') return null
  if (typeof text !== 'string') return 'unreadable'
  if (kind === 'introduced' && text === '0') return 'start'
  if (kind === 'limit' && text === '*') return 'end'
  const key = order.read(text)
  return key === null ? 'unreadable' : { key }
}

/** Compares a version with a place: positive when the version comes after it. */
function compareToPlace(key: unknown, place: Place, order: VersionOrder): number {
  if (place === 'start') return 1
  return place === 'end' ? -1 : order.compare(key, place.key)
}

/** A fix and an introduction of one version count in the order of the record: what is fixed may be introduced again. */
function compareEvents(one: Event, other: Event, order: VersionOrder): number {
  const ends = endOf(one.place) - endOf(other.place)
  if (ends !== 0) return ends
  const versions =
    typeof one.place === 'object' && typeof other.place === 'object' ? order.compare(one.place.key, other.place.key) : 0
  return versions || Number(one.kind === 'last_affected') - Number(other.kind === 'last_affected')
}

function endOf(place: Place): number {
  if (place === 'start') return -1
  return place === 'end' ? 1 : 0
}

/**
 * Returns the part of a range that its readable events confirm, where an upper bound is unreadable: each introduction that
 * another bound ends, each readable bound. Null for a range whose upper bounds are all readable: it stays unchanged.
 */
export function confirmedEvents(events: unknown, order: VersionOrder): readonly object[] | null {
  const readable: Event[] = []
  let isOpen = false
  for (const fields of eachObject(events)) {
    for (const kind of KINDS) {
      const place = placeOf(kind, fields[kind], order)
      if (place === 'unreadable') isOpen ||= kind !== 'introduced'
      else if (place !== null) readable.push({ kind, place, text: fields[kind] })
    }
  }
  if (!isOpen) return null
  const limits = readable.filter(({ kind }) => kind === 'limit')
  const sorted = readable.filter(({ kind }) => kind !== 'limit').sort((one, other) => compareEvents(one, other, order))
  const ended = sorted.filter(
    ({ kind }, i) => kind !== 'introduced' || (sorted[i + 1]?.kind ?? 'introduced') !== 'introduced',
  )
  return [...ended, ...limits].map(({ kind, text }) => ({ [kind]: text }))
}

/** Versions and packages checked per step: a few milliseconds, in any order. */
const STRETCH = 1000

/** Counts what was looked at. */
export type Pace = ReturnType<typeof createPace>

/** Begins with a whole stretch. */
export function createPace() {
  let left = STRETCH
  return {
    /** Whether a stretch is over with this one. */
    isOver(): boolean {
      if (--left > 0) return false
      left = STRETCH
      return true
    },
  }
}
