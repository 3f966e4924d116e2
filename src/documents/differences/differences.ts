import { type Fields, eachObject, fieldsOf } from '../../base/json/objects.ts'
import {
  type AffectedRange,
  EVENT_KINDS,
  type PackageFacts,
  type PackageName,
  type RecordFacts,
  canonicalText,
  factsOf,
} from './facts.ts'
import type { FixDifference, RecordDifference } from './difference.ts'
import { changedFields } from './exact.ts'
import { compareRanges, orderOfRange } from './spans.ts'

/** A version of a record: its JSON, and the same as parsed, which loses digits of long numbers. */
export interface RecordText {
  readonly text: string
  readonly json: unknown
}

/**
 * Compares two versions of an OSV record; null: the record did not exist. A new record has its facts as differences from
 * nothing, a removed one only that. No fields are certain, and nothing is guessed: what cannot be ordered "changed", what
 * no kind describes is `other_changed`, and `modified_only` is said of texts that are equal as JSON in all else. Empty
 * when both are equal as JSON.
 */
export function differencesOf(before: RecordText | null, after: RecordText | null): RecordDifference[] {
  if (after === null) return before === null ? [] : [{ kind: 'record_removed' }]
  const judged = factDifferences(factsOf(before?.json), factsOf(after.json))
  if (before === null) return [{ kind: 'record_added' }, ...judged]
  const old = fieldsOf(before.json)
  const now = fieldsOf(after.json)
  const changed = changedFields(before.text, after.text)
  const fields = changed.filter((name) => name !== 'modified' && !isDescribed(name, judged, old, now))
  if (fields.length > 0) return [...judged, { kind: 'other_changed', fields }]
  if (judged.length > 0 || changed.length === 0) return judged
  const [from, to] = [old['modified'], now['modified']].map((one) => (typeof one === 'string' ? one : null))
  return [{ kind: 'modified_only', from: from ?? null, to: to ?? null }]
}

/** A package without facts, for one that only one of the versions names. */
const NOTHING = { ranges: [], versions: new Set<string>(), severity: [] }

/** Compares what two versions say by meaning, without the fields that no kind of difference is about. */
export function factDifferences(old: RecordFacts, now: RecordFacts): RecordDifference[] {
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
  return [{ kind: withdrawalKind(from, to), from, to }]
}

function withdrawalKind(from: string | null, to: string | null) {
  if (from === null) return 'withdrawn'
  return to === null ? 'no_longer_withdrawn' : 'withdrawal_changed'
}

function packageDifferences(before: PackageFacts | undefined, after: PackageFacts | undefined): RecordDifference[] {
  const named = (after ?? before)?.package
  if (named === undefined) return []
  if (after === undefined) return [{ kind: 'package_removed', package: named }]
  const old = before ?? { package: named, ...NOTHING }
  return [
    ...(before === undefined ? [{ kind: 'package_added', package: named } as const] : []),
    ...(isSameText(old.ranges, after.ranges)
      ? []
      : [...fixDifferences(named, old.ranges, after.ranges), ...rangeDifferences(named, old.ranges, after.ranges)]),
    ...setDifferences(old.versions, after.versions, (added, versions) => {
      return { kind: added ? 'versions_added' : 'versions_removed', package: named, versions }
    }),
    ...severityDifferences(named, old.severity, after.severity),
  ]
}

/** Most packages of a record that changed are as before: this takes a fraction of the time of a comparison. */
function isSameText(one: readonly AffectedRange[], other: readonly AffectedRange[]): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}

function rangeDifferences(
  named: PackageName,
  before: readonly AffectedRange[],
  after: readonly AffectedRange[],
): RecordDifference[] {
  const [removed, added] = exclusive(before, after)
  if (removed.length + added.length === 0) return []
  return [{ kind: rangeKind(before, after, named.ecosystem), package: named, added, removed }]
}

function rangeKind(before: readonly AffectedRange[], after: readonly AffectedRange[], ecosystem: string) {
  if (before.length === 0) return 'range_added'
  if (after.length === 0) return 'range_removed'
  return `range_${compareRanges(before, after, ecosystem)}` as const
}

