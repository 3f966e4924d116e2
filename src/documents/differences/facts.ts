import { type Fields, eachObject, fieldsOf, isObject } from '../../base/json/objects.ts'
import { normalName } from '../../base/identity/names.ts'
import { recordedPackage } from '../../base/identity/recorded.ts'
import { findEcosystem } from '../../base/versions/ecosystems.ts'

/** A package as a record names it; both texts are empty where an entry of `affected` names none, as for commits. */
export interface PackageName {
  readonly ecosystem: string
  readonly name: string
}

/** An event of a range: its kind (`introduced`, `fixed`, `last_affected` or `limit`), and a version or commit. */
type RangeEvent = Readonly<Record<string, string>>

/** A range of affected versions, as the record has it: `SEMVER`, `ECOSYSTEM`, `GIT`, and events such as `introduced`. */
export interface AffectedRange {
  readonly type: string
  readonly repo: string | null
  readonly events: readonly RangeEvent[]
  /** Present where a bound is no text, such as the number 0: no order reads it, and it is shown as JSON with a note. */
  readonly isUnreadable?: true
}

/** A severity: where it is said, such as `CVSS_V3` or `database_specific`, and the vector or word. */
type Severity = readonly [scale: string, value: string]

/** What a record says about one package, over all entries of `affected` that name it. */
export interface PackageFacts {
  readonly package: PackageName
  readonly ranges: readonly AffectedRange[]
  readonly versions: ReadonlySet<string>
  readonly severity: readonly Severity[]
}

/** The part of a record that is compared by meaning. */
export interface RecordFacts {
  /** Null when the record is not withdrawn. */
  readonly withdrawn: string | null
  readonly aliases: ReadonlySet<string>
  readonly severity: readonly Severity[]
  /** By the texts of `packageText`. */
  readonly packages: ReadonlyMap<string, PackageFacts>
}

/** Events of a range in the order in which they are shown. */
export const EVENT_KINDS: readonly string[] = ['introduced', 'fixed', 'last_affected', 'limit']

/** Reads the facts of a record as parsed from JSON: no field is certain, and what has another type counts as absent. */
export function factsOf(record: unknown): RecordFacts {
  const fields = fieldsOf(record)
  return {
    withdrawn: textOrNull(fields['withdrawn']),
    aliases: new Set(textsIn(fields['aliases'])),
    severity: severityOf(fields),
    packages: packagesOf(fields['affected']),
  }
}

function packagesOf(affected: unknown): ReadonlyMap<string, PackageFacts> {
  const packages = new Map<string, CollectedFacts>()
  for (const entry of eachObject(affected)) {
    const named = packageOf(entry)
    const key = packageText(named)
    let facts = packages.get(key)
    if (facts === undefined)
      packages.set(key, (facts = { package: named, ranges: [], versions: new Set(), severity: [] }))
    for (const range of eachObject(entry['ranges'])) facts.ranges.push(rangeOf(range))
    for (const version of textsIn(entry['versions'])) facts.versions.add(version)
    for (const severity of severityOf(entry)) facts.severity.push(severity)
  }
  return packages
}

/** Facts to which each entry adds its own: copying them for each entry would take quadratic time. */
interface CollectedFacts extends PackageFacts {
  readonly ranges: AffectedRange[]
  readonly versions: Set<string>
  readonly severity: Severity[]
}

function packageOf(entry: Fields): PackageName {
  const { ecosystem, name } = fieldsOf(entry['package'])
  // scanners read an ecosystem as it is written
  const named = textOrNull(ecosystem) === null ? recordedPackage(entry) : null
  return named ?? { ecosystem: textOrNull(ecosystem) ?? '', name: textOrNull(name) ?? '' }
}

/** Returns the text by which a package is recognized, whatever way its ecosystem allows to write the name; '' for none. */
export function packageText(named: PackageName | null): string {
  if (named === null) return ''
  const { ecosystem, name } = named
  const base = findEcosystem(ecosystem)?.base ?? null
  return JSON.stringify([ecosystem, normalName(base, name)])
}

function rangeOf(range: Fields): AffectedRange {
  const bounds = [...eachObject(range['events'])].flatMap((event) =>
    EVENT_KINDS.map((kind) => ({ kind, version: event[kind] })).filter(({ version }) => isBound(version)),
  )
  const events = bounds.map(({ kind, version }): RangeEvent => ({ [kind]: boundText(version) }))
  const read = { type: textOrNull(range['type']) ?? '', repo: textOrNull(range['repo']), events }
  const isText = bounds.every(({ version }) => typeof version === 'string')
  return isText ? read : { ...read, isUnreadable: true }
}

function isBound(version: unknown): boolean {
  return version !== undefined && version !== null && version !== ''
}

function boundText(version: unknown): string {
  return typeof version === 'string' ? version : `${canonicalText(version)} (no text)`
}

/** The vectors of `severity`, and the word that databases put into their own fields. */
function severityOf(fields: Fields): Severity[] {
  const scored = [...eachObject(fields['severity'])].flatMap(({ type, score }): Severity[] =>
    typeof score === 'string' && score !== '' ? [[textOrNull(type) ?? '', score]] : [],
  )
  const words = ['database_specific', 'ecosystem_specific'].flatMap((place): Severity[] => {
    const own = fields[place]
    const word = isObject(own) ? textOrNull(own['severity']) : null
    return word === null ? [] : [[place, word]]
  })
  return [...scored, ...words]
}

/** Nesting within which JSON values are compared; what is nested deeper counts as different. */
const MAX_DEPTH = 100

/** Returns JSON as a text that is equal for equal values, whatever the order of members. */
export function canonicalText(value: unknown, depth = 0): string {
  if (depth > MAX_DEPTH) return '…'
  if (Array.isArray(value)) return `[${value.map((one) => canonicalText(one, depth + 1)).join()}]`
  if (!isObject(value)) return value === undefined ? '' : JSON.stringify(value)
  const members = Object.keys(value).sort()
  return `{${members.map((name) => `${JSON.stringify(name)}:${canonicalText(value[name], depth + 1)}`).join()}}`
}

/** Returns the texts of a list; what is none counts as absent. */
export function textsIn(value: unknown): string[] {
  if (!Array.isArray(value)) return []
  return (value as unknown[]).filter((one) => typeof one === 'string')
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}
