import type { RecordDifference } from '../documents/differences/difference.ts'
import { factDifferences } from '../documents/differences/differences.ts'
import { type PackageName, type RecordFacts, factsOf, packageText } from '../documents/differences/facts.ts'
import { orderOfRange } from '../documents/differences/spans.ts'
import type { Doubt } from '../base/domain/doubts.ts'
import { fieldsOf } from '../base/json/objects.ts'
import { findEcosystem, hasReleases } from '../base/versions/ecosystems.ts'
import { LEVELS, cvss3Score, severityOf } from '../documents/records/severity.ts'
import { changedIds } from './ids.ts'
import { losesVersions, lossesIn, narrowerPackages } from './losses.ts'
import { disguisesIn } from './names.ts'

/** A doubt about one record, with the differences that cause it, or the reason in words. */
export interface RecordDoubt {
  readonly kind: Doubt
  readonly because: readonly RecordDifference[] | string
  /** Of `idsChanged`: the ids that came. */
  readonly come?: readonly string[]
}

/** A version of a record as parsed, and the length of its text in characters. */
export interface ParsedRecord {
  readonly json: unknown
  readonly length: number
}

/** Judges the change of one record by its meaning. */
export function doubtsAbout(before: ParsedRecord, after: ParsedRecord): RecordDoubt[] {
  const old = factsOf(before.json)
  const now = factsOf(after.json)
  const differences = factDifferences(old, now)
  const emptied = emptiedBy(before, after, old, now)
  const moved = movedPackages(differences)
  const losses = lossesIn(differences, old, now)
  const ended = endedReleases(differences, old, now)
  const ofAffected = [
    ...loweredFixes(differences, losses.get('fixLowered') ?? []),
    ...ecosystemChange(differences, moved, old, now),
    ...(emptied === null ? lostRanges(differences, old, now, losses.get('rangesLost') ?? []) : []),
  ]
  const lost = [...new Set(ofAffected)].filter((one) => !ended.has(one))
  const causes: [Doubt, readonly RecordDifference[]][] = [
    ['affectedLost', isMadeOfAdded(lost) ? narrowerPackages(differences, old, now) : lost],
    ['releaseEnded', [...ended]],
    ['firstFixed', losses.get('firstFixed') ?? []],
    ['incomparable', losses.get('incomparable') ?? []],
    ['severityLowered', loweredSeverities(differences)],
    ['aliasesLost', lostAliases(differences, after)],
    ['firstListed', firstLists(differences, old)],
    ['withdrawn', differences.filter(({ kind }) => kind === 'withdrawn')],
  ]
  const found = causes.flatMap(([kind, because]): RecordDoubt[] => (because.length > 0 ? [{ kind, because }] : []))
  if (emptied !== null) found.push({ kind: 'emptied', because: emptied })
  const isLowered = found.some(({ kind }) => kind === 'severityLowered')
  const level = isLowered || emptied !== null ? null : loweredLevel(before.json, after.json)
  if (level !== null) found.push({ kind: 'severityLowered', because: level })
  const ids = changedIds(before.json, after.json)
  if (ids !== null) found.push({ kind: 'idsChanged', ...ids })
  const disguise = disguiseBy(differences)
  if (disguise !== null) found.push({ kind: 'nameDisguised', because: disguise })
  return found
}

/** A package that came is named with one that went to another ecosystem; by itself it is no loss. */
function isMadeOfAdded(lost: readonly RecordDifference[]): boolean {
  return lost.every(({ kind }) => kind === 'package_added')
}

function disguiseBy(differences: readonly RecordDifference[]): string | null {
  const gone = differences.flatMap((one) => (one.kind === 'package_removed' ? [one.package] : []))
  const come = differences.flatMap((one) => (one.kind === 'package_added' ? [one.package] : []))
  return disguisesIn(gone, come)
}

/** Aliases that went, but for those which became what the record is derived from: databases sort them so. */
function lostAliases(differences: readonly RecordDifference[], { json }: ParsedRecord): RecordDifference[] {
  const { upstream } = fieldsOf(json)
  const kept = new Set(Array.isArray(upstream) ? (upstream as unknown[]) : [])
  return differences.filter((one) => one.kind === 'aliases_removed' && one.aliases.some((alias) => !kept.has(alias)))
}

/** First lists of versions of packages that no version could be compared with: each other version is now clear of them. */
function firstLists(differences: readonly RecordDifference[], old: RecordFacts): RecordDifference[] {
  return differences.filter((one) => {
    if (one.kind !== 'versions_added') return false
    const was = old.packages.get(packageText(one.package))
    if (was === undefined || was.versions.size > 0) return false
    return was.ranges.every((range) => orderOfRange(range, was.package.ecosystem) === null)
  })
}