/** The values of each list that the other has less often. */
function exclusive<Value>(before: readonly Value[], after: readonly Value[]): [removed: Value[], added: Value[]] {
  const [old, now] = [before, after].map((values) => values.map((one) => canonicalText(one))) as [string[], string[]]
  if (old.length === now.length && old.every((text, i) => text === now[i])) return [[], []]
  return [without(before, old, now), without(after, now, old)]
}

/** The values, with their texts, of which there are fewer in other texts. */
function without<Value>(values: readonly Value[], texts: string[], other: string[]): Value[] {
  const left = new Map<string, number>()
  for (const text of other) left.set(text, (left.get(text) ?? 0) + 1)
  return values.filter((_, i) => {
    const count = left.get(texts[i] ?? '') ?? 0
    left.set(texts[i] ?? '', count - 1)
    return count <= 0
  })
}

function severityDifferences(
  named: PackageName | null,
  before: RecordFacts['severity'],
  after: RecordFacts['severity'],
): RecordDifference[] {
  if (before.length + after.length === 0) return []
  const [gone, come] = exclusive(before, after).map((severities) => Map.groupBy(severities, ([scale]) => scale))
  const scales = new Set([...(gone?.keys() ?? []), ...(come?.keys() ?? [])])
  return [...scales].sort().flatMap((scale) => {
    const removed = gone?.get(scale) ?? []
    const added = come?.get(scale) ?? []
    return Array.from({ length: Math.max(removed.length, added.length) }, (_, i): RecordDifference => {
      const from = removed[i]?.[1] ?? null
      const to = added[i]?.[1] ?? null
      return { kind: 'severity_changed', package: named, scale, from, to }
    })
  })
}

function setDifferences(
  before: ReadonlySet<string>,
  after: ReadonlySet<string>,
  of: (added: boolean, values: string[]) => RecordDifference,
): RecordDifference[] {
  const added = [...after].filter((value) => !before.has(value))
  const removed = [...before].filter((value) => !after.has(value))
  return [...(added.length > 0 ? [of(true, added)] : []), ...(removed.length > 0 ? [of(false, removed)] : [])]
}

/** Whether the differences say all that changed in a field: they are about it, and the rest of it is equal. */
function isDescribed(name: string, judged: readonly RecordDifference[], before: Fields, after: Fields): boolean {
  if (!judged.some((one) => fieldOf(one) === name)) return false
  const [old, now] = [restOf(name, before[name]), restOf(name, after[name])].map((rest) => canonicalText(rest))
  return old === now
}

/** The field of a record that a difference is about. */
function fieldOf(one: RecordDifference): string | null {
  if ('package' in one && one.package !== null) return 'affected'
  if ('aliases' in one) return 'aliases'
  if (one.kind === 'severity_changed') return OWN_FIELDS.includes(one.scale) ? one.scale : 'severity'
  return one.kind.startsWith('with') || one.kind === 'no_longer_withdrawn' ? 'withdrawn' : null
}

/** Fields of a database's own. */
export const OWN_FIELDS = ['database_specific', 'ecosystem_specific']

/** What a field says beside what is compared by meaning. */
function restOf(name: string, value: unknown): unknown {
  if (OWN_FIELDS.includes(name)) return wordless(value)
  if (name === 'withdrawn') return undefined
  if (name === 'aliases') return otherThanTexts(value)
  if (name === 'severity') return otherSeverity(value)
  return [...eachObject(value)].map(restOfEntry).filter((rest) => rest !== null)
}

function otherThanTexts(value: unknown): unknown {
  if (value === undefined) return []
  return Array.isArray(value) ? value.filter((one) => typeof one !== 'string') : value
}

function otherSeverity(value: unknown): unknown[] {
  return [...eachObject(value)]
    .map((one) => (typeof one['score'] === 'string' ? omit(one, ['type', 'score']) : one))
    .filter((more) => more !== undefined)
}

/** What an entry of `affected` says beside what is compared by meaning, with the package of which it says it; null: nothing. */
function restOfEntry(entry: Fields): Fields | null {
  const named = fieldsOf(entry['package'])
  const rest: Record<string, unknown> = {
    ...entry,
    versions: otherThanTexts(entry['versions']),
    severity: otherSeverity(entry['severity']),
    package: omit(named, ['ecosystem', 'name']),
    ranges: [...eachObject(entry['ranges'])].map(restOfRange).filter((more) => more !== undefined),
  }
  for (const name of OWN_FIELDS) rest[name] = wordless(rest[name])
  const isEmpty = (one: unknown): boolean => one === undefined || (Array.isArray(one) && one.length === 0)
  const said = Object.entries(rest).filter(([, one]) => !isEmpty(one))
  return said.length === 0 ? null : { ...Object.fromEntries(said), package: entry['package'] }
}

