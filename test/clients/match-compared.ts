import { findEcosystem } from '../../src/base/versions/ecosystems.ts'
import { readPurl } from '../../src/base/identity/package.ts'
import { parsePurl, writePurl } from '../../src/base/identity/purl.ts'
import type { MatchResult } from '../../src/features/match/result.ts'
import type { InputSbom, SbomComponent } from '../../src/documents/sboms/sbom.ts'
import type { ScannedPackage } from './scanner.ts'

/** What of an OSV record the comparison looks at. */
export interface RealRecord {
  readonly id: string
  readonly affected?: readonly {
    readonly package?: { readonly ecosystem: string; readonly name: string; readonly purl?: string }
    readonly versions?: readonly string[]
    readonly ranges?: readonly {
      readonly type: string
      readonly events: readonly Readonly<Record<string, string>>[]
    }[]
  }[]
}

/** Packages of one ecosystem that are asked for: more of them make one scan longer, not better. */
const MOST = 400

/** Returns a CycloneDX SBOM for each ecosystem: its packages in versions around each edge of what records say. */
export function edgesOf(records: readonly RealRecord[]): Map<string, object> {
  const found = new Map<string, Map<string, object>>()
  for (const { package: named, versions = [], ranges = [] } of records.flatMap(({ affected = [] }) => affected)) {
    const [base = ''] = (named?.ecosystem ?? '').split(':')
    const purl = named?.purl ?? writePurl(base, named?.name ?? '')
    if (named === undefined || purl === null || readPurl(purl) === null) continue
    const edges = ranges
      .filter(({ type }) => type !== 'GIT')
      .flatMap(({ events }) => events.flatMap((event) => Object.values(event)))
    const [path = '', qualifiers = ''] = purl.split(/(?=\?)/)
    const components = found.get(base) ?? new Map<string, object>()
    found.set(base, components)
    for (const version of [...edges, ...versions.slice(0, 1), ...versions.slice(-1)]) {
      const own = `${path}@${encodeURIComponent(version)}${qualifiers}`
      const name = base === 'Go' ? named.name : shortOf(named.name)
      if (version !== '0') components.set(own, { type: 'library', name, version, purl: own })
    }
  }
  return new Map(
    [...found].sort().map(([ecosystem, components]) => {
      const step = Math.ceil(components.size / MOST)
      const chosen = [...components.values()].filter((_, at) => at % step === 0)
      const head = { bomFormat: 'CycloneDX', specVersion: '1.5', version: 1 }
      return [ecosystem, { ...head, components: chosen }]
    }),
  )
}

/** What both say of one SBOM. */
export interface Agreement {
  readonly name: string
  readonly packages: number
  /** Packages that osv-scanner judges too. */
  readonly known: number
  /** Findings that both have. */
  readonly same: number
  /** Packages that osv-scanner does not judge, and findings that one has alone, by their classes. */
  readonly notJudged: ReadonlyMap<string, number>
  readonly onlyOurs: ReadonlyMap<string, number>
  readonly onlyTheirs: ReadonlyMap<string, number>
  /** Differences of no class. */
  readonly unexplained: readonly string[]
}

interface Compared {
  readonly name: string
  readonly sbom: InputSbom
  readonly ours: MatchResult
  readonly theirs: { readonly packages: readonly ScannedPackage[]; readonly err: string }
  readonly records: ReadonlyMap<string, RealRecord>
}

/** Compares the findings of both, package by package and record by record, and classes each difference. */
export function compareWithScanner({ name, sbom, ours, theirs, records }: Compared): Agreement {
  const scanned = Map.groupBy(theirs.packages, (one) => keyOf(one.name, one.version))
  const found = Map.groupBy(ours.findings, ({ component }) => componentKey(component))
  const packages = new Map(sbom.components.map((one) => [componentKey(one), one]))
  const unexplained: string[] = []
  const count = (into: Map<string, number>, reason: string | null, what: string): void => {
    if (reason === null) unexplained.push(`${name}: ${what}`)
    else into.set(reason, (into.get(reason) ?? 0) + 1)
  }
  const notJudged = new Map<string, number>()
  const onlyOurs = new Map<string, number>()
  const onlyTheirs = new Map<string, number>()
  let known = 0
  let same = 0
  for (const [key, component] of packages) {
    const own = new Set((found.get(key) ?? []).map(({ id }) => id))
    const others = new Set((scanned.get(key) ?? []).flatMap(({ ids }) => ids))
    const why = whyNotJudged(component, sbom, scanned.get(key), theirs.err)
    if (why !== null) {
      count(notJudged, why, key)
      for (const id of others) unexplained.push(`${name}: ${key} ${id} in a component not judged`)
      continue
    }
    if (!scanned.has(key)) unexplained.push(`${name}: ${key} is not listed by osv-scanner`)
    known++
    same += [...own].filter((id) => others.has(id)).length
    for (const id of own)
      if (!others.has(id)) count(onlyOurs, whyOnlyOurs(records.get(id), component), `${key} ${id} only here`)
    for (const id of others)
      if (!own.has(id)) count(onlyTheirs, whyOnlyTheirs(records.get(id)), `${key} ${id} only there`)
  }
  return {
    name,
    packages: packages.size,
    known,
    same,
    notJudged,
    onlyOurs,
    onlyTheirs,
    unexplained,
  }
}

