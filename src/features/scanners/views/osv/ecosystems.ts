import { type Slice, elementsOf } from '../../../../base/json/slices.ts'
import { findMembers, findOnlyMember } from '../../members.ts'
import { alpineRelease, debianRelease, ubuntuRelease } from '../../../../base/identity/releases.ts'
import { UNREAD_BOUNDS } from '../../records/affected.ts'
import type { Config } from '../../../../config/schema.ts'

/** What becomes of one affected package. */
export interface PackageChange {
  /** The record appears once for each of these, in their order; at least one. */
  readonly ecosystems: readonly string[]
  /** Its package URL; null: as it is. */
  readonly purl: string | null
  /** The events of its ranges, by the range's place, where bounds of theirs are left out; null, or none: as they are. */
  readonly events: readonly (readonly object[] | null)[]
}

/**
 * The record's text with other affected packages: `changes` has what becomes of each, or null, by its place. Nothing but these
 * values is changed, every other byte is as it was. Where they cannot be found in the text (it takes a strange one), the
 * whole record is written again from `record`, which is the text parsed.
 */
export function changeAffected(text: Buffer, record: object, changes: readonly (PackageChange | null)[]): Buffer {
  const places = placesOf(text)
  const parts: Buffer[] = []
  let at = 0
  for (const [i, change] of changes.entries()) {
    if (change === null) continue
    const place = places[i]
    if (place === undefined || place === null || place.element.start < at) return writeAgain(record, changes)
    parts.push(text.subarray(at, place.element.start), changeElement(text, place, change))
    at = place.element.end
  }
  parts.push(text.subarray(at))
  return Buffer.concat(parts)
}

interface Place {
  readonly element: Slice
  readonly ecosystem: Slice
  readonly purl: Slice | null
  /** The lists of events, by the place of their range; null for a range without one. */
  readonly events: readonly (Slice | null)[]
}

const AFFECTED = Buffer.from('affected')
const PACKAGE = Buffer.from('package')
const RANGES = Buffer.from('ranges')
const ECOSYSTEM = Buffer.from('ecosystem')
const PURL = Buffer.from('purl')
const EVENTS = Buffer.from('events')
const QUOTED = Buffer.from('"affected"')

/** Positions in the text of each affected package; null for one without an ecosystem. Of repeated names the last counts. */
function placesOf(text: Buffer): (Place | null)[] {
  try {
    const start = findOnlyMember(text, QUOTED) ?? findMembers(text, 0, [AFFECTED])[0]?.start
    if (start === undefined) return []
    return Array.from(elementsOf(text, start), (element) => placeOf(text, element))
  } catch {
    return []
  }
}

function placeOf(text: Buffer, element: Slice): Place | null {
  const [named = null, ranges = null] = findMembers(text, element.start, [PACKAGE, RANGES])
  if (named === null) return null
  const [ecosystem = null, purl = null] = findMembers(text, named.start, [ECOSYSTEM, PURL])
  if (ecosystem === null) return null
  const lists = ranges === null ? [] : [...elementsOf(text, ranges.start)]
  const events = lists.map((range) => findMembers(text, range.start, [EVENTS])[0] ?? null)
  return { element, ecosystem, purl, events }
}

interface Edit extends Slice {
  readonly to: string
}

function changeElement(text: Buffer, place: Place, { ecosystems, purl, events }: PackageChange): Buffer {
  const common: Edit[] = []
  for (const [i, list] of events.entries()) {
    const slice = place.events[i] ?? null
    if (list !== null && slice !== null)
      common.push({ ...slice, to: `${JSON.stringify(list)},"database_specific":${JSON.stringify(UNREAD_BOUNDS)}` })
  }
  if (purl !== null && place.purl !== null) common.push({ ...place.purl, to: JSON.stringify(purl) })
  const added = purl !== null && place.purl === null ? `,"purl":${JSON.stringify(purl)}` : ''
  const forms = ecosystems.map((ecosystem) => {
    const own: Edit = { ...place.ecosystem, to: JSON.stringify(ecosystem) + added }
    return applied(text, place.element, [...common, own])
  })
  return Buffer.from(forms.join())
}

function applied(text: Buffer, { start, end }: Slice, edits: Edit[]): string {
  let out = ''
  let at = start
  for (const edit of edits.sort((one, other) => one.start - other.start)) {
    out += text.toString('utf8', at, edit.start) + edit.to
    at = edit.end
  }
  return out + text.toString('utf8', at, end)
}

interface AnyAffected {
  readonly package: object
  readonly ranges?: readonly object[]
}

function writeAgain(record: object, changes: readonly (PackageChange | null)[]): Buffer {
  const { affected } = record as { affected: AnyAffected[] }
  const changed = affected.flatMap((one, i): object[] => {
    const change = changes[i] ?? null
    if (change === null) return [one]
    const { ecosystems, purl, events } = change
    return ecosystems.map((ecosystem) => ({
      ...one,
      package: { ...one.package, ecosystem, ...(purl !== null && { purl }) },
      ...(events.length > 0 && {
        ranges: one.ranges?.map((range, j) => rangeWith(range, events[j])),
      }),
    }))
  })
  return Buffer.from(JSON.stringify({ ...record, affected: changed }))
}

