import { sha256Hex } from '../../../base/digest.ts'
import { resolveField } from '../../../base/json/field-names.ts'
import { fieldsOfItem } from '../../../base/json/forms/item-fields.ts'
import { type Fields, isObject } from '../../../base/json/objects.ts'
import { ecosystemNames, findEcosystem } from '../../../base/versions/ecosystems.ts'
import { isMeant } from '../../../base/identity/meant.ts'
import { normalName } from '../../../base/identity/names.ts'
import { purlNames } from '../../../base/identity/package.ts'
import { readRelease } from '../../../base/identity/releases.ts'
import type { CatalogEntry } from '../../../store/catalog/lists.ts'
import type { Reads } from '../../../store/reads.ts'
import type { MatchFinding, MatchPatch, MatchPatches, MatchedComponent } from './finding.ts'
import { PATCHES } from '../../../base/domain/resources.ts'

const CVE_FACET = PATCHES.facets.findIndex(({ field }) => field === 'cve_id')
/** CVEs of one statement, entries of the list that are read for them, and their bytes: far above real ones. */
const AT_ONCE = 100
const MAX_ENTRIES = 20_000
const MAX_BYTES = 32 * 2 ** 20
/** Entries about one CVE and package that are kept, and the characters of their texts: far above real ones. */
const MAX_PATCHES = 100
const LONGEST_TEXT = 1_000
/** The status of a patch that exists (service API, patch filter vocabulary). */
const DONE = 'done'

interface Joined {
  readonly findings: readonly MatchFinding[]
  readonly patches: MatchPatches
}

/**
 * Adds to each finding the entries of the mirrored list of patches (`/v1/patches`, service API, section 5) about its CVE, its
 * ecosystem with the release, and its package. `check` is called from time to time, and throws to stop.
 */
export function joinPatches(
  findings: readonly MatchFinding[],
  { catalog }: Pick<Reads, 'catalog'>,
  check: () => void,
): Joined {
  const list = catalog.readList(PATCHES.path)
  if (list === null) return patchesNotApplied(findings, 'this mirror has no list of patches')
  if (list.entries > 0 && !catalog.hasFacet(list.id, CVE_FACET))
    return patchesNotApplied(findings, 'the list of patches names no CVEs')
  const placesOf = createPlaces(check)
  const found = new Map(findings.flatMap(placesOf).map((place) => [place, createPatchList()]))
  const cves = [...new Set(findings.flatMap(cvesOf))]
  for (const { patch, ecosystem, name } of ticketsAbout(cves, { catalog, list: list.id, check })) {
    const same = found.get(placeOf(patch.cve, ecosystem, name))
    same?.add(patch)
  }
  const joined = findings.map((finding) => {
    const places = placesOf(finding)
    const kept = places.flatMap(
      (place) =>
        found
          .get(place)
          ?.kept()
          .map((patch) => ({ place, patch })) ?? [],
    )
    const { release } = finding.component
    const own = kept.filter(({ place, patch }) => isForRelease(patch.release, place, release?.name ?? null))
    const listed = places.reduce((sum, place) => sum + (found.get(place)?.count() ?? 0), 0)
    const patches = doneFirst(own.map(({ patch }) => patch))
    return { ...finding, patches, patchCount: listed - kept.length + own.length }
  })
  const partial = catalog.whyListPartial(PATCHES.path)
  return { findings: joined, patches: { notApplied: null, entries: list.entries, partial } }
}

/** Whether an entry for a release of a distribution, '' for none, is for the one that is judged; null: that is not known. `place`: of the entry. */
export function isForRelease(named: string, place: string, asked: string | null): boolean {
  const [, base = ''] = JSON.parse(place) as string[]
  const release = named === '' ? null : readRelease(named, base)
  return release === null || isMeant(release.ecosystem, asked ?? base)
}

/** The releases that entries of the list are for, '' for none, by the places that they are about. */
export type DonePlaces = ReadonlyMap<string, ReadonlySet<string>>