/** The removed packages of a release of a distribution of which a newer release was there before and still is. */
function endedReleases(
  differences: readonly RecordDifference[],
  old: RecordFacts,
  now: RecordFacts,
): ReadonlySet<RecordDifference> {
  const left = [...now.packages].flatMap(([key, one]) => (old.packages.has(key) ? [one.package] : []))
  const isEnded = (gone: PackageName): boolean => {
    const release = releaseOf(gone)
    return (
      release !== null &&
      left.some((one) => {
        const other = releaseOf(one)
        return other !== null && baseOf(one) === baseOf(gone) && NATURAL.compare(other, release) > 0
      })
    )
  }
  return new Set(differences.filter((one) => one.kind === 'package_removed' && isEnded(one.package)))
}

/** Compares releases: 9 is before 10. */
export const NATURAL = new Intl.Collator('en', { numeric: true })

/** The release in the name of an ecosystem, as `12` of `Debian:12` or `3.18` of `Root:Alpine:v3.18`; null: none. */
function releaseOf({ ecosystem }: PackageName): string | null {
  const base = findEcosystem(ecosystem)?.base ?? null
  if (base === null || !hasReleases(base)) return null
  const at = ecosystem.indexOf(`${base}:`)
  const release = at < 0 ? '' : ecosystem.slice(at + base.length + 1).replace(/^v/, '')
  return /^\d/.test(release) ? release : null
}

/** Characters of a record that has enough text to be emptied, and the share of it that must be left. */
const MIN_LENGTH = 400
const MIN_LEFT = 0.1

/** Says what a record lost that is not withdrawn; null: not nearly everything. */
function emptiedBy(before: ParsedRecord, after: ParsedRecord, old: RecordFacts, now: RecordFacts): string | null {
  if (typeof fieldsOf(after.json)['withdrawn'] === 'string') return null
  if (old.packages.size > 0 && now.packages.size === 0) return `no affected package any more, of ${old.packages.size}`
  if (before.length < MIN_LENGTH || after.length >= before.length * MIN_LEFT) return null
  return `${after.length} characters left of ${before.length}`
}

/** The removed packages that are there in another ecosystem. */
function movedPackages(differences: readonly RecordDifference[]): ReadonlySet<PackageName> {
  const come = new Map<string, Set<string>>()
  for (const one of differences)
    if (one.kind === 'package_added') {
      const bases = come.get(one.package.name) ?? new Set()
      come.set(one.package.name, bases.add(baseOf(one.package)))
    }
  const gone = differences.flatMap((one) => (one.kind === 'package_removed' ? [one.package] : []))
  const isMoved = (named: PackageName): boolean => {
    const bases = come.get(named.name)
    return named.name !== '' && bases !== undefined && !bases.has(baseOf(named))
  }
  return new Set(gone.filter(isMoved))
}

function ecosystemChange(
  differences: readonly RecordDifference[],
  moved: ReadonlySet<PackageName>,
  old: RecordFacts,
  now: RecordFacts,
): readonly RecordDifference[] {
  if (!differences.some(({ kind }) => kind === 'package_removed')) return []
  const isPackage = ({ kind }: RecordDifference) => kind === 'package_removed' || kind === 'package_added'
  const before = ecosystemsOf(old)
  const after = ecosystemsOf(now)
  const isOther = before.size > 0 && after.size > 0 && ![...before].some((base) => after.has(base))
  if (isOther) return differences.filter(isPackage)
  const names = new Set([...moved].map(({ name }) => name))
  return differences.filter(
    (one) => isPackage(one) && 'package' in one && one.package !== null && names.has(one.package.name),
  )
}

function ecosystemsOf({ packages }: RecordFacts): Set<string> {
  const bases = [...packages.values()].map((one) => baseOf(one.package))
  return new Set(bases.filter((base) => base !== ''))
}

/** An ecosystem without its release where it has releases, and with the vendor who patches it: `Debian`, `Root:Debian`. */
function baseOf({ ecosystem }: PackageName): string {
  const [first = '', second = ''] = ecosystem.split(':')
  const base = findEcosystem(ecosystem)?.base ?? null
  if (base !== null && !hasReleases(base)) return ecosystem
  return base === second && base !== '' ? `${first}:${second}` : first
}

/** Fixes that are lower, and for other packages ranges that end earlier at a fix. */
function loweredFixes(
  differences: readonly RecordDifference[],
  losses: readonly RecordDifference[],
): RecordDifference[] {
  const lowered = differences.filter((one) => one.kind === 'fix_lowered')
  const names = new Set(lowered.map((one) => ('package' in one ? packageText(one.package) : '')))
  const others = losses.filter((one) => 'package' in one && !names.has(packageText(one.package)))
  return [...lowered, ...others]
}

