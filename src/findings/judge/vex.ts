import { sha256Of } from '../../core/digest.ts'
import { MirrorError } from '../../core/errors.ts'
import { createVexJudge, readVexStatements, statedId, statedIds } from '../../match/vex/apply.ts'
import { ownPlaces, statedPlaces } from '../../match/vex/coverage.ts'
import type { Statement } from '../../match/vex/statements.ts'
import type { VexAbout } from '../../store/findings/vex.ts'
import type { FindingComponent, FindingsStore, TagFinding } from '../../store/findings/writes.ts'
import type { VexDocument } from '../../store/views/vex.ts'
import { type DuringReads, catalogOf } from './during.ts'
import { type RecordNames, createNameReader } from './names.ts'

/** Documents whose statements are kept parsed, and texts whose numbers are kept. */
const KEPT_DOCUMENTS = 32
const KEPT_NUMBERS = 100_000

/** A finding of a component, as VEX is asked about it. */
export interface AskedFinding {
  readonly record: string
  readonly names: RecordNames
  readonly component: Pick<FindingComponent, 'id' | 'packages'>
}

/** What VEX says about the findings of tags. */
export type VexRules = ReturnType<typeof createVexRules>

interface VexInput {
  readonly store: FindingsStore
  readonly during: DuringReads
  /** Unix milliseconds. */
  readonly now: number
}

/**
 * Brings what is known of the VEX documents to those of the catalog, each in a transaction of its own, and marks the tags that
 * a changed one may be about. One that cannot be read is tried again with the next catalog.
 */
export async function followVex({ store, during }: Omit<VexInput, 'now'>): Promise<void> {
  const catalog = during(catalogOf)
  if (catalog === null || catalog === store.readFollowed('vex')) return
  const listed = during((_, vex) => vex.listVexDocuments())
  const known = new Map(store.listVexDocuments().map(({ digest, id }) => [digest, id]))
  const digests = new Set(listed.map(({ digest }) => digest))
  const numberOf = createNumbers()
  for (const [digest, id] of known)
    if (!digests.has(digest)) await store.inOne(() => Promise.resolve(store.dropVexDocument(id)))
  for (const document of listed) {
    if (known.has(document.digest)) continue
    const statements = readDocument(during, document, catalog)
    if (statements === null) continue
    const about = aboutOf(statements, numberOf)
    await store.inOne(() => Promise.resolve(store.addVexDocument(document.digest, about)))
  }
  store.putFollowed('vex', catalog)
}

/** Returns the statements of a document, none for CSAF; null for one that cannot be read. Throws `locked`. */
function readDocument(
  during: DuringReads,
  document: VexDocument,
  catalog: string | null,
): readonly Statement[] | null {
  return during((reads, vex) => {
    const statements = readVexStatements(vex, document)
    if (statements === null && catalogOf(reads) !== catalog)
      throw new MirrorError('locked', 'the catalog was replaced meanwhile')
    return statements === 'csaf' ? [] : statements
  })
}

function* aboutOf(
  statements: readonly Statement[],
  numberOf: (text: string) => number,
): Generator<VexAbout, void, undefined> {
  for (const statement of statements) {
    const vulnerabilities = statement.vulnerabilities.map((id) => numberOf(statedId(id)))
    for (const place of statedPlaces(statement))
      for (const vulnerability of vulnerabilities) yield [numberOf(place), vulnerability]
  }
}

/** Creates the function that makes a number of 48 bits of a text. Equal numbers of other texts cost a look, and say nothing. */
function createNumbers(): (text: string) => number {
  const known = new Map<string, number>()
  return (text) => {
    const before = known.get(text)
    if (before !== undefined) return before
    if (known.size >= KEPT_NUMBERS) known.clear()
    const number = sha256Of(text).readUIntBE(0, 6)
    known.set(text, number)
    return number
  }
}

