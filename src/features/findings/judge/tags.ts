import { nameOfTag } from '../../lookup/reads/tag-names.ts'
import { querySourceOf } from '../../scanners/routes/query-source.ts'
import { MirrorError } from '../../../base/errors.ts'
import { TAGS } from '../../../base/domain/resources.ts'
import type { Fields } from '../../../base/json/objects.ts'
import type { InputSbom, SbomComponent } from '../../../documents/sboms/sbom.ts'
import { readMirroredSboms, sbomDigestsOf } from '../../../documents/sboms/mirrored.ts'
import type { FindingCounts, GoneReason, TagFindings } from '../../../store/findings/reads.ts'
import { NO_SBOM, sbomGapWords, unreadSbomWords } from '../../../store/findings/words.ts'
import type { FindingComponent, FindingsStore, TagFinding } from '../../../store/findings/writes.ts'
import type { Reads } from '../../../store/reads.ts'
import type { Views } from '../../scanners/store/reads.ts'
import { compareFindingSets, countFindings, isChange } from './compare.ts'
import { type CatalogAge, type DuringReads, expectCatalog } from './during.ts'
import { packageKey } from '../../../base/identity/names.ts'
import { surroundingsOf } from '../../../base/identity/surroundings.ts'
import type { Identity } from '../../../base/identity/identity.ts'
import { writeDescribed } from '../../../documents/vex/described.ts'
import { NO_RECORDS } from '../../match/judging/compared.ts'
import { ecosystemsOf, listRecorded } from '../../match/judging/package-source.ts'
import { identityOf } from '../../match/judging/components.ts'
import { readAsked, writeAsked } from '../../../store/findings/asked.ts'
import { createEvaluation } from './evaluate.ts'
import { gapOf } from './gaps.ts'
import type { IsPatched } from './patches.ts'
import { followUnrecorded, recordedIn } from './unrecorded.ts'
import { unreadState } from './vex-documents.ts'
import { type VexRules, ruleTag, visibleIn } from './vex.ts'

interface TagsInput {
  readonly store: FindingsStore
  /** Show the snapshot that all findings are of. */
  readonly views: Views
  /** The generation of views, by its name. */
  readonly generation: string
  /** The snapshot of the catalog that they are brought to. */
  readonly catalog: string
  readonly age: Pick<CatalogAge, 'isBack'>
  readonly rules: VexRules
  readonly isPatched: IsPatched
  readonly during: DuringReads
  /** Unix milliseconds. */
  readonly now: number
}

/** Tags whose SBOM was read, tags that are gone, and tags whose findings differ. */
interface TagsReport {
  readonly catalog: string
  readonly read: number
  readonly gone: number
  readonly tags: number
}

/** A tag as the catalog lists it; `sbom`: SHA-256 of its SBOMs, separated by spaces. */
type ListedTag = Pick<TagFindings, 'owner' | 'name' | 'sbom'>

/**
 * Brings the tags to those of the catalog: reads the SBOMs that are new, one tag at a time, each in a transaction of its own.
 * Work that ends in between continues with the next tag. Throws `locked` where the catalog is replaced meanwhile.
 */
export async function followTags(input: TagsInput): Promise<TagsReport> {
  const { store, catalog, during, now } = input
  if (store.isWhole() && !store.hasUnread() && store.readState()?.catalog === catalog) {
    await followUnrecorded(input)
    store.finishJudging(catalog, now)
    return { catalog, read: 0, gone: 0, tags: 0 }
  }
  const listed = during((reads) => {
    expectCatalog(reads, catalog)
    return listTags(reads)
  })
  store.putFollowed('tags', catalog)
  const known = new Map(store.listOwners().map((one) => [one.owner, one]))
  const gone = [...known.values()].filter(({ owner }) => !listed.has(owner))
  for (const one of gone) await dropTag(store, one)
  let read = 0
  let tags = 0
  for (const tag of listed.values()) {
    const before = known.get(tag.owner)
    if (before?.sbom === tag.sbom) {
      if (before.name !== tag.name) store.renameTag(before.id, tag.name)
      const isStale = before.vexStale === 1
      if (isStale && (await store.inOne(() => ruleAgain(input, tag.owner, catalog)))) tags++
      continue
    }
    if (tag.sbom !== '') read++
    if (await store.inOne(() => judgeTag(input, tag, catalog))) tags++
  }
  const isAnyUnread = store.listOwners().some(({ owner, sbom }) => listed.get(owner)?.sbom !== sbom)
  if (isAnyUnread) store.putFollowed('tags', unreadState(catalog))
  await followUnrecorded(input)
  store.finishJudging(catalog, now)
  return { catalog, read, gone: gone.length, tags }
}