function lostRanges(
  differences: readonly RecordDifference[],
  old: RecordFacts,
  now: RecordFacts,
  losses: readonly RecordDifference[],
): RecordDifference[] {
  const lost = new Set(losses)
  const before = old.packages
  const after = now.packages
  const fixed = new Set(
    differences.flatMap((one) =>
      one.kind.startsWith('fix_') && one.kind !== 'fix_removed' && 'package' in one ? [packageText(one.package)] : [],
    ),
  )
  return differences.filter((one) => {
    if (lost.has(one)) return true
    if (one.kind === 'package_removed' || one.kind === 'range_removed') return true
    if (one.kind === 'versions_removed')
      return losesVersions(before.get(packageText(one.package)), after.get(packageText(one.package)))
    if (one.kind === 'range_narrowed') return !fixed.has(packageText(one.package))
    return one.kind === 'range_changed' && one.added.length === 0
  })
}

type SeverityChange = Extract<RecordDifference, { kind: 'severity_changed' }>

/** Words of severity in the languages of databases, the lowest first. */
const WORDS: ReadonlyMap<string, number> = new Map(
  ['none', 'negligible', 'unimportant', 'low', 'minor', 'medium', 'high', 'critical'].map((word, rank) => [word, rank]),
)
const SYNONYMS: ReadonlyMap<string, string> = new Map([
  ['moderate', 'medium'],
  ['important', 'high'],
  ['severe', 'high'],
])

/** Metrics of CVSS 2 and 4 with their values, the lowest first. */
const METRICS: Readonly<Record<string, string>> = {
  AV: 'PLAN',
  AC: 'HML',
  Au: 'MSN',
  AT: 'PN',
  PR: 'HLN',
  UI: 'APN',
  C: 'NPC',
  I: 'NPC',
  A: 'NPC',
  VC: 'NLH',
  VI: 'NLH',
  VA: 'NLH',
  SC: 'NLH',
  SI: 'NLH',
  SA: 'NLH',
}
const IMPACTS = ['C', 'I', 'A', 'VC', 'VI', 'VA', 'SC', 'SI', 'SA']

/** Returns the changes that made a severity lower, took it away, or made of it what cannot be read. */
function loweredSeverities(differences: readonly RecordDifference[]): SeverityChange[] {
  const changes = differences.filter((one) => one.kind === 'severity_changed')
  return changes.filter((one) => {
    const { from, to, scale } = one
    if (from === null) return false
    if (to === null) return !changes.some((other) => takesPlace(other, one))
    const before = rankOf(scale, from)
    const after = rankOf(scale, to)
    return after === null || (before !== null && after < before)
  })
}

/**
 * Says that the level by which findings of a record count is lower, or that there is none any more; null: neither. One severity may
 * hide another: that of the record counts before those of its packages, and a vector of CVSS 2 counts where there is no later one.
 */
function loweredLevel(before: unknown, after: unknown): string | null {
  const { level: old } = severityOf(fieldsOf(before))
  const { level: now } = severityOf(fieldsOf(after))
  if (old === null) return null
  if (now === null) return `findings have no level any more, of ${old}`
  return LEVELS.indexOf(now) > LEVELS.indexOf(old) ? `findings are of level ${now}, and were of ${old}` : null
}

/** Whether a severity of another scale is there instead, and says that there is one. */
function takesPlace(other: SeverityChange, { package: named, scale }: SeverityChange): boolean {
  if (other.to === null || other.from !== null || other.scale === scale) return false
  const isSame = JSON.stringify(other.package) === JSON.stringify(named)
  return isSame && (rankOf(other.scale, other.to) ?? 0) > 0
}

/** A number by which severities of one scale are compared, 0 for none; null: it cannot be read. */
function rankOf(scale: string, text: string): number | null {
  if (scale === 'CVSS_V3') return cvss3Score(text)
  if (scale.startsWith('CVSS')) return vectorRank(text)
  const word = text.trim().toLowerCase()
  const number = Number(word)
  return WORDS.get(SYNONYMS.get(word) ?? word) ?? (word !== '' && number >= 0 ? number : null)
}

function vectorRank(vector: string): number | null {
  const metrics = vector.split('/').flatMap((part): [string, number][] => {
    const [name = '', value = ''] = part.split(':')
    const rank = value === '' ? -1 : (METRICS[name]?.indexOf(value) ?? -1)
    return rank < 0 ? [] : [[name, rank]]
  })
  if (metrics.length < 6) return null
  const impact = metrics.filter(([name]) => IMPACTS.includes(name))
  if (impact.every(([, rank]) => rank === 0)) return 0
  return metrics.reduce((sum, [, rank]) => sum + rank, 0)
}
