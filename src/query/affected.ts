import { type Ecosystem, findEcosystem, isMeant, normalName } from './orders/ecosystems.ts'
import { type Fields, eachObject, fieldsOf } from '../json/objects.ts'
import type { VersionOrder } from './orders/order.ts'
import { type Pace, type PacedSteps, createPace } from './steps.ts'
import { semverOrder } from './orders/semver.ts'

/** The part of an OSV record that says whom it concerns, as read from JSON: nothing of it is certain. */
export interface OsvRecord {
  readonly id?: unknown
  readonly modified?: unknown
  readonly withdrawn?: unknown
  readonly affected?: unknown
}

/** What is looked for. */
export interface Asked {
  readonly ecosystem: Ecosystem
  readonly name: string
  readonly version: AskedVersion
}

/** A version that is compared with many. */
interface AskedVersion {
  /** Empty: any version. */
  readonly text: string
  /** As an order reads it; each order reads it once. */
  readonly keyOf: (order: VersionOrder) => unknown
}

/** Makes a version ready to be asked for; '' stands for any. */
export function askVersion(text: string): AskedVersion {
  const keys = new Map<VersionOrder, unknown>()
  return {
    text,
    keyOf(order) {
      if (!keys.has(order)) keys.set(order, order.read(text))
      return keys.get(order)
    },
  }
}

/**
 * Whether a record concerns a package in a version, by the evaluation of the OSV schema: listed among `versions`, or inside
 * a range of type SEMVER or ECOSYSTEM. Ranges of commits say nothing here; a withdrawn record concerns nobody, as at
 * osv.dev. A version that the ecosystem's order cannot read is only looked for in the list. `vendor`: the prefix that was
 * taken off the record's ecosystems, whose order is the vendor's still. In steps, for a record may be long.
 */
export function* concerns(record: OsvRecord, asked: Asked, vendor?: string): PacedSteps<boolean> {
  if (typeof record.withdrawn === 'string' && record.withdrawn !== '') return false
  const pace = createPace()
  for (const affected of eachObject(record.affected)) {
    if (pace.isOver()) yield
    const order = orderFor(affected, asked, vendor)
    if (order !== undefined && (yield* isAffected(affected, asked.version, order, pace)))
      return true
  }
  return false
}

/** The order by which a version of the package is judged; undefined when another package is meant. */
function orderFor(
  affected: Fields,
  { ecosystem, name }: Asked,
  vendor: string | undefined,
): VersionOrder | null | undefined {
  const { ecosystem: recorded, name: named } = fieldsOf(affected['package'])
  if (typeof recorded !== 'string' || typeof named !== 'string') return undefined
  if (!isMeant(recorded, ecosystem.name)) return undefined
  const own = findEcosystem(vendor === undefined ? recorded : `${vendor}:${recorded}`)
  const base = own?.base ?? null
  return normalName(base, named) === normalName(base, name) ? (own?.order ?? null) : undefined
}

function* isAffected(
  affected: Fields,
  version: AskedVersion,
  order: VersionOrder | null,
  pace: Pace,
): PacedSteps<boolean> {
  if (version.text === '') return true
  if (yield* isListed(affected['versions'], version, order, pace)) return true
  for (const range of eachObject(affected['ranges']))
    if (yield* isInside(range, version, order, pace)) return true
  return false
}

/** Listed as it is written, or as another text for the same version: 3.1 and 3.1.0 are one for PyPI. */
function* isListed(
  versions: unknown,
  version: AskedVersion,
  order: VersionOrder | null,
  pace: Pace,
): PacedSteps<boolean> {
  if (!Array.isArray(versions)) return false
  if (versions.includes(version.text)) return true
  const key = order && version.keyOf(order)
  if (order === null || key === null) return false
  for (const listed of versions as unknown[]) {
    if (pace.isOver()) yield
    const other = typeof listed === 'string' ? order.read(listed) : null
    if (other !== null && order.compare(other, key) === 0) return true
  }
  return false
}

function* isInside(
  range: Fields,
  version: AskedVersion,
  own: VersionOrder | null,
  pace: Pace,
): PacedSteps<boolean> {
  if (pace.isOver()) yield
  const { type, events } = range
  const order = type === 'SEMVER' ? semverOrder : type === 'ECOSYSTEM' ? own : null
  const key = order && version.keyOf(order)
  if (order === null || key === null) return false
  return yield* isIncluded(events, key, order, pace)
}

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
function* isIncluded(
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