function listTags(reads: Reads): Map<string, ListedTag> {
  const tags = new Map<string, ListedTag>()
  const list = reads.catalog.readList(TAGS)
  if (list === null) return tags
  for (const { id: owner, body } of reads.catalog.eachEntry(list.id)) {
    const name = nameOfTag(JSON.parse(body.toString('utf8')) as Fields)
    const sbom = [...new Set(sbomDigestsOf(reads, owner))].join(' ')
    tags.set(owner, { owner, name, sbom })
  }
  return tags
}

function dropTag(store: FindingsStore, { id, owner }: Pick<TagFindings, 'id' | 'owner'>): Promise<void> {
  return store.inOne(() => {
    store.replaceComponents(id, [])
    store.replaceTagPlaces(id, [])
    store.dropFollowed(lastOf(owner))
    store.dropTag(id)
    return Promise.resolve()
  })
}

/**
 * Reads the SBOM of a tag and replaces its components; returns whether a change was logged. The first judgement of a tag is
 * where its log begins. While it cannot be judged as a whole nothing is logged: the next whole judgement is compared with the last.
 */
async function judgeTag(input: TagsInput, tag: ListedTag, catalog: string): Promise<boolean> {
  const { store, rules } = input
  const known = store.readTag(tag.owner)
  const before = known === null ? null : lastJudged(store, known)
  const read = readSboms(input, tag, catalog)
  const refused = 'refusal' in read
  const { components, ...packages } = refused ? NOTHING_READ : read
  const about = {
    ...tag,
    ...packages,
    notJudged: packages.unidentified,
    sbom: read.sbom,
    refusal: refused ? read.refusal : null,
  }
  const ids = await addComponents(input, components)
  const id = store.putTag({ ...about, ...countFindings([]) })
  rules.replaceTag(id)
  store.replaceComponents(id, ids)
  store.dropFollowed('unrecorded')
  const { visible, suppressed } = ruleTag(store, rules, id)
  const counts = { ...countFindings(visible), suppressed }
  store.putTag({ ...about, ...counts })
  store.countNotJudged(id)
  if (before === null) return false
  if (refused || read.sbom !== tag.sbom) {
    store.putFollowed(lastOf(tag.owner), JSON.stringify(before))
    return false
  }
  store.dropFollowed(lastOf(tag.owner))
  return logChange(input, { ...tag, id, catalog, cause: 'sbom', before, visible, counts })
}

function lastOf(owner: string): `last ${string}` {
  return `last ${owner}`
}

/** Returns the findings of a tag by its last whole judgement; null: there was none. */
function lastJudged(store: FindingsStore, { id, owner, refusal }: TagFindings): readonly TagFinding[] | null {
  const kept = store.readFollowed(lastOf(owner))
  if (kept !== null) return JSON.parse(kept) as TagFinding[]
  return refusal === null ? visibleIn(store, id) : null
}

/** Asks VEX again about the findings of a tag whose SBOM is as before; returns whether a change was logged. */
function ruleAgain(input: TagsInput, owner: string, catalog: string): Promise<boolean> {
  const { store, rules } = input
  const tag = store.readTag(owner)
  if (tag === null) return Promise.resolve(false)
  const before = visibleIn(store, tag.id)
  const { visible, suppressed } = ruleTag(store, rules, tag.id)
  const counts = { ...countFindings(visible), suppressed }
  store.putTag({ ...tag, ...counts })
  const logged = logChange(input, { ...tag, catalog, cause: 'vex', before, visible, counts })
  return Promise.resolve(logged)
}

