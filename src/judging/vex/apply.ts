import { DAY_MS, instantOf, stampOf, toIso } from '../../core/time.ts'
import { isDisbelieved, plainResult } from '../../domain/artifacts/signature.ts'
import type { VexDocument, VexReader } from '../../store/views/vex.ts'
import type { MatchFinding, SuppressedFinding, VexReason } from '../finding.ts'
import { type NamedComponent, createCoverages } from './coverage.ts'
import { type Statement, readStatements, rulesOut } from './statements.ts'

/** Largest document that is read, bytes: far above any real VEX document. */
const MAX_BYTES = 64 * 2 ** 20
/** Longest text of a statement that is repeated in an answer, characters. */
const LONGEST_TEXT = 1_000
/** How far ahead of this machine's clock a statement that rules out may be dated: zones and wrong clocks. */
const AHEAD_MS = DAY_MS

/** What findings are compared with. */
interface VexInput {
  readonly reads: Pick<VexReader, 'listVexDocuments' | 'readVexContent'>
  /** Package URLs of what the SBOM describes, such as an image. */
  readonly subjects: readonly string[]
  /** Unix milliseconds. */
  readonly now: number
  /** Called from time to time; throws to stop. */
  readonly check: () => void
}

/** Findings that VEX rules out, and all others. */
interface Applied {
  readonly findings: readonly MatchFinding[]
  readonly suppressed: readonly SuppressedFinding[]
  /** Mirrored VEX documents, and those of them that were not read: damaged, too large, or of another format. */
  readonly documents: number
  readonly unread: number
  /** Those of them that are CSAF. */
  readonly csaf: number
}

/**
 * Takes out the findings that the mirrored VEX documents rule out: of all statements about a vulnerability and the product the
 * newest counts, and of equally old ones one that does not rule it out.
 */
export function applyVex(findings: readonly MatchFinding[], input: VexInput): Applied {
  const { reads, check } = input
  const documents = reads.listVexDocuments()
  const judge = createVexJudge(findings, input)
  const read = findings.length === 0 ? [] : documents
  let [unread, csaf] = [0, 0]
  for (const document of read) {
    check()
    const statements = readVexStatements(reads, document)
    if (statements === null || statements === 'csaf') {
      unread++
      if (statements === 'csaf') csaf++
    } else for (const statement of statements) judge.add(statement, document)
  }
  const left: MatchFinding[] = []
  const suppressed: SuppressedFinding[] = []
  for (const finding of findings) {
    check()
    const vex = judge.reasonFor(finding)
    if (vex === null) left.push(finding)
    else suppressed.push({ ...finding, vex })
  }
  return { findings: left, suppressed, documents: documents.length, unread, csaf }
}

/** Reads the statements of a stored document as `readStatements`; null also where it is damaged or too large. */
export function readVexStatements(
  reads: Pick<VexReader, 'readVexContent'>,
  document: VexDocument,
): ReturnType<typeof readStatements> {
  const content = document.size > MAX_BYTES ? null : reads.readVexContent(document)
  return content === null ? null : readStatements(content)
}

/** Whether the stored bytes of a document are damaged, and not what it says: another time they may be read. */
export function isVexDamaged(
  reads: Pick<VexReader, 'readVexContent'>,
  document: VexDocument,
): boolean {
  return document.size <= MAX_BYTES && reads.readVexContent(document) === null
}

/** A statement about a finding: why it rules the finding out, or null, and its date as `instantOf`. */
interface Said {
  readonly at: string
  readonly reason: VexReason | null
}

/** What of a finding VEX is about. */
interface StatedFinding extends Pick<MatchFinding, 'id' | 'aliases' | 'upstream'> {
  readonly component: NamedComponent
}

/** Creates what remembers, for each id of each finding, the statement that counts. */
export function createVexJudge<Finding extends StatedFinding>(
  findings: readonly Finding[],
  { subjects, now, check }: Pick<VexInput, 'subjects' | 'now' | 'check'>,
) {
  const byId = groupById(findings)
  const said = new Map<Finding, Map<string, Said>>()
  const coverageOf = createCoverages(findings, subjects, check)
  const latest = instantOf(toIso(now + AHEAD_MS))
  return {
    add(
      statement: Statement,
      { digest, signature }: Pick<VexDocument, 'digest' | 'signature'>,
    ): void {
      if (rulesOut(statement.status) && isDisbelieved(signature)) return
      const ids = [...new Set(statement.vulnerabilities.map(statedId))].filter((id) => byId.has(id))
      if (ids.length === 0) return
      const coverage = coverageOf(statement)
      for (const id of ids)
        for (const finding of byId.get(id) ?? []) {
          check()
          const product = coverage(finding.component)
          if (product === null) continue
          const one = saidBy(statement, { digest, signature, product, latest })
          const known = said.get(finding) ?? new Map<string, Said>()
          said.set(finding, known)
          const before = known.get(id)
          if (before === undefined || isLater(one, before)) known.set(id, one)
        }
    },
    reasonFor: (finding: Finding): VexReason | null =>
      reasonIn(said.get(finding) ?? new Map<string, Said>(), finding),
  }
}

function groupById<Finding extends StatedFinding>(
  findings: readonly Finding[],
): Map<string, Finding[]> {
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

/** Returns an id of a vulnerability as it is compared. */
export function statedId(id: string): string {
  return id.toLowerCase()
}

/**
 * Returns why a finding is ruled out; null when it is not. No statement that counts may leave one of its ids open. The id of
 * the record is enough; of a record on several vulnerabilities otherwise each must be ruled out.
 */
function reasonIn(
  said: ReadonlyMap<string, Said>,
  { id, aliases, upstream }: Omit<StatedFinding, 'component'>,
): VexReason | null {
  const [newest] = [...said.values()].sort((one, other) => (one.at < other.at ? 1 : -1))
  if (newest === undefined || [...said.values()].some(({ reason }) => reason === null)) return null
  const cves = [id, ...aliases, ...upstream].map(statedId).filter((one) => one.startsWith('cve-'))
  const several = upstream.length > 1 ? upstream.map(statedId) : []
  const needed = new Set([...cves, ...several])
  const isWhole = needed.size < 2 || said.has(statedId(id)) || [...needed].every((one) => said.has(one)) // prettier-ignore
  return isWhole ? newest.reason : null
}

function isLater(one: Said, before: Said): boolean {
  return one.at === before.at ? before.reason !== null : one.at > before.at
}

interface Source {
  readonly digest: string
  readonly signature: VexDocument['signature'] | undefined
  readonly product: string
  /** A later date of a statement that rules out is not believed: it would count for ever. As `instantOf`. */
  readonly latest: string
}

function saidBy(statement: Statement, { digest, signature, product, latest }: Source): Said {
  const { status, justification, note, vulnerabilities, at } = statement
  if (!rulesOut(status)) return { at, reason: null }
  const [vulnerability = ''] = vulnerabilities
  const reason = {
    ...{ status, justification: short(justification), note: short(note) },
    ...{ vulnerability: short(vulnerability), product: short(product) },
    ...{ statedAt: at === '' ? null : stampOf(at), document: digest },
    signature: signature ? plainResult(signature) : null,
  }
  return { at: at > latest ? '' : at, reason }
}

function short(text: string): string {
  return text.slice(0, LONGEST_TEXT)
}
