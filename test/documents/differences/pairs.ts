import fc from 'fast-check'
import type { RecordDifference } from '../../../src/documents/differences/difference.ts'
import { differencesOf as compare } from '../../../src/documents/differences/differences.ts'

/** Compares records as parsed, written as JSON; null: there is none. */
export function differencesOf(before: unknown, after: unknown): RecordDifference[] {
  const read = (json: unknown) => (json === null ? null : { text: JSON.stringify(json), json })
  return compare(read(before), read(after))
}

/** The judged part of a generated record, in a form of the tests' own: nothing here is read by the program's code. */
export interface Model {
  withdrawn: string | null
  aliases: string[]
  severity: [scale: string, value: string][]
  packages: Record<string, ModelPackage>
}
interface ModelPackage {
  ranges: { type: string; repo: string | null; events: Record<string, string>[] }[]
  versions: string[]
  severity: [scale: string, value: string][]
}

const ECOSYSTEMS = ['npm', 'PyPI', 'Debian:12', 'Maven', 'Homebrew', 'crates.io', 'Unknown']
const version = fc.oneof(
  fc.tuple(fc.nat(4), fc.nat(4), fc.nat(2)).map((parts) => parts.join('.')),
  fc.constantFrom('0', '1.0.0-beta.1', '1:2.3-4', 'not a version', '2024a', 'v1.2'),
)
const event = fc.oneof(
  version.map((introduced) => ({ introduced })),
  version.map((fixed) => ({ fixed })),
  version.map((lastAffected) => ({ last_affected: lastAffected })),
)
const range = fc.record({
  type: fc.constantFrom('SEMVER', 'ECOSYSTEM', 'ECOSYSTEM', 'GIT'),
  repo: fc.constantFrom(null, 'https://example.com/a.git'),
  events: fc.oneof(
    fc.tuple(version, version).map(([introduced, fixed]) => [{ introduced }, { fixed }]),
    fc.array(event, { maxLength: 4 }),
  ),
})
const severity = fc.array(
  fc.tuple(fc.constantFrom('CVSS_V3', 'CVSS_V4', 'database_specific'), fc.constantFrom('LOW', 'HIGH', 'CVSS:3.1/AV:N')),
  { maxLength: 3 },
)
const packages = fc.dictionary(
  fc.tuple(fc.constantFrom(...ECOSYSTEMS), fc.constantFrom('one', 'two')).map((key) => JSON.stringify(key)),
  fc.record({ ranges: fc.array(range, { maxLength: 3 }), versions: fc.array(version, { maxLength: 4 }), severity }),
  { maxKeys: 3, noNullPrototype: true },
)
const model: fc.Arbitrary<Model> = fc.record({
  withdrawn: fc.constantFrom(null, null, '2026-01-01T00:00:00Z', '2026-02-01T00:00:00Z'),
  aliases: fc.array(fc.constantFrom('CVE-1', 'CVE-2', 'GHSA-3'), { maxLength: 3 }),
  severity,
  packages,
})

/** Two versions of a record that share some of their parts, or all but one. */
export const pair: fc.Arbitrary<[Model, Model]> = fc
  .tuple(
    model,
    model,
    fc.array(fc.constantFrom('withdrawn', 'aliases', 'severity', 'packages'), { maxLength: 4 }),
    fc.boolean(),
  )
  .map(([one, other, shared, mixed]) => {
    const after: Model = { ...other, packages: mixed ? { ...one.packages, ...other.packages } : other.packages }
    const kept = Object.fromEntries(shared.map((name) => [name, one[name]]))
    return [one, { ...after, ...kept }]
  })

/** Writes a model as an OSV record; a package with several ranges as several entries of `affected`, if `split`. */
export function recordOf({ withdrawn, aliases, severity: scores, packages: named }: Model, split = false): object {
  return {
    id: 'R-1',
    modified: '2026-01-01T00:00:00Z',
    ...(withdrawn === null ? {} : { withdrawn }),
    aliases,
    ...severityFields(scores),
    affected: Object.entries(named).flatMap(([key, { ranges, versions, severity: own }]) => {
      const [ecosystem, name] = JSON.parse(key) as string[]
      const entry = { package: { ecosystem, name } }
      const written = ranges.map(({ repo, ...rest }) => ({ ...rest, ...(repo === null ? {} : { repo }) }))
      if (!split) return [{ ...entry, ranges: written, versions, ...severityFields(own) }]
      return [{ ...entry, versions, ...severityFields(own) }, ...written.map((one) => ({ ...entry, ranges: [one] }))]
    }),
  }
}

/** A database has one word for a severity; of several in the model the last is written. */
function severityFields(scores: Model['severity']): object {
  const word = scores.findLast(([scale]) => scale === 'database_specific')?.[1]
  const vectors = scores.filter(([scale]) => scale !== 'database_specific')
  return {
    severity: vectors.map(([type, score]) => ({ type, score })),
    ...(word === undefined ? {} : { database_specific: { severity: word } }),
  }
}

/** Returns a model in one order, as texts, without what a record cannot say. */
export function plain({ withdrawn, aliases, severity: scores, packages: named }: Model) {
  return {
    withdrawn,
    aliases: [...new Set(aliases)].sort(),
    severity: said(scores),
    packages: Object.entries(named)
      .map(([key, { ranges, versions, severity: own }]) => {
        const written = ranges.map((one) => JSON.stringify(one)).sort()
        return [key, written, [...new Set(versions)].sort(), said(own), fixesOf(ranges)]
      })
      .sort(([one], [other]) => (String(one) < String(other) ? -1 : 1)),
  }
}

