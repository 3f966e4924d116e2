import { type Fields, eachObject, fieldsOf } from '../json/objects.ts'
import {
  type AffectedRange,
  type PackageFacts,
  type PackageName,
  type RecordFacts,
  canonicalText,
  factsOf,
} from './facts.ts'
import type { RecordDifference } from './difference.ts'
import { fixDifferences } from './fixes.ts'
import { compareRanges } from './spans.ts'

/**
 * Compares two versions of an OSV record, as parsed from JSON; null: the record did not exist. A new record has its
 * facts as differences from nothing, a removed one only that. No fields are certain, and nothing is guessed: what cannot
 * be ordered "changed". Empty when both mean the same and say so in the same fields.
 */
export function differencesOf(before: unknown, after: unknown): RecordDifference[] {
  if (after === null) return before === null ? [] : [{ kind: 'record_removed' }]
  const judged = judgedDifferences(factsOf(before), factsOf(after))
  if (before === null) return [{ kind: 'record_added' }, ...judged]
  const [old, now] = [fieldsOf(before), fieldsOf(after)]
  const fields = otherFields(old, now)
  if (fields.length > 0) return [...judged, { kind: 'other_changed', fields }]
  const [from, to] = [old['modified'], now['modified']].map((one) => typeof one === 'string' ? one : null) // prettier-ignore
  if (judged.length > 0 || from === to) return judged
  return [{ kind: 'modified_only', from: from ?? null, to: to ?? null }]
}

/** A package without facts, for one that only one of the versions names. */
const NOTHING = { ranges: [], versions: new Set<string>(), severity: [] }

function judgedDifferences(old: RecordFacts, now: RecordFacts): RecordDifference[] {
  const keys = [...new Set([...old.packages.keys(), ...now.packages.keys()])].sort()
  return [
    ...withdrawalDifferences(old.withdrawn, now.withdrawn),
    ...keys.flatMap((key) => packageDifferences(old.packages.get(key), now.packages.get(key))),
    ...severityDifferences(null, old.severity, now.severity),
    ...setDifferences(old.aliases, now.aliases, (added, aliases) => {
      return { kind: added ? 'aliases_added' : 'aliases_removed', aliases }
    }),
  ]
}

function withdrawalDifferences(from: string | null, to: string | null): RecordDifference[] {
  if (from === to) return []
  const kind =
    from === null ? 'withdrawn' : to === null ? 'no_longer_withdrawn' : 'withdrawal_changed'
  return [{ kind, from, to }]
}

function packageDifferences(
  before: PackageFacts | undefined,
  after: PackageFacts | undefined,
): RecordDifference[] {
  const named = (after ?? before)?.package
  if (named === undefined) return []
  if (after === undefined) return [{ kind: 'package_removed', package: named }]
  const old = before ?? { package: named, ...NOTHING }
  return [
    ...(before === undefined ? [{ kind: 'package_added', package: named } as const] : []),
    ...fixDifferences(named, old.ranges, after.ranges),
    ...rangeDifferences(named, old.ranges, after.ranges),
    ...setDifferences(old.versions, after.versions, (added, versions) => {
      return { kind: added ? 'versions_added' : 'versions_removed', package: named, versions }
    }),
    ...severityDifferences(named, old.severity, after.severity),
  ]
}

function rangeDifferences(
  named: PackageName,
  before: readonly AffectedRange[],
  after: readonly AffectedRange[],
): RecordDifference[] {
  const removed = without(before, after)
  const added = without(after, before)
  if (removed.length + added.length === 0) return []
  const effect = compareRanges(before, after, named.ecosystem)
  const kind =
    before.length === 0
      ? 'range_added'
      : after.length === 0
        ? 'range_removed'
        : (`range_${effect}` as const)
  return [{ kind, package: named, added, removed }]
}

/** The values of one list that the other has less often. */
function without<Value>(values: readonly Value[], other: readonly Value[]): Value[] {
  const left = new Map<string, number>()
  for (const value of other.map((one) => canonicalText(one)))
    left.set(value, (left.get(value) ?? 0) + 1)
  return values.filter((value) => {
    const text = canonicalText(value)
    const count = left.get(text) ?? 0
    left.set(text, count - 1)
    return count <= 0
  })
}

function severityDifferences(
  named: PackageName | null,
  before: RecordFacts['severity'],
  after: RecordFacts['severity'],
): RecordDifference[] {
  const [gone, come] = [without(before, after), without(after, before)].map((severities) =>
    Map.groupBy(severities, ([scale]) => scale),
  )
  const scales = new Set([...(gone?.keys() ?? []), ...(come?.keys() ?? [])])
  return [...scales].sort().flatMap((scale) => {
    const removed = gone?.get(scale) ?? []
    const added = come?.get(scale) ?? []
    return Array.from(
      { length: Math.max(removed.length, added.length) },
      (_, i): RecordDifference => {
        const [from, to] = [removed[i]?.[1] ?? null, added[i]?.[1] ?? null]
        return { kind: 'severity_changed', package: named, scale, from, to }
      },
    )
  })
}

function setDifferences(
  before: ReadonlySet<string>,
  after: ReadonlySet<string>,
  of: (added: boolean, values: string[]) => RecordDifference,
): RecordDifference[] {
  const added = [...after].filter((value) => !before.has(value))
  const removed = [...before].filter((value) => !after.has(value))
  return [
    ...(added.length > 0 ? [of(true, added)] : []),
    ...(removed.length > 0 ? [of(false, removed)] : []),
  ]
}

/** Fields that are compared by meaning, or are not compared. */
const COMPARED = new Set(['modified', 'withdrawn', 'aliases', 'severity'])

/** The names of the fields whose other content differs, such as `details`; of `affected`, what is not compared by meaning. */
function otherFields(before: Fields, after: Fields): string[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort()
  return names.filter(
    (name) =>
      !COMPARED.has(name) &&
      canonicalText(restOf(name, before[name])) !== canonicalText(restOf(name, after[name])),
  )
}

function restOf(name: string, value: unknown): unknown {
  if (name === 'database_specific' || name === 'ecosystem_specific') return wordless(value)
  if (name !== 'affected') return value
  return [...eachObject(value)].map(restOfEntry).filter((rest) => Object.keys(rest).length > 0)
}

/** What an entry of `affected` says beside what is compared by meaning. */
function restOfEntry(entry: Fields): Fields {
  const rest: Record<string, unknown> = { ...entry, versions: undefined, severity: undefined }
  rest['package'] = omit(fieldsOf(entry['package']), ['ecosystem', 'name'])
  rest['ranges'] = [...eachObject(entry['ranges'])]
    .map((range) => omit(range, ['type', 'repo', 'events']))
    .filter((more) => more !== undefined)
  for (const name of ['database_specific', 'ecosystem_specific']) rest[name] = wordless(rest[name])
  const isEmpty = (one: unknown): boolean =>
    one === undefined || (Array.isArray(one) && one.length === 0)
  return Object.fromEntries(Object.entries(rest).filter(([, one]) => !isEmpty(one)))
}

/** Undefined when nothing else is there. */
function omit(fields: Fields, names: readonly string[]): Fields | undefined {
  const rest = Object.entries(fields).filter(([name]) => !names.includes(name))
  return rest.length === 0 ? undefined : Object.fromEntries(rest)
}

/** A database's own fields without the word for the severity, which is compared by itself. */
function wordless(own: unknown): unknown {
  if (typeof own !== 'object' || own === null || Array.isArray(own)) return own
  const fields = own as Fields
  return typeof fields['severity'] === 'string' ? omit(fields, ['severity']) : own
}
