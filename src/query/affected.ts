import { type Ecosystem, findEcosystem, isMeant, normalName } from './ecosystems.ts'
import type { VersionOrder } from './order.ts'
import { semverOrder } from './semver.ts'

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
export interface AskedVersion {
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

type Fields = Readonly<Record<string, unknown>>

const KINDS = ['introduced', 'last_affected', 'fixed', 'limit'] as const

interface Event {
  readonly kind: (typeof KINDS)[number]
  readonly text: string
}

/**
 * Whether a record concerns a package in a version, by the evaluation of the OSV schema: listed among `versions`, or inside
 * a range of type SEMVER or ECOSYSTEM. Ranges of commits say nothing here; a withdrawn record concerns nobody, as at
 * osv.dev. A version that the ecosystem's order cannot read is only looked for in the list. `vendor`: the prefix that was
 * taken off the record's ecosystems, whose order is the vendor's still.
 */
export function concerns(record: OsvRecord, asked: Asked, vendor?: string): boolean {
  if (typeof record.withdrawn === 'string' && record.withdrawn !== '') return false
  return listOf(record.affected).some((affected) => isAffected(affected, asked, vendor))
}

function isAffected(
  affected: Fields,
  { ecosystem, name, version }: Asked,
  vendor: string | undefined,
): boolean {
  const { ecosystem: recorded, name: named } = fieldsOf(affected['package'])
  if (typeof recorded !== 'string' || typeof named !== 'string') return false
  if (!isMeant(recorded, ecosystem.name)) return false
  const own = findEcosystem(vendor === undefined ? recorded : `${vendor}:${recorded}`)
  if (normalName(own?.base ?? null, named) !== normalName(own?.base ?? null, name)) return false
  if (version.text === '') return true
  const order = own?.order ?? null
  return (
    isListed(affected['versions'], version, order) ||
    listOf(affected['ranges']).some((range) => isInside(range, version, order))
  )
}

/** Listed as it is written, or as another text for the same version: 3.1 and 3.1.0 are one for PyPI. */
function isListed(versions: unknown, version: AskedVersion, order: VersionOrder | null): boolean {
  if (!Array.isArray(versions)) return false
  if (versions.includes(version.text)) return true
  const key = order && version.keyOf(order)
  if (order === null || key === null) return false
  return versions.some((listed) => {
    const other = typeof listed === 'string' ? order.read(listed) : null
    return other !== null && order.compare(other, key) === 0
  })
}

function isInside(range: Fields, version: AskedVersion, own: VersionOrder | null): boolean {
  const { type } = range
  const order = type === 'SEMVER' ? semverOrder : type === 'ECOSYSTEM' ? own : null
  const key = order && version.keyOf(order)
  return order !== null && key !== null && walk(eventsOf(range), key, order)
}

/** The OSV schema's IncludedInRanges and BeforeLimits. An event that cannot be read is passed over. */
function walk(events: readonly Event[], key: unknown, order: VersionOrder): boolean {
  const placed = events
    .map((event) => ({ ...event, place: placeOf(event, order) }))
    .filter(({ place }) => place !== null)
    .sort((one, other) => comparePlaces(one, other, order))
  const side = (place: Place): number =>
    place === 'start' ? 1 : place === 'end' ? -1 : order.compare(key, place.key)
  let affected = false
  let limited = false
  let beforeLimit = false
  for (const { kind, place } of placed) {
    if (place === null) continue
    const after = side(place)
    if (kind === 'introduced' && after >= 0) affected = true
    else if (kind === 'fixed' && after >= 0) affected = false
    else if (kind === 'last_affected' && after > 0) affected = false
    else if (kind === 'limit') {
      limited = true
      beforeLimit ||= after < 0
    }
  }
  return affected && (!limited || beforeLimit)
}

/** `introduced: "0"` is before every version, `limit: "*"` behind every one. */
type Place = 'start' | 'end' | { readonly key: unknown }

function placeOf({ kind, text }: Event, order: VersionOrder): Place | null {
  if (kind === 'introduced' && text === '0') return 'start'
  if (kind === 'limit' && text === '*') return 'end'
  const key = order.read(text)
  return key === null ? null : { key }
}

interface Placed extends Event {
  readonly place: Place | null
}

function comparePlaces(one: Placed, other: Placed, order: VersionOrder): number {
  const ends = endOf(one.place) - endOf(other.place)
  if (ends !== 0) return ends
  const [a, b] = [one.place, other.place]
  const versions =
    typeof a === 'object' && typeof b === 'object' && a !== null && b !== null
      ? order.compare(a.key, b.key)
      : 0
  return versions || KINDS.indexOf(one.kind) - KINDS.indexOf(other.kind)
}

function endOf(place: Place | null): number {
  return place === 'start' ? -1 : place === 'end' ? 1 : 0
}

function eventsOf(range: Fields): Event[] {
  return listOf(range['events']).flatMap((event) =>
    KINDS.flatMap((kind) => {
      const text = event[kind]
      return typeof text === 'string' && text !== '' ? [{ kind, text }] : []
    }),
  )
}

/** The objects of a JSON list; nothing of anything else. */
function listOf(value: unknown): Fields[] {
  return Array.isArray(value)
    ? value.filter((item): item is Fields => typeof item === 'object' && item !== null)
    : []
}

function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {}
}
