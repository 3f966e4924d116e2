import { stampOf } from '../../core/time.ts'
import type { VexDocument, VexReader } from '../../store/views/vex.ts'
import type { MatchFinding, MatchedComponent, SuppressedFinding, VexReason } from '../result.ts'
import { type ProductName, isCovered, readProductName } from './products.ts'
import { type VexProduct, type Statement, readStatements, rulesOut } from './statements.ts'

/** Largest document that is read, bytes: far above any real VEX document. */
const MAX_BYTES = 64 * 2 ** 20
/** Longest text of a statement that is repeated in an answer, characters. */
const LONGEST_TEXT = 1_000

/** What findings are compared with. */
interface VexInput {
  readonly reads: Pick<VexReader, 'listVexDocuments' | 'readVexContent'>
  /** Package URLs of what the SBOM describes, such as an image. */
  readonly subjects: readonly string[]
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
}

/**
 * Takes out the findings that the mirrored VEX documents rule out: of all statements about the vulnerability and the product
 * the newest counts, and of equally old ones one that does not rule it out.
 */
export function applyVex(
  findings: readonly MatchFinding[],
  { reads, subjects, check }: VexInput,
): Applied {
  const documents = reads.listVexDocuments()
  const judge = createVexJudge(findings, subjects)
  const read = findings.length === 0 ? [] : documents
  let unread = 0
  for (const document of read) {
    check()
    const statements = statementsIn(reads, document)
    if (statements === null) unread++
    for (const statement of statements ?? []) judge.add(statement, document, check)
  }
  const suppressed = findings.flatMap((finding) => {
    const vex = judge.reasonFor(finding)
    return vex === null ? [] : [{ ...finding, vex }]
  })
  const left = findings.filter((finding) => judge.reasonFor(finding) === null)
  return { findings: left, suppressed, documents: documents.length, unread }
}

function statementsIn(reads: VexInput['reads'], document: VexDocument): Statement[] | null {
  const content = document.size > MAX_BYTES ? null : reads.readVexContent(document)
  return content === null ? null : readStatements(content)
}

/** A statement about a finding, and where it is from. */
interface Found {
  readonly statement: Statement
  readonly document: string
  readonly product: string
}

/** Creates what remembers, for each finding, the statement that counts. */
function createVexJudge(findings: readonly MatchFinding[], subjects: readonly string[]) {
  const byId = groupById(findings)
  const found = new Map<MatchFinding, Found>()
  const nameOf = createNames()
  // With several subjects it is not known which of them a component belongs to.
  const subject = subjects.length === 1 ? nameOf(subjects[0] ?? '') : null
  const owns = createOwnNames(nameOf)
  return {
    add(statement: Statement, { digest }: VexDocument, check: () => void): void {
      const about = new Set(statement.vulnerabilities.flatMap((id) => byId.get(plain(id)) ?? []))
      for (const finding of about) {
        check()
        const own = owns(finding.component)
        const product = own && productOf(statement.products, own, subject, nameOf)
        if (product === null) continue
        const one = { statement, document: digest, product }
        const before = found.get(finding)
        if (before === undefined || isLater(one, before)) found.set(finding, one)
      }
    },
    reasonFor(finding: MatchFinding): VexReason | null {
      const one = found.get(finding)
      return one === undefined ? null : reasonOf(one)
    },
  }
}

function groupById(findings: readonly MatchFinding[]): Map<string, MatchFinding[]> {
  const byId = new Map<string, MatchFinding[]>()
  for (const finding of findings)
    for (const id of idsOf(finding)) {
      const same = byId.get(id)
      if (same === undefined) byId.set(id, [finding])
      else same.push(finding)
    }
  return byId
}

/**
 * Ids by which statements may name a vulnerability. What a record is derived from is the same vulnerability only where it is
 * one: an advisory on several is not ruled out by a statement about one of them.
 */
function idsOf({ id, aliases, upstream }: MatchFinding): Set<string> {
  return new Set([id, ...aliases, ...(upstream.length === 1 ? upstream : [])].map(plain))
}

function plain(id: string): string {
  return id.toLowerCase()
}

function createNames(): (purl: string) => ProductName | null {
  const known = new Map<string, ProductName | null>()
  return (purl) => {
    const before = known.get(purl)
    if (before !== undefined) return before
    const name = readProductName(purl)
    known.set(purl, name)
    return name
  }
}

/** Names components: the version of the SBOM counts where the package URL has none. */
function createOwnNames(nameOf: (purl: string) => ProductName | null) {
  return ({ purl, version }: MatchedComponent): ProductName | null => {
    const name = purl === null ? null : nameOf(purl)
    return name === null || name.version !== '' ? name : { ...name, version }
  }
}

/**
 * Returns the product of a statement that a component is, or clearly belongs to: the component itself, or what the SBOM
 * describes, with this component among the parts that the statement names. Null: none.
 */
function productOf(
  products: readonly VexProduct[],
  own: ProductName,
  subject: ProductName | null,
  nameOf: (purl: string) => ProductName | null,
): string | null {
  const isNamed = (
    name: ProductName,
    purl: string,
    versions: readonly string[] | null,
  ): boolean => {
    const named = nameOf(purl)
    return named !== null && isCovered(name, named) && (versions?.includes(name.version) ?? true)
  }
  for (const { purls, versions, parts } of products) {
    const wholes = parts === null ? [own, subject] : [subject]
    const isPart = parts === null || parts.some((purl) => isNamed(own, purl, null))
    const purl = purls.find((one) =>
      wholes.some((whole) => whole !== null && isNamed(whole, one, versions)),
    )
    if (isPart && purl !== undefined) return purl
  }
  return null
}

function isLater({ statement }: Found, { statement: before }: Found): boolean {
  if (statement.at !== before.at) return statement.at > before.at
  return rulesOut(before.status)
}

function reasonOf({ statement, document, product }: Found): VexReason | null {
  const { status, justification, note, vulnerabilities, at } = statement
  if (!rulesOut(status)) return null
  const [vulnerability = ''] = vulnerabilities
  const texts = { justification, note, vulnerability, product }
  const short = Object.entries(texts).map(([name, text]) => [name, text.slice(0, LONGEST_TEXT)])
  return {
    status,
    ...(Object.fromEntries(short) as typeof texts),
    statedAt: at === '' ? null : stampOf(at),
    document,
  }
}
