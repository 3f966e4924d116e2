import { type Ecosystem, findEcosystem, isMeant, normalName } from './ecosystems.ts'
import { type Fields, eachObject, fieldsOf } from './fields.ts'
import type { VersionOrder } from './order.ts'
import { type Pace, type PacedSteps, createPace } from './pace.ts'
import { isIncluded } from './ranges.ts'
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