/** Why osv-scanner does not judge a package; null: it does, or nothing explains it. */
function whyNotJudged(
  { purl }: SbomComponent,
  { subjects }: InputSbom,
  scanned: readonly ScannedPackage[] | undefined,
  err: string,
): string | null {
  if (/panic: unsupported ecosystem/.test(err)) return 'it ends with an error'
  if (scanned === undefined) {
    if (purl === null) return 'no package URL'
    if (err.includes(`Invalid PURL ${JSON.stringify(purl)}`)) return 'package URL refused'
    return subjects.includes(purl) ? 'what the SBOM describes' : null
  }
  const [ecosystem = ''] = (scanned[0]?.ecosystem ?? '').split(':')
  if (ecosystem === '') return 'type unknown'
  return err.includes(`could not load db for ${ecosystem} ecosystem`) ? 'no records' : null
}

/** Why only `patchmirror match` finds a record. */
function whyOnlyOurs(record: RealRecord | undefined, { name }: SbomComponent): string | null {
  const affected = record?.affected ?? []
  const isOfCommits = affected.some(({ ranges = [] }) => ranges.some(({ type }) => type === 'GIT'))
  if (isOfCommits) return 'range of commits'
  if (affected.some((one) => hasCase(one, name))) return 'upper case'
  return affected.some(hasDottedQualifier) ? 'qualifier behind a dot' : null
}

type RealAffected = NonNullable<RealRecord['affected']>[number]

/** Whether osv-scanner finds the package by its name only as the record writes it. */
function hasCase({ package: named }: RealAffected, listed: string): boolean {
  const { ecosystem = '', name = '' } = named ?? {}
  if (ecosystem === 'NuGet') return name !== listed && name.toLowerCase() === listed.toLowerCase()
  return ecosystem === 'Go' && /[A-Z]/.test(name)
}

/** Whether a bound is a milestone behind a dot, such as 9.0.0.M1: since 3.9 Maven takes it for 9.0.0-M1, osv-scanner does not. */
function hasDottedQualifier({ package: named, versions = [], ranges = [] }: RealAffected): boolean {
  const bounds = ranges.flatMap(({ events }) => events.flatMap((event) => Object.values(event)))
  return named?.ecosystem === 'Maven' && [...versions, ...bounds].some((text) => /\d\.(?:M|RC)\d/.test(text))
}

/** Why only osv-scanner finds a record. */
function whyOnlyTheirs(record: RealRecord | undefined): string | null {
  const isUnread = (record?.affected ?? []).some(({ package: named, ranges = [] }) => {
    const order = findEcosystem(named?.ecosystem ?? '')?.order ?? null
    const bounds = ranges
      .filter(({ type }) => type === 'ECOSYSTEM')
      .flatMap(({ events }) => events.flatMap((event) => Object.values(event)))
    return order !== null && bounds.some((bound) => order.read(bound) === null)
  })
  return isUnread ? 'bound is no version' : null
}

/** Returns the row of a table: what it is, and its figures. */
export function rowOf(one: Agreement): string[] {
  const { name, packages, known, same, notJudged, onlyOurs, onlyTheirs } = one
  return [name, packages, known, same, cellOf(onlyOurs), cellOf(onlyTheirs), cellOf(notJudged)].map(String)
}

function cellOf(counts: ReadonlyMap<string, number>): string {
  return [...counts].map(([reason, number]) => `${number} ${reason}`).join(', ') || '0'
}

function componentKey({ purl, name, version }: Pick<SbomComponent, 'purl' | 'name' | 'version'>): string {
  const url = purl === null ? null : parsePurl(purl)
  const isGo = url?.type === 'golang'
  return keyOf(isGo ? (readPurl(purl ?? '')?.name ?? '') : shortOf(name), url?.version || version)
}

/** osv-scanner reports a name without its group, Python's names in one form, and Go's modules in lower case. */
function keyOf(name: string, version: string): string {
  const own = name.includes('.') && name.includes('/') ? name : shortOf(name)
  return `${own.toLowerCase().replaceAll(/[-_.]+/g, '-')} ${version}`
}

function shortOf(name: string): string {
  return name.split(/[/:]/).at(-1) ?? ''
}
