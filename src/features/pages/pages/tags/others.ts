import { TAGS } from '../../../../base/domain/resources.ts'
import { copiedDigests } from '../../../../base/json/forms/tag-digests.ts'
import { fieldsOfItem } from '../../../../base/json/forms/item-fields.ts'
import { type Fields, fieldsOf } from '../../../../base/json/objects.ts'
import { isReleased } from '../../../../base/identity/releases.ts'
import { sbomPathOf } from '../../../../documents/sboms/mirrored.ts'
import type { FindingsReads, TagFindings } from '../../../../store/findings/reads.ts'
import type { ListedFinding, OtherTag, TagComponent } from '../../../../store/findings/tag-list.ts'
import type { Reads } from '../../../../store/reads.ts'
import { changedAt } from '../../../lookup/list-answers.ts'
import { readAsked } from '../../../../store/findings/asked.ts'
import { folderOf } from '../../../scanners/store/generations.ts'
import type { SaidOfFinding } from './fixes.ts'

/** Tags of a repository that are looked at. */
const MOST_TAGS = 500

/** What another tag has of a finding; `unknown`: its judgement leaves that open. */
type Verdict = 'has' | 'fixed' | 'clear' | 'vex' | 'absent' | 'unknown'

/** Another tag of the repository. */
interface SiblingTag extends OtherTag {
  readonly repository: string
  /** Of all images that are copied for it. */
  readonly digests: readonly string[]
  /** When it changed last, as the service writes it; '' where it does not say so. */
  readonly changed: string
  /** Whether all of its SBOMs were read, and are those of what the catalog lists. */
  readonly isSound: boolean
}

/** Another tag without a finding, and how it is without it. */
export interface Without {
  readonly tag: SiblingTag
  readonly how: Exclude<Verdict, 'has' | 'unknown'>
  /** Versions of the package there. */
  readonly versions: readonly string[]
}

/** What the other tags of the repository have of a finding. */
export interface Elsewhere {
  /** The tags of the strongest statement, the newest first. */
  readonly without: readonly Without[]
  /** Tags that are looked at, and those of them of which it is not known. */
  readonly tags: number
  readonly unknown: number
  /** Whether the repository has more tags. */
  readonly isCut: boolean
}

interface OthersInput {
  readonly reads: Reads
  readonly found: FindingsReads
  readonly tag: TagFindings
  readonly findings: readonly ListedFinding[]
  readonly saidOf: (finding: ListedFinding) => SaidOfFinding | null
}

/** Creates what says of each of some findings of a tag which other tags of its repository are without it; null: it has no repository. */
export function compareOthers(input: OthersInput): ((finding: ListedFinding) => Elsewhere) | null {
  const { reads, found, tag, findings, saidOf } = input
  const repository = repositoryOf(tag.name)
  if (repository === null) return null
  const listed = found.listTagsOfRepository(`${repository}:`, `${repository};`, MOST_TAGS + 1)
  const others = listed.slice(0, MOST_TAGS).filter(({ owner }) => owner !== tag.owner)
  const siblings = readSiblings(reads, repository, others).sort(newestFirst)
  const packages = readPackages(found, siblings, findings)
  return (finding) => {
    const verdictOf = verdictsOn(finding, packages, saidOf(finding))
    const verdicts = siblings.map((one) => ({ tag: one, ...verdictOf(one) }))
    const [strongest] = STRENGTH.filter((how) => verdicts.some((one) => one.how === how))
    return {
      without: verdicts.flatMap(({ how, ...one }) => (how === strongest ? [{ ...one, how: strongest }] : [])),
      tags: verdicts.length,
      unknown: verdicts.filter(({ how }) => how === 'unknown').length,
      isCut: listed.length > MOST_TAGS,
    }
  }
}

/** How a tag can be without a finding, the strongest statement first. */
const STRENGTH = ['fixed', 'clear', 'vex', 'absent'] as const

/** Returns the repository that the name of a tag begins with; null: it names none. */
function repositoryOf(name: string): string | null {
  const colon = name.lastIndexOf(':')
  return colon <= 0 ? null : name.slice(0, colon)
}

function newestFirst(one: SiblingTag, other: SiblingTag): number {
  return timeOf(other) - timeOf(one)
}

function timeOf({ changed }: SiblingTag): number {
  return Date.parse(changed) || 0
}

function readSiblings(reads: Reads, repository: string, tags: readonly OtherTag[]): SiblingTag[] {
  const list = reads.catalog.readList(TAGS)
  const unsure = new Set(tags.length === 0 ? [] : reads.vex.listUnsureTags())
  return tags.map((tag) => {
    const entry = list === null ? null : reads.catalog.readEntry(list.id, tag.owner)
    const item: Fields = entry === null ? {} : fieldsOf(JSON.parse(entry.body.toString('utf8')))
    const isSound = entry !== null && !unsure.has(tag.owner) && isWhole(reads, tag, entry.sha)
    const digests = copiedDigests(fieldsOfItem(item, 'tags'))
    return { ...tag, repository, digests, changed: changedAt(item, 'tags'), isSound }
  })
}

/**
 * Whether each stored SBOM of a tag was read, and none is missing, of an earlier state of it, or incomplete by its own word. `sha`: of
 * its entry in the list.
 */