function restOfRange(range: Fields): Fields | undefined {
  const events = [...eachObject(range['events'])]
    .map((event) => omit(event, EVENT_KINDS))
    .filter((more) => more !== undefined)
  return omit({ ...range, ...(events.length > 0 ? { more: events } : {}) }, ['type', 'repo', 'events'])
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

/** A version or commit that fixes a package, and the introduction that it ends, by which two records' fixes are paired. */
interface Fix {
  readonly version: string
  readonly range: AffectedRange
  readonly branch: number
}

/**
 * Compares the fixes of a package. A fix that replaces another one after the same introduction, or the only one that went
 * for the only one that came, is lowered or raised in the order of the ecosystem; else it is removed or added.
 */
function fixDifferences(
  named: PackageName,
  before: readonly AffectedRange[],
  after: readonly AffectedRange[],
): FixDifference[] {
  const numbers = createNumbers()
  const old = fixesOf(before, numbers)
  const now = fixesOf(after, numbers)
  const removed = [...old].filter(([key]) => !now.has(key)).map(([, fix]) => fix)
  const added = [...now].filter(([key]) => !old.has(key)).map(([, fix]) => fix)
  const { pairs, rest } = pairUp(removed, added)
  return [
    ...pairs.map(([from, to]): FixDifference => {
      const kind = effectOf(from, to, named.ecosystem)
      return { kind, package: named, from: from.version, to: to.version }
    }),
    ...rest.removed.map(({ version }): FixDifference => {
      return { kind: 'fix_removed', package: named, from: version, to: null }
    }),
    ...rest.added.map(({ version }): FixDifference => {
      return { kind: 'fix_added', package: named, from: null, to: version }
    }),
  ]
}

/** Numbers texts, the same for equal ones: a long text is then compared once, and not once for each fix. */
function createNumbers(): (text: string) => number {
  const numbers = new Map<string, number>()
  return (text) => {
    const found = numbers.get(text) ?? numbers.size
    if (found === numbers.size) numbers.set(text, found)
    return found
  }
}

/** Fixes by version, and by repository for commits. */
function fixesOf(ranges: readonly AffectedRange[], numberOf: (text: string) => number): Map<string, Fix> {
  const fixes = new Map<string, Fix>()
  for (const range of ranges) {
    const place = numberOf(range.type === 'GIT' ? `GIT ${range.repo ?? ''}` : '')
    let branch = numberOf(`${place}`)
    for (const { introduced, fixed } of range.events) {
      if (introduced !== undefined) branch = numberOf(`${place} ${introduced}`)
      if (fixed !== undefined) fixes.set(`${place} ${fixed}`, { version: fixed, range, branch })
    }
  }
  return fixes
}

function pairUp(removed: readonly Fix[], added: readonly Fix[]) {
  const waiting = new Map(
    [...Map.groupBy(removed, ({ branch }) => branch)].map(([branch, fixes]) => [branch, fixes.values()]),
  )
  const pairs: [Fix, Fix][] = []
  const came: Fix[] = []
  for (const fix of added) {
    const from = waiting.get(fix.branch)?.next().value
    if (from === undefined) came.push(fix)
    else pairs.push([from, fix])
  }
  const went = [...waiting.values()].flatMap((fixes) => [...fixes])
  const from = went[0]
  const to = came[0]
  if (went.length !== 1 || came.length !== 1 || from === undefined || to === undefined)
    return { pairs, rest: { removed: went, added: came } }
  return { pairs: [...pairs, [from, to] as const], rest: { removed: [], added: [] } }
}

function effectOf(from: Fix, to: Fix, ecosystem: string): FixDifference['kind'] {
  const order = orderOfRange(from.range, ecosystem)
  if (order === null || order !== orderOfRange(to.range, ecosystem)) return 'fix_changed'
  const one = order.read(from.version)
  const other = order.read(to.version)
  if (one === null || other === null) return 'fix_changed'
  const difference = order.compare(other, one)
  if (difference < 0) return 'fix_lowered'
  return difference > 0 ? 'fix_raised' : 'fix_changed'
}