interface TagChange extends Pick<TagFindings, 'id' | 'owner' | 'name'> {
  readonly catalog: string
  readonly cause: 'sbom' | 'vex'
  readonly before: readonly TagFinding[]
  readonly visible: readonly TagFinding[]
  readonly counts: FindingCounts
}

function logChange({ store, age, now }: TagsInput, change: TagChange): boolean {
  const { id, owner, name, catalog: snapshot, before, visible, counts } = change
  const cause = age.isBack ? 'rollback' : change.cause
  let listed: ReadonlySet<string> | null = null
  const whyGone = (one: TagFinding): GoneReason => {
    listed ??= new Set(store.listTagFindings(id).map(keyOf))
    return listed.has(keyOf(one)) ? 'vex' : 'sbom'
  }
  const { counts: _, ...difference } = compareFindingSets(before, visible, whyGone)
  if (!isChange(difference)) return false
  const { findings, fixable } = counts
  store.addLog({ ...difference, findings, fixable, owner, name, at: now, cause, snapshot })
  return true
}

function keyOf({ ecosystem, name, version, record }: TagFinding): string {
  return JSON.stringify([ecosystem, name, version, record])
}

/** SHA-256 of the SBOMs of a tag, separated by spaces, without those that may be read another time. */
interface Tried {
  readonly sbom: string
}

/** Why a tag is not judged. */
interface Refusal extends Tried {
  readonly refusal: string
}

/**
 * Reads the packages of a tag. Of several SBOMs those that can be read count. Throws `locked` where one is not there because
 * another snapshot of the catalog was published meanwhile, by which the tag is judged later.
 */
function readSboms(
  { during }: TagsInput,
  { name, sbom }: ListedTag,
  catalog: string,
): (ReadPackages & Tried) | Refusal {
  if (sbom === '') return { refusal: NO_SBOM, sbom }
  const sboms: InputSbom[] = []
  const damaged = new Set<string>()
  let refusal = ''
  for (const digest of sbom.split(' ')) {
    try {
      sboms.push(...during((reads) => readMirroredSboms(reads, digest, name)))
    } catch (error) {
      if (!(error instanceof MirrorError) || error.code !== 'not_ready') throw error
      const isOfContent = error.cause instanceof MirrorError
      if (!isOfContent) during((reads) => expectCatalog(reads, catalog))
      if (!isOfContent) damaged.add(digest)
      refusal = error.message.slice(0, 1000)
    }
  }
  const tried = sbom.split(' ').filter((digest) => !damaged.has(digest))
  if (sboms.length === 0) return { refusal, sbom: tried.join(' ') }
  const read = packagesOf(sboms)
  const sbomGap = refusal === '' ? read.sbomGap : unreadSbomWords(refusal)
  return { ...read, sbomGap, sbom: tried.join(' ') }
}

/** Returns the numbers of components; those that no tag had are judged. */
async function addComponents(
  { store, views, rules, isPatched }: TagsInput,
  components: readonly TagPackage[],
): Promise<number[]> {
  const known = components.flatMap((one) => store.findComponent(one) ?? [])
  const added = components.filter((one) => store.findComponent(one) === null)
  const evaluate = createEvaluation(querySourceOf(views), isPatched)
  const recorded = ecosystemsOf(listRecorded(views))
  const isRecorded = recordedIn(views, added)
  const ids: number[] = []
  for (const one of added.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const { findings, comparison } = isRecorded(one) ? await evaluate(one) : NOTHING_RECORDED
    const gap = gapOf(one, comparison, recorded)
    const id = store.addComponent({ ...one, gap }, namesAsked(one))
    ids.push(id)
    store.replaceUncompared(id, comparison.uncompared.keys())
    rules.addComponent({ id, ...one })
    for (const finding of findings) {
      store.putFinding(id, finding)
      store.putNames(finding.record, finding.names)
    }
  }
  return [...known, ...ids]
}