function isWhole(reads: Reads, { owner, sbom, subjects, refusal, sbomGap }: OtherTag, sha: Buffer): boolean {
  if (refusal !== null || sbomGap !== null || sbom === '') return false
  const path = sbomPathOf(owner)
  const answer = reads.catalog.readAnswer(path)
  if (answer === null || !answer.ownerSha.equals(sha) || reads.catalog.readMissingPath(path) !== null) return false
  const stored = [...new Set(answer.links.map(({ digest }) => digest))]
  const read = JSON.parse(subjects) as unknown[]
  return stored.join(' ') === sbom && read.length === stored.length
}

/** What the other tags have of the packages of findings. */
type Packages = ReturnType<typeof readPackages>

function readPackages(found: FindingsReads, siblings: readonly SiblingTag[], findings: readonly ListedFinding[]) {
  const names = [...new Set(findings.flatMap(namesOf))]
  const components = found.listComponentsIn(JSON.stringify(names), JSON.stringify(siblings.map(({ id }) => id)))
  const ids = JSON.stringify([...new Set(components.map(({ id }) => id))])
  const recordsOn = recordsByFinding(found, ids, findings)
  const records = JSON.stringify([...new Set(findings.flatMap(recordsOn))])
  const having = new Set(found.listFindingsAmong(ids, records).map(({ component, record }) => `${component} ${record}`))
  const byName = new Map<string, TagComponent[]>()
  for (const one of components)
    for (const name of namesAsked(one)) {
      const same = byName.get(name)
      if (same === undefined) byName.set(name, [one])
      else same.push(one)
    }
  return {
    /** What tags list by the name of the package of a finding, or of its source package, in any ecosystem, by their numbers. */
    listedOf: (finding: ListedFinding): ReadonlyMap<number, readonly TagComponent[]> =>
      Map.groupBy(new Set(namesOf(finding).flatMap((name) => byName.get(name) ?? [])), ({ tag }) => tag),
    /** Records about the vulnerability of a finding, by any id of it. */
    recordsOn,
    has: (component: number, record: string): boolean => having.has(`${component} ${record}`),
    isSuppressed: found.isSuppressed,
  }
}

/** A source package has binary packages of other names in another release. */
function namesOf({ name, source }: ListedFinding): string[] {
  return source === '' ? [name] : [name, source]
}

/** The names by which records are asked about a package. */
function namesAsked(component: TagComponent): Set<string> {
  return new Set([component.name, ...(readAsked(component)?.questions ?? []).map(({ name }) => name)])
}

/** Returns what names the records, among those of findings of some components (JSON), that share an id with that of a finding. */
function recordsByFinding(
  found: FindingsReads,
  components: string,
  findings: readonly ListedFinding[],
): (finding: ListedFinding) => readonly string[] {
  const wanted = new Set(findings.flatMap((one) => idsOf(one.record, one.names)))
  const byId = new Map<string, string[]>()
  for (const { id: record, names } of found.listRecordsOf(components))
    for (const id of idsOf(record, names)) if (wanted.has(id)) byId.set(id, [...(byId.get(id) ?? []), record])
  return ({ record, names }) => [...new Set(idsOf(record, names).flatMap((id) => byId.get(id) ?? []))]
}

/** The ids by which a record names its vulnerability. `names`: JSON, as stored. */
function idsOf(record: string, names: string): string[] {
  return [record, ...(JSON.parse(names) as string[][]).flat()]
}

/** Creates the function that says what another tag has of a finding. */
function verdictsOn(
  finding: ListedFinding,
  { listedOf, recordsOn, has, isSuppressed }: Packages,
  said: SaidOfFinding | null,
): (tag: SiblingTag) => { readonly how: Verdict; readonly versions: readonly string[] } {
  const records = recordsOn(finding)
  const packages = listedOf(finding)
  const judged = new Map<number, ReturnType<SaidOfFinding['judges']>>()
  const judge = (one: TagComponent) => {
    const before = judged.get(one.id)
    if (before !== undefined) return before
    const now = said?.judges(one) ?? null
    judged.set(one.id, now)
    return now
  }
  // A package is the same one in another release of its distribution.
  const folder = folderOf(finding.ecosystem)
  return (tag) => {
    const named = packages.get(tag.id) ?? []
    const listed = named.filter(({ ecosystem }) => folderOf(ecosystem) === folder)
    return { how: verdict(tag, named, listed), versions: [...new Set(listed.map(({ version }) => version))] }
  }
  function verdict(tag: SiblingTag, named: readonly TagComponent[], listed: readonly TagComponent[]): Verdict {
    if (!tag.isSound) return 'unknown'
    const related = named.flatMap(({ id }) => records.flatMap((record) => (has(id, record) ? [{ id, record }] : [])))
    if (related.some(({ id, record }) => !isSuppressed(id, tag.id, record))) return 'has'
    // Without their source packages, one of another name may be of the same.
    const isPartly = tag.binaryNameOnly > 0 && (finding.source !== '' || isReleased(folder))
    if (listed.length === 0) return named.length > 0 || isPartly ? 'unknown' : 'absent'
    if ((isPartly && finding.source !== '') || listed.some(({ gap }) => gap !== 0)) return 'unknown'
    const ruledOut = new Set(related.map(({ id }) => id))
    const verdicts = listed.filter(({ id }) => !ruledOut.has(id)).map(judge)
    if (verdicts.includes(null)) return 'unknown'
    if (ruledOut.size > 0) return 'vex'
    return verdicts.every((one) => one === 'fixed') ? 'fixed' : 'clear'
  }
}
