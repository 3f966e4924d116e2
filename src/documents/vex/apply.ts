import { DAY_MS, instantOf, stampOf, toIso } from '../../base/time.ts'
import { type ArtifactSignature, plainResult } from '../../base/domain/artifacts/signature.ts'
import { type VexDocument, tagsBelieving } from '../../store/catalog/vex.ts'
import { type DescribedImage, type NamedComponent, createCoverages } from './coverage.ts'
import { type Ruling, type Said, NO_TAG, createRuling } from './rule.ts'
import { type Statement, plainId, rulesOut } from './statement.ts'
import { type VexReads, isVexDamaged, readVexStatements } from './read.ts'

/** Longest text of a statement that is repeated in an answer, characters. */
const LONGEST_TEXT = 1_000
/** How far ahead of this machine's clock a statement that rules out may be dated: zones and wrong clocks. */
const AHEAD_MS = DAY_MS

/** Why VEX rules a finding out: the statement about the vulnerability and the product that counts. */
export interface VexReason {
  readonly status: 'not_affected' | 'fixed'
  /** Empty: the statement has none. */
  readonly justification: string
  readonly note: string
  /** As the statement names them. */
  readonly vulnerability: string
  readonly product: string
  /** RFC 3339 UTC; null: the statement and its document have no date. */
  readonly statedAt: string | null
  /** SHA-256 of the mirrored document, hex. */
  readonly document: string
  /** What the verification of its signatures came to; null: it was not verified. */
  readonly signature: ArtifactSignature | null
}

/** What of a finding VEX is about. */
export interface StatedFinding {
  /** Id of the record. */
  readonly id: string
  readonly aliases: readonly string[]
  /** Vulnerabilities that the record is derived from. */
  readonly upstream: readonly string[]
  readonly component: NamedComponent
}

/** An image, and the tag that it is of; null: it is not known which. */
export interface JudgedImage extends DescribedImage {
  readonly tag: string | null
}

/** What findings are compared with. */
interface VexInput {
  readonly reads: VexReads
  /** What the SBOM may be of: what one of them leaves open is not ruled out. */
  readonly images: readonly JudgedImage[]
  /** Unix milliseconds. */
  readonly now: number
  /** Called from time to time; throws to stop. */
  readonly check: () => void
}

/** Findings that VEX rules out, and all others. */
interface Applied<Finding> {
  readonly findings: readonly Finding[]
  readonly suppressed: readonly (Finding & { readonly vex: VexReason })[]
  /** Mirrored VEX documents, and those of them that were not read: damaged, too large, or of another format. */
  readonly documents: number
  readonly unread: number
  /** Whether the VEX of a tag that the SBOM may be of is damaged, or could not be fetched. */
  readonly isOwnUnknown: boolean
}

/** Takes out the findings that the mirrored VEX documents rule out, by the rule of `rule.ts`. */
export function applyVex<Finding extends StatedFinding>(
  findings: readonly Finding[],
  input: VexInput,
): Applied<Finding> {
  const { reads, images, check, now } = input
  const documents = reads.listVexDocuments()
  const withoutVex = new Set(reads.listTagsWithoutVex?.())
  const differing = withoutEqual(images, documents, withoutVex)
  const judges = differing.map((image) => createVexJudge(findings, { image, now, check, withoutVex }))
  const read = findings.length === 0 ? [] : documents
  let unread = 0
  for (const document of read) {
    check()
    const statements = readVexStatements(reads, document)
    if (statements === null) unread++
    if (statements === null && isVexDamaged(reads, document)) for (const judge of judges) judge.addUnread(document)
    for (const statement of statements ?? []) for (const judge of judges) judge.add(statement, document)
  }
  const left: Finding[] = []
  const suppressed: (Finding & { readonly vex: VexReason })[] = []
  for (const finding of findings) {
    check()
    const reasons = judges.map((judge) => judge.reasonFor(finding))
    const [vex = null] = reasons
    if (vex === null || reasons.includes(null)) left.push(finding)
    else suppressed.push({ ...finding, vex })
  }
  const isOwnUnknown = !judges.every((judge) => judge.isOwnKnown())
  return { findings: left, suppressed, documents: documents.length, unread, isOwnUnknown }
}

/** Returns images of which each has other names or documents: one digest may be that of many tags. */
function withoutEqual(
  images: readonly JudgedImage[],
  documents: readonly VexDocument[],
  withoutVex: ReadonlySet<string>,
): readonly JudgedImage[] {
  if (images.length < 2) return images
  const keyOf = ({ tag, ...names }: JudgedImage): string => {
    const own = documents.filter(({ tags = [] }) => tag !== null && tags.includes(tag))
    const believed = own.map((one) => [one.digest, tag !== null && tagsBelieving(one)?.includes(tag)])
    return JSON.stringify([names, believed, tag !== null && withoutVex.has(tag)])
  }
  return [...new Map(images.map((image) => [keyOf(image), image])).values()]
}

/** A statement about a finding. */
interface SaidOf extends Said {
  /** Why it rules the finding out; null: it does not. */
  readonly reason: VexReason | null
}

interface JudgeInput extends Pick<VexInput, 'now' | 'check'> {
  readonly image: JudgedImage
  /** Tags of whose VEX some could not be fetched; absent: of none. */
  readonly withoutVex?: ReadonlySet<string>
}

/** What of a document decides how its statements count. */
type SaidIn = Omit<VexDocument, 'size' | 'changed'>