/** No record is about a component. */
const NOTHING_RECORDED = { findings: [], comparison: NO_RECORDS }

/** The names by which records are asked about a component, as the views' index has them. */
function namesAsked(component: TagPackage): string[] {
  const questions = readAsked(component)?.questions ?? []
  return [...new Set(questions.map(({ ecosystem, name }) => packageKey(ecosystem.name, name)))]
}

/** Package URLs of a component that are kept, far above real ones, and what is kept of more: VEX rules nothing of it out. */
const MOST_PACKAGES = 1_000
const UNKNOWN = '[[""]]'

/** A package in a version, with what SBOMs list of it. */
type TagPackage = Omit<FindingComponent, 'id' | 'gap'>

/** What the SBOMs of a tag say. */
interface ReadPackages {
  readonly components: readonly TagPackage[]
  /** JSON, as `TagFindings` has it. */
  readonly subjects: string
  readonly sbomGap: string | null
  readonly packages: number
  /** Packages of which it is not known who they are. */
  readonly unidentified: number
  /** Packages judged by the records of all releases, and by their own name only, as of `match`. */
  readonly allReleases: number
  readonly binaryNameOnly: number
}

/** Of a tag whose SBOMs cannot be read. */
const NOTHING_READ: ReadPackages = {
  components: [],
  subjects: '[]',
  sbomGap: null,
  packages: 0,
  unidentified: 0,
  allReleases: 0,
  binaryNameOnly: 0,
}

/** How an SBOM lists a package. */
type Listed = readonly [purl: string | null, sbom?: number | null, source?: string, sourceVersion?: string]

/** What is stored of a component: also the source package that the SBOM names beside the package URL. */
function listedAs({ purl, source }: SbomComponent, identity: Identity, sbom: number | null): Listed {
  if (source !== null && identity.source !== null) return [purl, sbom, source.name, source.version]
  return sbom === null ? [purl] : [purl, sbom]
}

/** Returns the packages of the SBOMs of a tag: of several SBOMs together. */
function packagesOf(sboms: readonly InputSbom[]): ReadPackages {
  const components = new Map<string, Omit<TagPackage, 'packages'>>()
  const listed = new Map<string, Set<string>>()
  const unknown = new Set<string>()
  const allReleases = new Set<string>()
  const binaryNameOnly = new Set<string>()
  for (const [at, sbom] of sboms.entries()) {
    const around = surroundingsOf({ systems: sbom.systems, option: null })
    for (const component of sbom.components) {
      const { name, version, purl, kind } = component
      const identity = identityOf(component, around)
      if ('code' in identity) {
        unknown.add(JSON.stringify(purl === null ? [name, version, kind] : [purl, version, '']))
        continue
      }
      const one = {
        ecosystem: identity.ecosystem.name,
        name: identity.name,
        version: identity.version,
        asked: writeAsked(identity),
      }
      const key = JSON.stringify([one.ecosystem, one.name, one.version, one.asked])
      components.set(key, one)
      if (identity.needsRelease) allReleases.add(key)
      if (identity.needsSource) binaryNameOnly.add(key)
      const place = listedAs(component, identity, sboms.length === 1 ? null : at)
      listed.set(key, (listed.get(key) ?? new Set()).add(JSON.stringify(place)))
    }
  }
  const withPackages = [...components].map(([key, one]) => {
    const packages = [...(listed.get(key) ?? [])].sort()
    return {
      ...one,
      packages: packages.length > MOST_PACKAGES ? UNKNOWN : `[${packages.join(',')}]`,
    }
  })
  const subjects = JSON.stringify(sboms.map(writeDescribed))
  const { incomplete } = sboms.find((one) => one.incomplete !== undefined) ?? {}
  return {
    components: withPackages,
    subjects,
    sbomGap: incomplete === undefined ? null : sbomGapWords(incomplete),
    packages: components.size + unknown.size,
    unidentified: unknown.size,
    allReleases: allReleases.size,
    binaryNameOnly: binaryNameOnly.size,
  }
}
