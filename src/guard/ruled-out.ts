import { createVexJudge, statedIds, statedId } from '../vex/apply.ts'
import { statedPlaces } from '../vex/coverage.ts'
import { type Statement, rulesOut } from '../vex/statement.ts'
import type { OpenFinding, createOpenFindings } from '../store/findings/open-findings.ts'

/** A VEX document that nothing published links to, with its statements. */
export interface NewVexDocument {
  readonly digest: string
  /** Ids of the tags whose document it is; none: it belongs to no single tag. */
  readonly tags: readonly string[]
  readonly statements: readonly Statement[]
  /** Tags of which it is the first document, and which are themselves new: what it says of them has nothing to be compared with. */
  readonly firstOf: ReadonlySet<string>
}

/** A finding that new documents rule out. */
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

/** What new documents rule out; `tags`: those that were looked at; `isCut`: not all, since there are very many findings. */
interface RuledOut {
  readonly ruledOut: readonly RuledOutFinding[]
  readonly tags: ReadonlySet<string>
  readonly isCut: boolean
}

/** Returns the ids of vulnerabilities that documents rule out anything of. */
function ruledOutIds(documents: readonly NewVexDocument[]): Set<string> {
  const statements = documents.flatMap((one) => one.statements)
  const ruling = statements.filter(({ status }) => rulesOut(status))
  return new Set(ruling.flatMap(({ vulnerabilities }) => vulnerabilities.map(statedId)))
}

/**
 * Returns the open findings of mirrored tags that new documents rule out. Published documents may say otherwise and keep some
 * of them open: it is the number at most. `now`: Unix milliseconds.
 */
export function newlyRuledOut(
  documents: readonly NewVexDocument[],
  findings: ReturnType<typeof createOpenFindings>,
  now: number,
): RuledOut {
  const ids = ruledOutIds(documents)
  const isNamed = (one: Pick<OpenFinding, 'record' | 'aliases' | 'upstream'>): boolean =>
    statedIds({ id: one.record, ...one }).some((id) => ids.has(id))
  const { findings: found, tags, isCut } = findings.listOpenFindings(isNamed)
  const byTag = Map.groupBy(found, ({ tag }) => tag)
  const ruledOut = [...byTag].flatMap(([tag, open]) => {
    const own = documents.filter(({ firstOf }) => !firstOf.has(tag))
    return ruledOutIn(own, open, now)
  })
  return { ruledOut, tags, isCut }
}

/** A finding as VEX is asked about it. */
interface Asked {
  readonly id: string
  readonly aliases: readonly string[]
  readonly upstream: readonly string[]
  readonly component: { readonly purl: string; readonly version: string }
  readonly of: OpenFinding
}

/** A finding is ruled out in each SBOM that lists its package. */
function ruledOutIn(
  documents: readonly NewVexDocument[],
  open: readonly OpenFinding[],
  now: number,
): RuledOutFinding[] {
  const [first] = open
  if (first === undefined || documents.length === 0) return []
  const reasons = new Map<OpenFinding, Pick<RuledOutFinding, 'digest' | 'because'>>()
  const left = new Set<OpenFinding>()
  for (const [at, subjects] of first.subjects.entries()) {
    const asked = open.flatMap((one) => askedOf(one, at))
    const images = first.images[at] ?? []
    const image = { subjects, images, serial: null, tag: first.tag }
    const judge = createVexJudge(asked, { image, now, check: () => undefined })
    for (const { digest, tags, statements } of documents)
      for (const statement of statements) judge.add(statement, { digest, tags })
    for (const one of asked) {
      const reason = judge.reasonFor(one)
      if (reason === null) left.add(one.of)
      else {
        const { status, document: digest } = reason
        reasons.set(one.of, { digest, because: `${status} by VEX document ${digest.slice(0, 12)}` })
      }
    }
  }
  return [...reasons].flatMap(([one, reason]): RuledOutFinding[] => {
    const name = `${one.tagName} ${one.record} ${one.package} ${one.version}`
    return left.has(one) ? [] : [{ tag: one.tag, name, ...reason }]
  })
}

function askedOf(of: OpenFinding, at: number): Asked[] {
  const { record: id, aliases, upstream, version } = of
  const listed = of.packages.filter(({ sbom }) => sbom === null || sbom === at)
  return listed.map(({ purl }) => ({ id, aliases, upstream, component: { purl, version }, of }))
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