/** Creates what decides, for each id of each finding, which statement counts. */
export function createVexJudge<Finding extends StatedFinding>(
  findings: readonly Finding[],
  { image, now, check, withoutVex }: JudgeInput,
) {
  let isOwnKnown = image.tag === null || withoutVex?.has(image.tag) !== true
  const byId = groupById(findings)
  const said = new Map<Finding, Map<string, Ruling<SaidOf>>>()
  const coverageOf = createCoverages(findings, image, check)
  const latest = latestAt(now)
  const rulingOf = (finding: Finding, id: string): Ruling<SaidOf> => {
    const known = said.get(finding) ?? new Map<string, Ruling<SaidOf>>()
    said.set(finding, known)
    const ruling = known.get(id) ?? createRuling<SaidOf>(image.tag)
    known.set(id, ruling)
    return ruling
  }
  return {
    add(statement: Statement, document: SaidIn): void {
      const { tags = [] } = document
      const counting = rulesOut(statement.status) ? tagsBelieving(document) : tags
      if (counting === null) return
      const ids = [...new Set(statement.vulnerabilities.map(statedId))].filter((id) => byId.has(id))
      if (ids.length === 0) return
      const isOwn = image.tag !== null && counting.includes(image.tag)
      const coverage = coverageOf(statement, { elsewhere: tags.length > 0, isOwn })
      for (const id of ids)
        for (const finding of byId.get(id) ?? []) {
          check()
          const covered = coverage(finding.component)
          if (covered === null) continue
          const { form, product } = covered
          const reason = reasonOf(statement, product, document)
          const at = datedBy(statement, latest)
          const of = counting.length === 0 ? [NO_TAG] : counting
          rulingOf(finding, id).add({ at, isOpen: reason === null, form, tags: of, reason })
        }
    },
    /** Notes that it is not known what a document says. */
    addUnread({ tags = [] }: Pick<SaidIn, 'tags'>): void {
      if (image.tag !== null && tags.includes(image.tag)) isOwnKnown = false
    },
    /** Whether all that the documents of the image's tag say is known. */
    isOwnKnown: (): boolean => isOwnKnown,
    /** Whether any statement is about a finding, in this image or in another one. */
    isNamed: (finding: Finding): boolean => said.has(finding),
    reasonFor: (finding: Finding): VexReason | null =>
      reasonIn(said.get(finding) ?? new Map<string, Ruling<SaidOf>>(), finding, isOwnKnown),
  }
}

/** Returns the latest date that is believed of a statement that rules out, as `instantOf`: with a later one it would count for ever. */
export function latestAt(now: number): string {
  return instantOf(toIso(now + AHEAD_MS))
}

/** Returns the date by which a statement counts. */
export function datedBy({ status, at }: Pick<Statement, 'status' | 'at'>, latest: string): string {
  return rulesOut(status) && at > latest ? '' : at
}

function groupById<Finding extends StatedFinding>(findings: readonly Finding[]): Map<string, Finding[]> {
  const byId = new Map<string, Finding[]>()
  for (const finding of findings)
    for (const id of statedIds(finding)) {
      const same = byId.get(id)
      if (same === undefined) byId.set(id, [finding])
      else same.push(finding)
    }
  return byId
}

/** Returns the ids by which statements name the vulnerability of a finding, each once, in the form of `statedId`. */
export function statedIds({ id, aliases, upstream }: Omit<StatedFinding, 'component'>): string[] {
  const named = [id, ...aliases, ...upstream].filter((one) => one !== '')
  return [...new Set(named.map(statedId))]
}

/** Returns an id of a vulnerability as it is compared: without case, and of a URL what it ends with. */
export function statedId(id: string): string {
  return plainId(id).toLowerCase()
}

/**
 * Returns why a finding is ruled out; null when it is not. No statement that counts may leave one of its ids open. The id of
 * the record is enough; of a record on several vulnerabilities otherwise each must be ruled out.
 */
function reasonIn(
  said: ReadonlyMap<string, Ruling<SaidOf>>,
  { id, aliases, upstream }: Omit<StatedFinding, 'component'>,
  isOwnKnown: boolean,
): VexReason | null {
  const verdicts = new Map<string, { at: string; reason: VexReason | null }>()
  for (const [one, ruling] of said) {
    const verdict = ruling.decide(isOwnKnown)
    if (verdict === null) continue
    verdicts.set(one, { at: verdict.at, reason: verdict.ruledOutBy?.reason ?? null })
  }
  const [newest] = [...verdicts.values()].sort((one, other) => (one.at < other.at ? 1 : -1))
  if (newest === undefined || [...verdicts.values()].some(({ reason }) => reason === null)) return null
  const cves = [id, ...aliases, ...upstream].map(statedId).filter((one) => one.startsWith('cve-'))
  const several = upstream.length > 1 ? upstream.map(statedId) : []
  const needed = new Set([...cves, ...several])
  const isWhole = needed.size < 2 || verdicts.has(statedId(id)) || [...needed].every((one) => verdicts.has(one))
  return isWhole ? newest.reason : null
}

function reasonOf(
  statement: Statement,
  product: string,
  { digest, signature }: Pick<VexDocument, 'digest' | 'signature'>,
): VexReason | null {
  const { status, justification, note, vulnerabilities, at } = statement
  if (!rulesOut(status)) return null
  const [vulnerability = ''] = vulnerabilities
  return {
    status,
    justification: short(justification),
    note: short(note),
    vulnerability: short(vulnerability),
    product: short(product),
    statedAt: at === '' ? null : stampOf(at),
    document: digest,
    signature: signature ? plainResult(signature) : null,
  }
}

function short(text: string): string {
  return text.slice(0, LONGEST_TEXT)
}
