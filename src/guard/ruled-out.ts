import { type JudgedImage, type VexReason, createVexJudge, statedIds, statedId } from '../documents/vex/apply.ts'
import { type NamedComponent, statedPlaces } from '../documents/vex/coverage.ts'
import { readDescribed } from '../documents/vex/described.ts'
import { type Statement, rulesOut } from '../documents/vex/statement.ts'
import type { OpenFinding } from '../store/findings/open-findings.ts'
import type { VexDocument } from '../store/catalog/vex.ts'
import type { RenamedImages } from './renamed-images.ts'

/** A VEX document of certain tags. */
export interface ComparedDocument {
  readonly document: VexDocument
  /** Whether it is published, and whether it would be. */
  readonly isBefore: boolean
  readonly isAfter: boolean
  /** Tags of which it is the first document, and which are themselves new: what it says of them has nothing to be compared with. */
  readonly firstOf: ReadonlySet<string>
}

/** Reads the statements of a document; none of one that is not compared. */
export type StatementReader = (document: VexDocument) => Promise<readonly Statement[]>

/** A finding that is ruled out afterwards and was not before. */
interface RuledOutFinding {
  /** The id of the tag. */
  readonly tag: string
  /** What people call the finding: tag, record, package and version. */
  readonly name: string
  /** The document. */
  readonly digest: string
  /** By what: the document, and its words. */
  readonly because: string
}

interface Comparing {
  /** Unix milliseconds. */
  readonly now: number
  readonly read: StatementReader
  /** Tags whose images VEX would know by other names. */
  readonly renamed: ReadonlyMap<string, RenamedImages>
}

/** Reports whether a document comes, goes, or becomes that of other tags. */
export function isChanged({ isBefore, isAfter }: ComparedDocument): boolean {
  return isBefore !== isAfter
}

/** Returns the ids of the vulnerabilities that documents say anything about. */
export async function idsIn(documents: readonly ComparedDocument[], read: StatementReader): Promise<Set<string>> {
  const ids = new Set<string>()
  for (const { document } of documents)
    for (const { vulnerabilities } of await read(document)) for (const id of vulnerabilities) ids.add(statedId(id))
  return ids
}

/**
 * Returns the open findings that are ruled out with the documents and names of images that would be published, and not with those
 * that are.
 */
export async function newlyRuledOut(
  documents: readonly ComparedDocument[],
  open: readonly OpenFinding[],
  { now, read, renamed }: Comparing,
): Promise<RuledOutFinding[]> {
  const named = createComparison(open, now, new Map())
  await named.addAll(documents.filter(isChanged), read)
  const touched = [...new Set([...named.listNamed(), ...open.filter(({ tag }) => renamed.has(tag))])]
  if (touched.length === 0) return []
  const comparison = createComparison(touched, now, renamed)
  await comparison.addAll(documents, read)
  return comparison.listRuledOut()
}

/** Creates what compares findings with the documents before and after, those of each tag in each of its SBOMs. */
function createComparison(open: readonly OpenFinding[], now: number, renamed: Comparing['renamed']) {
  const byTag = Map.groupBy(open, ({ tag }) => tag)
  const images = [...byTag].flatMap(([tag, ones]) => imagesOf(tag, ones, { now, next: renamed.get(tag) }))
  const ids = new Set(open.flatMap((one) => statedIds({ id: one.record, ...one })))
  const add = ({ document, isBefore, isAfter, firstOf }: ComparedDocument, statement: Statement): void => {
    for (const { tag, before, after } of images) {
      if (isBefore) before.add(statement, document)
      if (firstOf.has(tag) ? isBefore : isAfter) after.add(statement, document)
    }
  }
  return {
    async addAll(documents: readonly ComparedDocument[], read: StatementReader): Promise<void> {
      for (const one of documents)
        for (const statement of await read(one.document))
          if (statement.vulnerabilities.some((id) => ids.has(statedId(id)))) add(one, statement)
    },
    /** Returns the findings that any statement is about. */
    listNamed: (): OpenFinding[] => {
      const asked = images.flatMap((one) => one.asked.filter((finding) => isNamed(one, finding)))
      return [...new Set(asked.map(({ of }) => of))]
    },
    listRuledOut: (): RuledOutFinding[] => ruledOutIn(images),
  }
}

