import { eachObject } from './fields.ts'
import type { VersionOrder } from './order.ts'
import type { Pace, PacedSteps } from './pace.ts'

/** In the order in which events of one version count: a version is affected that is introduced where another is fixed. */
const KINDS = ['introduced', 'last_affected', 'fixed', 'limit'] as const

interface Event {
  readonly kind: (typeof KINDS)[number]
  readonly place: Place
}

/** `introduced: "0"` is before every version, `limit: "*"` behind every one. */
type Place = 'start' | 'end' | { readonly key: unknown }

/**
 * The OSV schema's IncludedInRanges and BeforeLimits, for a version as `order` reads it. Of all events that come before
 * the version, the last one in the order of versions decides whether it is affected, so they are walked once, in any order.
 *
 * An event that cannot be read is passed over. But a range with an upper bound that cannot be read (`fixed`,
 * `last_affected`, `limit`) says of a version only what a readable bound above it confirms: without one nobody knows where
 * the affected versions end, and it must not be at the last of all.
 */
export function* isIncluded(
  events: unknown,
  key: unknown,
  order: VersionOrder,
  pace: Pace,
): PacedSteps<boolean> {
  let last: Event | null = null
  let next: Event | null = null
  let isOpen = false
  let limited = false
  let beforeLimit = false
  for (const fields of eachObject(events)) {
    for (const kind of KINDS) {
      if (pace.isOver()) yield
      const place = placeOf(kind, fields[kind], order)
      if (place === 'unreadable') isOpen ||= kind !== 'introduced'
      if (place === null || place === 'unreadable') continue
      const after = place === 'start' ? 1 : place === 'end' ? -1 : order.compare(key, place.key)
      if (kind === 'limit') {
        limited = true
        beforeLimit ||= after < 0
        continue
      }
      const event: Event = { kind, place }
      if (kind === 'last_affected' ? after > 0 : after >= 0) {
        if (last === null || compareEvents(event, last, order) >= 0) last = event
      } else if (next === null || compareEvents(event, next, order) < 0) next = event
    }
  }
  if (last?.kind !== 'introduced' || (limited && !beforeLimit)) return false
  return !isOpen || next?.kind === 'fixed' || next?.kind === 'last_affected'
}

/** Null for an event of another kind; a field that is null or empty says as little as one that is not there. */
function placeOf(
  kind: Event['kind'],
  text: unknown,
  order: VersionOrder,
): Place | 'unreadable' | null {
  if (text === undefined || text === null || text === '') return null
  if (typeof text !== 'string') return 'unreadable'
  if (kind === 'introduced' && text === '0') return 'start'
  if (kind === 'limit' && text === '*') return 'end'
  const key = order.read(text)
  return key === null ? 'unreadable' : { key }
}

function compareEvents(one: Event, other: Event, order: VersionOrder): number {
  const ends = endOf(one.place) - endOf(other.place)
  if (ends !== 0) return ends
  const versions =
    typeof one.place === 'object' && typeof other.place === 'object'
      ? order.compare(one.place.key, other.place.key)
      : 0
  return versions || KINDS.indexOf(one.kind) - KINDS.indexOf(other.kind)
}

function endOf(place: Place): number {
  return place === 'start' ? -1 : place === 'end' ? 1 : 0
}

/**
 * What of a range can be told from its readable events, where an upper bound cannot be read: each introduction that another
 * bound ends, each readable bound. Null for a range whose upper bounds can all be read, which is to stay as it is.
 */
export function confirmedEvents(events: unknown, order: VersionOrder): readonly object[] | null {
  const readable: (Event & { readonly text: unknown })[] = []
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
  const sorted = readable
    .filter(({ kind }) => kind !== 'limit')
    .sort((one, other) => compareEvents(one, other, order))
  const ended = sorted.filter(
    ({ kind }, i) =>
      kind !== 'introduced' || (sorted[i + 1]?.kind ?? 'introduced') !== 'introduced',
  )
  return [...ended, ...limits].map(({ kind, text }) => ({ [kind]: text }))
}