/**
 * Returns the places that done entries about CVEs are about, as `patchPlaces` names them; none where the mirror has no list
 * that names CVEs.
 */
export function listDonePlaces(cves: readonly string[], { catalog }: Pick<Reads, 'catalog'>): DonePlaces {
  const places = new Map<string, Set<string>>()
  const list = catalog.readList(PATCHES.path)
  if (list === null || !catalog.hasFacet(list.id, CVE_FACET)) return places
  const reading = { catalog, list: list.id, check: () => undefined }
  for (const { patch, ecosystem, name } of ticketsAbout(cves, reading))
    if (isDone(patch)) {
      const place = placeOf(patch.cve, ecosystem, name)
      places.set(place, (places.get(place) ?? new Set()).add(patch.release))
    }
  return places
}

/** Returns a text that differs once the list of patches does. */
export function patchListState({ catalog }: Pick<Reads, 'catalog'>): string {
  const list = catalog.readList(PATCHES.path)
  if (list === null) return ''
  const pages = catalog.listPages(list.id).map(({ sha256 }) => sha256.toString('base64'))
  return `${list.entries} ${list.changed} ${sha256Hex(pages.join(' '))}`
}

/** Returns the places of entries about CVEs and a package. `base`: its ecosystem without a release. */
export function patchPlaces(cves: readonly string[], base: string, name: string): string[] {
  return cves.flatMap((cve) => namesIn(base, name).map((one) => placeOf(cve, base, one)))
}

/** Creates the list of the patches about one CVE and package: it counts all, and keeps some, before others those that are done. */
function createPatchList() {
  let kept = [] as MatchPatch[]
  let count = 0
  return {
    add(patch: MatchPatch): void {
      count++
      if (kept.length < MAX_PATCHES || isDone(patch)) kept = doneFirst([...kept, patch])
    },
    kept: () => kept,
    count: () => count,
  }
}

/** Returns as many patches as are kept of a finding, in their order; where there are more, the last that are not done go first. */
function doneFirst(patches: readonly MatchPatch[]): MatchPatch[] {
  if (patches.length <= MAX_PATCHES) return [...patches]
  const others = MAX_PATCHES - Math.min(MAX_PATCHES, patches.filter(isDone).length)
  let taken = 0
  return patches.filter((one) => isDone(one) || taken++ < others).slice(0, MAX_PATCHES)
}

interface Reading {
  readonly catalog: Reads['catalog']
  /** Its number. */
  readonly list: number
  readonly check: () => void
}

/** Iterates over the entries about CVEs; those that have too many entries together are read one at a time. */
function* ticketsAbout(cves: readonly string[], { catalog, list, check }: Reading): Generator<Ticket, void, undefined> {
  for (let at = 0; at < cves.length; at += AT_ONCE) {
    check()
    const values = cves.slice(at, at + AT_ONCE)
    const entries = catalog.listEntries(queryOf(list, values))
    const groups = isCut(entries) ? values.map((cve) => [cve]) : []
    for (const entry of groups.length === 0 ? entries : []) yield* ticketIn(entry)
    for (const alone of groups) {
      check()
      for (const entry of catalog.listEntries(queryOf(list, alone))) yield* ticketIn(entry)
    }
  }
}

/** Whether more entries than these may exist. */
function isCut(entries: readonly CatalogEntry[]): boolean {
  const bytes = entries.reduce((sum, { body }) => sum + body.length, 0)
  return entries.length >= MAX_ENTRIES || bytes > MAX_BYTES
}

/** Creates the function that names what entries about a finding may be about: its CVEs, ecosystems and package. */
function createPlaces(check: () => void): (finding: MatchFinding) => string[] {
  const known = new Map<MatchedComponent, readonly string[]>()
  return (finding) => {
    check()
    const { component, ecosystems } = finding
    const names = known.get(component) ?? packageNames(component)
    known.set(component, names)
    const bases = new Set(ecosystems.map((one) => findEcosystem(one)?.base ?? ''))
    const cves = cvesOf(finding)
    const places = [...bases].flatMap((base) =>
      names.flatMap((name) => (base === '' ? [] : patchPlaces(cves, base, name))),
    )
    return [...new Set(places)]
  }
}