/** Findings of a tag in one of its SBOMs, and what decides about them before and after. */
type ComparedImage = ReturnType<typeof imagesOf>[number]

function imagesOf(
  tag: string,
  open: readonly OpenFinding[],
  { now, next }: { now: number; next: RenamedImages | undefined },
) {
  const [first] = open
  return (first?.subjects ?? []).map((stored, at) => {
    const asked = open.flatMap((one) => askedOf(one, at)).filter(({ component }) => isListed(next, at, component))
    const image = { ...readDescribed(stored), images: first?.images[at] ?? [], tag }
    const described = readDescribed(next?.sboms?.[at]?.described ?? stored)
    const after = next === undefined ? image : { ...described, images: next.namesOf(described.subjects), tag }
    const createJudge = (of: JudgedImage) => createVexJudge(asked, { image: of, now, check: () => undefined })
    return { tag, asked, before: createJudge(image), after: createJudge(after) }
  })
}

/** What the SBOM does not list any more is no matter of VEX. */
function isListed(next: RenamedImages | undefined, at: number, { purl }: NamedComponent): boolean {
  const sboms = next?.sboms ?? null
  return sboms === null || (purl !== null && sboms[at]?.purls.has(purl) === true)
}

function isNamed({ before, after }: ComparedImage, finding: Asked): boolean {
  return before.isNamed(finding) || after.isNamed(finding)
}

/** A finding is ruled out where it is in each SBOM that lists its package. */
function ruledOutIn(images: readonly ComparedImage[]): RuledOutFinding[] {
  const reasons = new Map<OpenFinding, Pick<RuledOutFinding, 'digest' | 'because'>>()
  const openBefore = new Set<OpenFinding>()
  const openAfter = new Set<OpenFinding>()
  for (const { asked, before, after } of images)
    for (const one of asked) {
      if (before.reasonFor(one) === null) openBefore.add(one.of)
      const reason = after.reasonFor(one)
      if (reason === null) openAfter.add(one.of)
      else reasons.set(one.of, { digest: reason.document, because: becauseOf(reason) })
    }
  return [...reasons].flatMap(([one, reason]): RuledOutFinding[] => {
    const name = `${one.tagName} ${one.record} ${one.package} ${one.version}`
    const isNew = openBefore.has(one) && !openAfter.has(one)
    return isNew ? [{ tag: one.tag, name, ...reason }] : []
  })
}

function becauseOf({ status, document }: VexReason): string {
  return `${status} by VEX document ${document.slice(0, 12)}`
}

/** A finding as VEX is asked about it. */
interface Asked {
  readonly id: string
  readonly aliases: readonly string[]
  readonly upstream: readonly string[]
  readonly component: NamedComponent
  readonly of: OpenFinding
}

function askedOf(of: OpenFinding, at: number): Asked[] {
  const { record: id, aliases, upstream, version } = of
  const listed = of.packages.filter(({ sbom }) => sbom === null || sbom === at)
  return listed.map(({ purl, source }) => {
    return { id, aliases, upstream, component: { purl, version, sourcePackage: source }, of }
  })
}

/** Returns what statements rule out: each vulnerability in each product. */
export function ruledOutPairs(statements: readonly Statement[]): string[] {
  const pairs = new Set<string>()
  for (const one of statements) {
    if (!rulesOut(one.status)) continue
    const places = statedPlaces(one).slice(0, MOST_PLACES)
    for (const id of one.vulnerabilities.map(statedId)) for (const place of places) pairs.add(`${id} ${place}`)
  }
  return [...pairs].slice(0, MOST_PAIRS)
}

/** Products of a statement, and what a document rules out, that are counted: far above real ones. */
const MOST_PLACES = 1_000
const MOST_PAIRS = 50_000