function rangeWith(range: object, events: readonly object[] | null | undefined): object {
  return events === null || events === undefined ? range : { ...range, events, database_specific: UNREAD_BOUNDS }
}

/**
 * Ecosystems that scanners know by themselves (OSV schema, `affected[].package.ecosystem`). A vendor's own, such as
 * `Root`, is none of them.
 */
const BASES: ReadonlySet<string> = new Set([
  ...['AlmaLinux', 'Alpaquita', 'Alpine', 'Android', 'Azure Linux', 'BellSoft Hardened Containers'],
  ...['Bioconductor', 'Bitnami', 'Chainguard', 'CleanStart', 'ConanCenter', 'CRAN', 'crates.io'],
  ...['Debian', 'Echo', 'GHC', 'GitHub Actions', 'Go', 'Hackage', 'Hex', 'Homebrew', 'Julia'],
  ...['Kubernetes', 'Linux', 'Mageia', 'Maven', 'MinimOS', 'npm', 'NuGet', 'opam', 'openEuler'],
  ...['openSUSE', 'OSS-Fuzz', 'Packagist', 'Photon OS', 'Pub', 'PyPI', 'Red Hat', 'Rocky Linux'],
  ...['RubyGems', 'SUSE', 'SwiftURL', 'Ubuntu', 'VSCode', 'Wolfi'],
])

/** Vendors whose ecosystems the OSV schema has. */
const VENDORS: ReadonlySet<string> = new Set(['Root', 'TuxCare'])

/** Whether a folder's name is an ecosystem's, or a vendor's, of the OSV schema. */
export function isKnownEcosystem(name: string): boolean {
  return BASES.has(name) || VENDORS.has(name)
}

/** The vendors whose prefixes the settings have taken off; none where there are no derived views. */
export function derivedVendors({ derived, vendors }: Pick<Config['views'], 'derived' | 'vendors'>): readonly string[] {
  return derived ? vendors : []
}

/** An ecosystem without its vendor's prefix. */
export interface Stripped {
  readonly prefix: string
  /** The ecosystem after the prefix, such as `Debian`. */
  readonly base: string
  /** As scanners ask for it: several where they ask in several ways. At least one. */
  readonly ecosystems: readonly [string, ...string[]]
}

/**
 * Removes a vendor's prefix: `Root:Debian:12` is `Debian:12` and `Root:npm` is `npm`. Null when there is none: the text
 * before the first colon is a prefix only when `vendors` has it and an ecosystem of the OSV schema follows.
 */
export function stripPrefix(ecosystem: string, vendors: ReadonlySet<string>): Stripped | null {
  const known = recent.get(vendors) ?? new Map<string, Stripped | null>()
  const before = known.get(ecosystem)
  if (before !== undefined) return before
  const stripped = strip(ecosystem, vendors)
  if (known.size >= MOST_RECENT) known.clear()
  recent.set(vendors, known.set(ecosystem, stripped))
  return stripped
}

/** Ecosystems are few, and each is named by many records. */
const recent = new WeakMap<ReadonlySet<string>, Map<string, Stripped | null>>()
const MOST_RECENT = 1000

function strip(ecosystem: string, vendors: ReadonlySet<string>): Stripped | null {
  const colon = ecosystem.indexOf(':')
  const prefix = ecosystem.slice(0, Math.max(0, colon))
  if (!vendors.has(prefix) || BASES.has(prefix)) return null
  const [base = '', ...release] = ecosystem.slice(colon + 1).split(':')
  if (!BASES.has(base)) return null
  const suffix = release.join(':')
  if (suffix === '') return { prefix, base, ecosystems: [base] }
  const [first, ...more] = spellRelease(base, suffix)
  return { prefix, base, ecosystems: [`${base}:${first}`, ...more.map((one) => `${base}:${one}`)] }
}

/**
 * Returns a release as osv-scanner and osv-scalibr derive it from a scanned system, because they compare texts: Alpine's with
 * `v` and two numbers (`v3.18`), Debian's and Ubuntu's by number in place of a code name, all others unchanged. An LTS release
 * of Ubuntu has two forms: a scanned file system asks for `22.04`, an SBOM for `22.04:LTS`.
 */
function spellRelease(base: string, suffix: string): [string, ...string[]] {
  if (base === 'Alpine') return [alpineRelease(suffix) ?? suffix]
  if (base === 'Debian') return [debianRelease(suffix) ?? suffix]
  if (base !== 'Ubuntu') return [suffix]
  // `Pro:…`, `FIPS:…` and the like name other packages than the plain release has: they stay what they are.
  const release = ubuntuRelease(suffix.replace(/:LTS$/, ''))
  if (release === null) return [suffix]
  return isLongTerm(release) ? [release, `${release}:LTS`] : [release]
}

/** Ubuntu's LTS releases: those of April in even years. */
function isLongTerm(release: string): boolean {
  const [, year = ''] = /^(\d+)\.04$/.exec(release) ?? []
  return year !== '' && Number(year) % 2 === 0
}
