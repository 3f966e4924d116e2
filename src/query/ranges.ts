import { eachObject } from './fields.ts'
import type { VersionOrder } from './order.ts'
import type { Pace, Steps } from './pace.ts'

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
 * the version, the last one in the order of versions says whether it is affected: so they are walked once, as they stand.
 * An event that cannot be read is passed over.
 */
export function* isIncluded(
  events: unknown,
  key: unknown,
  order: VersionOrder,
  pace: Pace,
): Steps<boolean> {
  let last: Event | null = null
  let limited = false
  let beforeLimit = false
  for (const fields of eachObject(events)) {
    for (const kind of KINDS) {
      if (pace.isOver()) yield
      const place = placeOf(kind, fields[kind], order)
      if (place === null) continue
      const after = place === 'start' ? 1 : place === 'end' ? -1 : order.compare(key, place.key)
      if (kind === 'limit') {
        limited = true
        beforeLimit ||= after < 0
      } else if (kind === 'last_affected' ? after > 0 : after >= 0) {
        const event: Event = { kind, place }
        if (last === null || compareEvents(event, last, order) >= 0) last = event
      }
    }
  }
  return last?.kind === 'introduced' && (!limited || beforeLimit)
}

function placeOf(kind: Event['kind'], text: unknown, order: VersionOrder): Place | null {
  if (typeof text !== 'string' || text === '') return null
  if (kind === 'introduced' && text === '0') return 'start'
  if (kind === 'limit' && text === '*') return 'end'
  const key = order.read(text)
  return key === null ? null : { key }
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