/** Creates what says which findings VEX rules out, by the documents that `followVex` has read. */
export function createVexRules({ store, during, now }: VexInput) {
  const numberOf = createNumbers()
  const read = createStatementReader(store, during)
  const isAny = store.listVexDocuments().length > 0
  const named = new Map<number, boolean>()
  const isNamed = (place: number): boolean => {
    const is = named.get(place) ?? store.isPlaceNamed(place)
    named.set(place, is)
    return is
  }
  const ofComponent = (packages: string): number[] => placesOf(packagesIn(packages), numberOf)
  const ofSubjects = (subjects: string): number[] =>
    placesOf(subjectsIn(subjects).flat().map((purl) => [purl, '']), numberOf) // prettier-ignore
  /** The documents that may say anything about findings. */
  const documentsAbout = (subjects: string, findings: readonly AskedFinding[]): Set<string> => {
    const digests = new Set<string>()
    const common = ofSubjects(subjects).filter(isNamed)
    for (const { record, names, component } of findings) {
      const places = [...common, ...ofComponent(component.packages).filter(isNamed)]
      for (const id of places.length === 0 ? [] : statedIds({ id: record, ...names }))
        for (const place of places)
          for (const digest of store.listVexAbout(place, numberOf(id))) digests.add(digest)
    }
    return digests
  }
  return {
    /** Adds what a new component is, by which VEX about it is found. */
    addComponent(id: number, packages: string): void {
      store.addComponentPlaces(id, ofComponent(packages))
    },
    /** The same of a tag. */
    replaceTag: (id: number, subjects: string): void =>
      store.replaceTagPlaces(id, ofSubjects(subjects)),
    /**
     * Returns those findings of a tag that VEX rules out: in each of its SBOMs, and for each package that they list of the
     * component. `subjects`: as the tag has them. Throws `locked` where a document was replaced meanwhile.
     */
    ruledOut<Finding extends AskedFinding>(
      subjects: string,
      findings: readonly Finding[],
    ): readonly Finding[] {
      const digests = isAny ? [...documentsAbout(subjects, findings)].sort() : []
      if (digests.length === 0) return []
      const asked = findings.flatMap(askedOf)
      const open = new Set<Finding>()
      for (const list of subjectsIn(subjects)) {
        const judge = createVexJudge(asked, { subjects: list, now, check: () => undefined })
        for (const digest of digests)
          for (const statement of read(digest)) judge.add(statement, { digest })
        for (const one of asked) if (judge.reasonFor(one) === null) open.add(one.of)
      }
      return findings.filter((one) => !open.has(one))
    },
  }
}

function askedOf<Finding extends AskedFinding>(of: Finding) {
  const { record: id, names, component } = of
  return packagesIn(component.packages).map(([purl, version]) => ({
    ...{ id, ...names, of },
    component: { purl, version },
  }))
}

function packagesIn(packages: string): [purl: string, version: string][] {
  return JSON.parse(packages) as [string, string][]
}

function subjectsIn(subjects: string): string[][] {
  return JSON.parse(subjects) as string[][]
}

function placesOf(
  packages: readonly (readonly [purl: string, version: string])[],
  numberOf: (text: string) => number,
): number[] {
  const places = packages.flatMap(([purl, version]) => ownPlaces({ purl, version }))
  return [...new Set(places)].map(numberOf)
}

function createStatementReader(store: FindingsStore, during: DuringReads) {
  const kept = new Map<string, readonly Statement[]>()
  return (digest: string): readonly Statement[] => {
    const before = kept.get(digest)
    if (before !== undefined) return before
    const document = during((reads) => reads.catalog.readDocument(digest))
    const { size = 0, changed = 0 } = document ?? {}
    const statements = readDocument(during, { digest, size, changed }, store.readFollowed('vex'))
    if (kept.size >= KEPT_DOCUMENTS) kept.clear()
    kept.set(digest, statements ?? [])
    return statements ?? []
  }
}

/** The findings of a tag that count, and how many VEX rules out. */
interface Ruled {
  readonly visible: readonly TagFinding[]
  readonly suppressed: number
}

/** Returns the findings of a tag that count now, by what is stored. */
export function visibleIn(store: FindingsStore, tag: number): readonly TagFinding[] {
  const hidden = new Set(store.listSuppressedIn(tag).map(keyOf))
  return store
    .listTagFindings(tag)
    .filter((one) => !hidden.has(keyOf({ ...one, component: one.id })))
}

/** Asks VEX about all findings of a tag, and stores which it rules out. Throws `locked`. */
export function ruleTag(
  store: FindingsStore,
  rules: VexRules,
  tag: number,
  subjects: string,
): Ruled {
  const namesOf = createNameReader(store)
  const asked = store.listTagFindings(tag).map((finding) => ({
    ...{ finding, component: finding, record: finding.record, names: namesOf(finding.record) },
  }))
  const ruled = new Set(rules.ruledOut(subjects, asked))
  const before = new Set(store.listSuppressedIn(tag).map(keyOf))
  for (const one of asked) {
    const row = { component: one.component.id, tag, record: one.record }
    if (ruled.has(one) === before.has(keyOf(row))) continue
    if (ruled.has(one)) store.suppress(row)
    else store.unsuppress(row)
  }
  const visible = asked.filter((one) => !ruled.has(one)).map(({ finding }) => finding)
  return { visible, suppressed: ruled.size }
}

function keyOf({ component, record }: { component: number; record: string }): string {
  return `${component} ${record}`
}
