import { isMeant } from '../../../base/identity/meant.ts'
import { normalName } from '../../../base/identity/names.ts'
import { recordedPackage } from '../../../base/identity/recorded.ts'
import { type Ecosystem, findEcosystem, openVersion } from '../../../base/versions/ecosystems.ts'
import { type Fields, eachObject, fieldsOf, isObject } from '../../../base/json/objects.ts'
import { type VersionOrder, numbersInTag } from '../../../base/versions/order.ts'
import type { Steps } from '../../../base/pacing.ts'
import { type BuildVerdict, compareBuilds } from './builds.ts'
import { type AskedVersion, type Pace, createPace, isBuildOf, isIncluded } from './ranges.ts'
import { parseDate } from '../../../base/time.ts'
import { orderOfType } from '../../../base/versions/semver.ts'

/** The part of an OSV record that names what it affects, as parsed from JSON: no field is certain. */
export interface OsvRecord {
  readonly id?: unknown
  readonly modified?: unknown
  readonly withdrawn?: unknown
  readonly summary?: unknown
  readonly affected?: unknown
}

/** What is looked for. */
export interface Asked {
  /** Null: any. */
  readonly ecosystem: Ecosystem | null
  readonly name: string
  readonly version: AskedVersion
  /** Whether ranges are passed over. */
  readonly isListedOnly?: boolean
  /** The stream of the module that an rpm was built for; null: it is not known; absent: all streams are compared, as osv.dev does. */
  readonly stream?: string | null
}

/** Why a record about a package says nothing about a version of it. */
export type Uncompared =
  /** It has a range, and its ecosystem has no order of versions. */
  | 'no_order'
  /** It has a range, and the order cannot read the version. */
  | 'version'
  /** It names commits alone. */
  | 'commits'
  /** A bound that decides, or a version that is listed, cannot be read or is missing. */
  | 'bounds'
  /** It names neither versions nor ranges. */
  | 'no_versions'
  /** The epoch of the version is not known, and decides. */
  | 'epoch'
  /** It is one of several versions, and the record tells these apart. */
  | 'open'
  /** A vendor's patch alone puts it behind the fix: what is patched comes before that. */
  | 'patch'
  /** It was built for a module, and the fix may be of another stream of that. */
  | 'stream'

/**
 * What a record says about a package in a version; `likely`: affected, where the fix is of its stream, which is not known; `other`:
 * nothing, it is about other packages or withdrawn.
 */
export type VersionVerdict = 'affected' | 'likely' | 'clear' | 'other' | Uncompared

/**
 * Evaluates whether a record affects a package in a version, as the OSV schema defines: listed among `versions`, or inside
 * a range of type SEMVER or ECOSYSTEM. Ranges of commits are ignored; a withdrawn record affects nothing, as at
 * osv.dev. A version that the ecosystem's order cannot parse is only looked for in the list. What could not be compared with
 * the version is not taken for clear. `vendor`: the prefix that was removed from the record's ecosystems; the vendor's order
 * still applies. In steps, because a record may be long.
 */
export function* concerns(record: OsvRecord, asked: Asked, vendor?: string): Steps<VersionVerdict> {
  if (isWithdrawn(record)) return 'other'
  const pace = createPace()
  const beginning = asked.ecosystem === null ? null : openVersion(asked.ecosystem, asked.version.text)
  let verdict: VersionVerdict = 'other'
  for (const affected of eachObject(record.affected)) {
    if (pace.isOver()) yield
    const order = orderFor(record, affected, asked, vendor)
    if (order === undefined) continue
    const part = asked.isListedOnly === true ? { versions: affected['versions'] } : affected
    const own = yield* isAffected(part, asked.version, order, pace)
    const isOfStream = buildOf(record, affected, asked, order) === 'same'
    if (own === 'affected' && isOfStream) return own
    if (own === 'affected') verdict = 'likely'
    if (verdict !== 'other' && verdict !== 'clear') continue
    verdict = own
    if (own !== 'clear') continue
    if (beginning !== null && namesWithin(affected, beginning)) verdict = 'open'
    else if (!isOfStream) verdict = 'stream'
  }
  return verdict
}

/** Whether a bound or a listed version is one of those that begin so: then not all of these are alike. */
function namesWithin({ versions, ranges }: Fields, beginning: string): boolean {
  const bounds = eachObject(ranges).flatMap(({ events }) => eachObject(events).flatMap((one) => Object.values(one)))
  const listed: readonly unknown[] = Array.isArray(versions) ? versions : []
  return [...bounds, ...listed].some((one) => {
    const plain = typeof one === 'string' ? one.trim().replace(/^v/i, '') : ''
    return plain.startsWith(beginning) && !/^\d/.test(plain.slice(beginning.length))
  })
}

/** Whether a record was withdrawn by now: a date that lies ahead, or cannot be read, takes nothing back yet. `now`: Unix milliseconds. */
export function isWithdrawn({ withdrawn }: OsvRecord, now = Date.now()): boolean {
  const at = typeof withdrawn === 'string' ? parseDate(withdrawn) : null
  return at !== null && at <= now
}