/** The names by which the list of patches may call a component: its own, and that of its source package. */
function packageNames({ purl, sourcePackage }: MatchedComponent): string[] {
  const name = purl === null ? undefined : purlNames(purl)?.name
  return [...new Set([name, sourcePackage?.name])].filter((one) => one !== undefined)
}

/** A distribution's package is named by its source package, Maven's with or without group. */
function namesIn(base: string, name: string): string[] {
  return base === 'Maven' ? [...new Set([name, name.split(':').at(-1) ?? ''])] : [name]
}

function placeOf(cve: string, ecosystem: string, name: string): string {
  const base = BASES.get(ecosystem.toLowerCase()) ?? ''
  return JSON.stringify([cve, base, normalName(base, name)])
}

/** Ecosystems of the OSV schema by their names in lower case, as the service may write them. */
const BASES = new Map(ecosystemNames().names.map((name) => [name.toLowerCase(), name]))

/** Leaves findings without patches, for a reason. */
export function patchesNotApplied(findings: readonly MatchFinding[], reason: string): Joined {
  return { findings, patches: { notApplied: reason, entries: 0, partial: null } }
}

/** Whether a version with the fix is known, or the service says that it has patched the package. */
export function isFixable({ fixed, patches }: Pick<MatchFinding, 'fixed' | 'patches'>): boolean {
  return fixed.length > 0 || donePatches({ patches }).length > 0
}

/** Returns the patches that the service calls done. */
export function donePatches({ patches }: Pick<MatchFinding, 'patches'>): MatchPatch[] {
  return patches.filter(isDone)
}

function isDone({ status }: MatchPatch): boolean {
  return status.toLowerCase() === DONE
}

function queryOf(list: number, values: readonly string[]) {
  return {
    list,
    where: [{ facet: CVE_FACET, values }],
    after: null,
    order: { facet: null, field: null, descending: false },
    limit: MAX_ENTRIES,
    maxBytes: MAX_BYTES,
  }
}

/** Returns the CVEs that a finding is about. */
export function cvesOf({ id, aliases, upstream }: Pick<MatchFinding, 'id' | 'aliases' | 'upstream'>): string[] {
  return [...new Set([id, ...aliases, ...upstream])].filter((name) => name.startsWith('CVE-'))
}

/** What an entry of the list says, and the package that it is about; empty texts where it says nothing. */
interface Ticket {
  readonly patch: MatchPatch
  readonly ecosystem: string
  readonly name: string
}

/** Returns what an entry says, in a list; an empty one for what is no JSON object. */
function ticketIn({ id, body }: CatalogEntry): Ticket[] {
  const item = itemOf(body)
  if (item === null) return []
  const text = (field: string, shortened = false): string => textIn(item, field, shortened)
  const patch: MatchPatch = {
    ticket: short(id),
    cve: text('cve_id'),
    status: text('ticket_status', true),
    version: text('version'),
    release: text('os_distro_major'),
  }
  return [{ patch, ecosystem: text('ecosystem', true), name: text('package_src_name') }]
}

function itemOf(body: Buffer): Fields | null {
  try {
    const item: unknown = JSON.parse(body.toString('utf8'))
    return isObject(item) ? fieldsOfItem(item, 'patches') : null
  } catch {
    return null
  }
}

/** Services spell field names in several ways: `ticketStatus`, `status`. */
function textIn(item: Fields, field: string, shortened: boolean): string {
  const [name = field] = Object.hasOwn(item, field) ? [field] : resolveField(field, Object.keys(item), shortened)
  const value = item[name]
  return typeof value === 'string' || typeof value === 'number' ? short(String(value)) : ''
}

function short(text: string): string {
  return text.slice(0, LONGEST_TEXT)
}