function said(scores: Model['severity']): string[] {
  const word = scores.findLast(([scale]) => scale === 'database_specific')
  const vectors = scores.filter(([scale]) => scale !== 'database_specific')
  return [...vectors, ...(word === undefined ? [] : [word])].map((one) => one.join(' ')).sort()
}

function fixesOf(ranges: ModelPackage['ranges']): string[] {
  const fixes = ranges.flatMap(({ type, repo, events }) =>
    events.flatMap(({ fixed }) => {
      if (fixed === undefined) return []
      return [[type === 'GIT' ? `${repo ?? ''} ${fixed}` : fixed, fixed] as const]
    }),
  )
  return [...new Map(fixes).values()].sort()
}

/** Applies differences to a model, fixes apart from ranges, and returns it as `plain` does. */
export function applied(before: Model, differences: readonly RecordDifference[]) {
  const state = structuredClone(before)
  state.severity = scoresOf(state.severity)
  const fixes = new Map(Object.entries(state.packages).map(([key, { ranges }]) => [key, fixesOf(ranges)]))
  for (const { severity: own } of Object.values(state.packages)) own.splice(0, own.length, ...scoresOf(own))
  for (const one of differences) {
    const named =
      'package' in one && one.package !== null ? JSON.stringify([one.package.ecosystem, one.package.name]) : null
    if (one.kind === 'package_removed') state.packages = withoutKey(state.packages, named)
    if (named !== null && one.kind === 'package_added')
      state.packages[named] = { ranges: [], versions: [], severity: [] }
    const target = named === null ? state : (state.packages[named] ?? state)
    if ('versions' in target) applyToPackage(target, one)
    applyToAny(target, state, one)
    if (named !== null && one.kind.startsWith('fix_') && 'from' in one)
      fixes.set(named, exchanged(fixes.get(named) ?? [], one.from, one.to))
  }
  const { packages: result, ...rest } = plain(state)
  return {
    ...rest,
    packages: result.map(([key, ranges, versions, scores]) => [
      ...[key, ranges, versions, scores],
      [...(fixes.get(String(key)) ?? [])].sort(),
    ]),
  }
}

function scoresOf(scores: Model['severity']): Model['severity'] {
  const word = scores.findLast(([scale]) => scale === 'database_specific')
  return [...scores.filter(([scale]) => scale !== 'database_specific'), ...(word ? [word] : [])]
}

function withoutKey<Value>(values: Record<string, Value>, key: string | null): Record<string, Value> {
  return Object.fromEntries(Object.entries(values).filter(([one]) => one !== key))
}

function exchanged(values: readonly string[], from: string | null, to: string | null): string[] {
  const at = from === null ? -1 : values.indexOf(from)
  if (from !== null && at < 0) throw new Error(`${from} is not there`)
  return [...values.filter((_, i) => i !== at), ...(to === null ? [] : [to])]
}

function applyToPackage(target: ModelPackage, one: RecordDifference): void {
  if (one.kind === 'versions_added') target.versions.push(...one.versions)
  if (one.kind === 'versions_removed')
    target.versions = target.versions.filter((value) => !one.versions.includes(value))
  if (!('added' in one)) return
  for (const gone of one.removed) {
    const at = target.ranges.findIndex((range) => JSON.stringify(range) === JSON.stringify(gone))
    if (at < 0) throw new Error('the range is not there')
    target.ranges.splice(at, 1)
  }
  target.ranges.push(...one.added.map((range) => structuredClone(range) as ModelPackage['ranges'][0]))
}

function applyToAny(target: Pick<Model, 'severity'>, state: Model, one: RecordDifference): void {
  if (one.kind === 'severity_changed') {
    const at = target.severity.findIndex(([scale, value]) => scale === one.scale && value === one.from)
    if (one.from !== null && at < 0) throw new Error('the severity is not there')
    if (at >= 0) target.severity.splice(at, 1)
    if (one.to !== null) target.severity.push([one.scale, one.to])
  }
  if (one.kind === 'aliases_added') state.aliases.push(...one.aliases)
  if (one.kind === 'aliases_removed') state.aliases = state.aliases.filter((value) => !one.aliases.includes(value))
  if (one.kind === 'withdrawn' || one.kind === 'no_longer_withdrawn' || one.kind === 'withdrawal_changed')
    state.withdrawn = one.to
}

interface Entry {
  package?: { ecosystem: string; name: string }
  ranges?: { type: string; repo?: string; events: Record<string, string>[] }[]
  versions?: string[]
  severity?: { type: string; score: string }[]
  database_specific?: { severity?: unknown }
  ecosystem_specific?: { severity?: unknown }
}

/** Reads a real record, whose fields have the types of the schema, as a model. */
export function modelOf(record: Entry & { withdrawn?: string; aliases?: string[]; affected?: Entry[] }): Model {
  const packages: Model['packages'] = {}
  for (const entry of record.affected ?? []) {
    const { ecosystem = '', name = '' } = entry.package ?? {}
    const found = (packages[JSON.stringify([ecosystem, name])] ??= { ranges: [], versions: [], severity: [] })
    found.versions.push(...(entry.versions ?? []))
    found.severity.push(...scoresIn(entry))
    for (const { type, repo = null, events } of entry.ranges ?? []) found.ranges.push({ type, repo, events })
  }
  const { withdrawn = null, aliases = [] } = record
  return { withdrawn, aliases, severity: scoresIn(record), packages }
}

function scoresIn(fields: Entry): Model['severity'] {
  const word = fields.database_specific?.severity
  return [
    ...(fields.severity ?? []).map(({ type, score }): [string, string] => [type, score]),
    ...(typeof word === 'string' ? [['database_specific', word] as [string, string]] : []),
  ]
}