/** The order by which a version of the package is judged; undefined when another package, or stream of it, is meant. */
export function orderFor(
  record: OsvRecord,
  affected: Fields,
  asked: Asked,
  vendor: string | undefined,
): VersionOrder | null | undefined {
  const { ecosystem, name } = asked
  const of = recordedPackage(affected)
  if (of === null) return undefined
  const { ecosystem: recorded, name: named } = of
  if (ecosystem !== null && !isMeant(recorded, ecosystem.name)) return undefined
  const own = findEcosystem(vendor === undefined ? recorded : `${vendor}:${recorded}`)
  const base = own?.base ?? null
  if (normalName(base, named) !== normalName(base, name)) return undefined
  const order = own?.order ?? null
  return buildOf(record, affected, asked, order) === 'other' ? undefined : order
}

/** Reports whether a record is about a package, in whatever version. */
export function isNamed(record: OsvRecord, asked: Asked, vendor: string | undefined): boolean {
  for (const affected of eachObject(record.affected))
    if (orderFor(record, affected, asked, vendor) !== undefined) return true
  return false
}

function buildOf(
  { summary }: OsvRecord,
  affected: Fields,
  { version, stream }: Asked,
  order: VersionOrder | null,
): BuildVerdict {
  if (stream === undefined || version.text === '') return 'same'
  return compareBuilds(summary, affected, { version: version.text, stream }, order)
}

/**
 * Evaluates one element of a record's `affected`, which is about the package; `order`: of `orderFor`. By the OSV schema a
 * version is affected that is listed or in a range, and a list beside a range of versions is recommended, not required to be
 * complete. So a version is clear where each such range could be compared. A range of commits says nothing about versions: the
 * list beside one is all that the record says of them, and is complete.
 */
export function* isAffected(
  affected: Fields,
  version: AskedVersion,
  order: VersionOrder | null,
  pace: Pace,
): Steps<Exclude<VersionVerdict, 'other' | 'likely'>> {
  if (version.text === '') return 'affected'
  const { versions, ranges } = affected
  if (yield* isListed(versions, version, order, pace)) return 'affected'
  let isUnread = !isListOf(versions, isVersion) || !isListOf(ranges, isObject)
  // A list is compared as text, in any ecosystem.
  let isCompared = Array.isArray(versions) && versions.length > 0
  let hasCommits = false
  let uncompared: Uncompared | null = null
  for (const range of eachObject(ranges)) {
    const own = yield* isInside(range, version, order, pace)
    if (own === 'affected') return own
    if (own === 'clear') isCompared = true
    else if (own === 'bounds') isUnread = true
    else if (own === 'commits') hasCommits = true
    else uncompared ??= own
  }
  if (hasCommits && order === null && isTagged(affected, version.text)) return 'affected'
  if (isUnread) return 'bounds'
  if (uncompared !== null) return uncompared
  if (isCompared) return 'clear'
  return hasCommits ? 'commits' : 'no_versions'
}

/** Whether a list beside commits has a tag of a version. */
function isTagged({ versions, package: of }: Fields, version: string): boolean {
  const { name } = fieldsOf(of)
  const numbers = numbersInTag(version, name)
  const tags: readonly unknown[] = Array.isArray(versions) ? versions : []
  return numbers !== '' && tags.some((tag) => typeof tag === 'string' && numbersInTag(tag, name) === numbers)
}

/** Whether a field of a record is absent, or a list of nothing else. */
function isListOf(field: unknown, is: (one: unknown) => boolean): boolean {
  if (field === undefined || field === null) return true
  return Array.isArray(field) && field.every(is)
}

function isVersion(listed: unknown): boolean {
  return typeof listed === 'string' && listed.trim() !== ''
}

/** Listed as it is written, or as another text for the same version: 3.1 and 3.1.0 are one for PyPI. */
function* isListed(versions: unknown, version: AskedVersion, order: VersionOrder | null, pace: Pace): Steps<boolean> {
  if (!Array.isArray(versions)) return false
  if (versions.includes(version.text)) return true
  const key = order && version.keyOf(order)
  if (order === null || key === null) return false
  for (const listed of versions as unknown[]) {
    if (pace.isOver()) yield
    const other = typeof listed === 'string' ? order.read(listed) : null
    if (other !== null && (order.compare(other, key) === 0 || isBuildOf(version, listed, order))) return true
  }
  return false
}

function* isInside(
  range: Fields,
  version: AskedVersion,
  own: VersionOrder | null,
  pace: Pace,
): Steps<Exclude<VersionVerdict, 'other' | 'likely'>> {
  if (pace.isOver()) yield
  const { type, events } = range
  if (type === 'GIT') return 'commits'
  const order = orderOfType(type, own)
  if (order === null) return own === null ? 'no_order' : 'bounds'
  if (version.keyOf(order) === null) return 'version'
  const found = yield* isIncluded(events, version, order, pace)
  return found === 'clear' && fieldsOf(range['database_specific'])['unread_bounds'] === true ? 'bounds' : found
}

/** What the own fields of a range say of which bounds that cannot be read were left out, by `confirmedEvents`. */
export const UNREAD_BOUNDS = { unread_bounds: true } as const
