import { RESOURCES } from '../domain/resources.ts'
import { resolveField } from '../json/field-names.ts'
import { type Fields, fieldsOf } from '../json/objects.ts'
import { findEcosystem, normalName } from '../query/orders/ecosystems.ts'
import { purlNames } from '../query/purl.ts'
import type { CatalogEntry } from '../store/catalog/lists.ts'
import type { Reads } from '../store/reads.ts'
import type { MatchFinding, MatchPatch, MatchPatches } from './result.ts'

const LIST = RESOURCES.find(({ name }) => name === 'patches')?.list ?? { path: '', facets: [] }
const CVE_FACET = LIST.facets.findIndex(({ field }) => field === 'cve_id')
/** CVEs of one statement, and entries of the list that are read for them: far above real ones. */
const AT_ONCE = 100
const MAX_ENTRIES = 20_000
/** The status of a patch that exists (service API, patch filter vocabulary). */
const DONE = 'done'

interface Joined {
  readonly findings: readonly MatchFinding[]
  readonly patches: MatchPatches
}

/**
 * Adds to each finding the entries of the mirrored list of patches (`/v1/patches`, service API, section 5) about its CVE, its
 * ecosystem and its package. `check` is called from time to time, and throws to stop.
 */
export function joinPatches(
  findings: readonly MatchFinding[],
  { catalog }: Pick<Reads, 'catalog'>,
  check: () => void,
): Joined {
  const list = catalog.readList(LIST.path)
  if (list === null) return patchesNotApplied(findings, 'this mirror has no list of patches')
  if (list.entries > 0 && !catalog.hasFacet(list.id, CVE_FACET))
    return patchesNotApplied(findings, 'the list of patches names no CVEs')
  const cves = [...new Set(findings.flatMap(cvesOf))]
  const byCve = new Map<string, Ticket[]>()
  for (let at = 0; at < cves.length; at += AT_ONCE) {
    check()
    const values = cves.slice(at, at + AT_ONCE)
    for (const entry of catalog.listEntries(queryOf(list.id, values))) {
      const ticket = readTicket(entry)
      byCve.set(ticket.patch.cve, [...(byCve.get(ticket.patch.cve) ?? []), ticket])
    }
  }
  const joined = findings.map((finding) => ({
    ...finding,
    patches: cvesOf(finding)
      .flatMap((cve) => byCve.get(cve) ?? [])
      .filter((ticket) => isAbout(ticket, finding))
      .map(({ patch }) => patch),
  }))
  return { findings: joined, patches: { notApplied: null, entries: list.entries } }
}

/** Leaves findings without patches, for a reason. */
export function patchesNotApplied(findings: readonly MatchFinding[], reason: string): Joined {
  return { findings, patches: { notApplied: reason, entries: 0 } }
}

/** Whether a version with the fix is known, or the service says that it has patched the package. */
export function isFixable({ fixed, patches }: Pick<MatchFinding, 'fixed' | 'patches'>): boolean {
  return fixed.length > 0 || donePatches({ patches }).length > 0
}

/** Returns the patches that the service calls done. */
export function donePatches({ patches }: Pick<MatchFinding, 'patches'>): MatchPatch[] {
  return patches.filter(({ status }) => status.toLowerCase() === DONE)
}

function queryOf(list: number, values: readonly string[]) {
  return {
    ...{ list, where: [{ facet: CVE_FACET, values }], after: null },
    ...{ order: { facet: null, field: null, descending: false }, limit: MAX_ENTRIES },
  }
}

function cvesOf({ id, aliases, upstream }: MatchFinding): string[] {
  return [...new Set([id, ...aliases, ...upstream])].filter((name) => name.startsWith('CVE-'))
}

/** What an entry of the list says, and the package that it is about; empty texts where it says nothing. */
interface Ticket {
  readonly patch: MatchPatch
  readonly ecosystem: string
  readonly name: string
}

function readTicket({ id, body }: CatalogEntry): Ticket {
  const item = fieldsOf(JSON.parse(body.toString('utf8')))
  const text = (field: string, shortened = false): string => textIn(item, field, shortened)
  const patch: MatchPatch = {
    ...{ ticket: id, cve: text('cve_id'), status: text('ticket_status', true) },
    ...{ version: text('version'), release: text('os_distro_major') },
  }
  return { patch, ecosystem: text('ecosystem', true), name: text('package_src_name') }
}

/** Services spell field names in several ways: `ticketStatus`, `status`. */
function textIn(item: Fields, field: string, shortened: boolean): string {
  const [name = field] = resolveField(field, Object.keys(item), shortened)
  const value = item[name]
  return typeof value === 'string' ? value : ''
}

/** Whether an entry is about the package of a finding: a distribution's by its source package, Maven's with or without group. */
function isAbout({ ecosystem, name }: Ticket, { component, ecosystems }: MatchFinding): boolean {
  const bases = ecosystems.map((one) => findEcosystem(one)?.base ?? '')
  const base = bases.find((one) => one.toLowerCase() === ecosystem.toLowerCase())
  const own = component.purl === null ? null : purlNames(component.purl)
  if (base === undefined || base === '' || own === null) return false
  const names = base === 'Maven' ? [own.name, own.name.split(':').at(-1) ?? ''] : [own.name]
  return names.some((one) => normalName(base, one) === normalName(base, name))
}
