import { MirrorError } from '../../../base/errors.ts'
import { compareText } from '../../../base/versions/order.ts'
import type { Question, Surroundings } from '../../../base/identity/identity.ts'
import type { SbomComponent } from '../../../documents/sboms/sbom.ts'
import { type Comparison, NO_RECORDS, addComparison, whyPartly, whyUncompared } from './compared.ts'
import { type IdentifiedPackage, type Why, identifyAll } from './components.ts'
import { type PackageFinding, createFinder, joinFindings } from './finder.ts'
import { type MatchFinding, type MatchedComponent, type NotJudged, isPartlyJudged } from './finding.ts'
import { type JudgeSource, createAheadSource } from './package-source.ts'
import { LEVELS } from '../../../documents/records/severity.ts'

/** Findings in one answer, far above real SBOMs. */
const MAX_FINDINGS = 100_000

/** What was found about the components of an SBOM. */
interface Judged {
  /** Different packages. */
  readonly packages: number
  /** Those that were judged by the records of all releases, and those that were judged by their own name only. */
  readonly allReleases: number
  readonly binaryNameOnly: number
  /** Those that were judged by the records of a distribution that theirs rebuilds. */
  readonly rebuilt: number
  /** Releases that package URLs name, and that are not known here. */
  readonly unreadReleases: readonly string[]
  /** The ecosystems of packages, also of those that this mirror has no records of. */
  readonly ecosystems: readonly string[]
  /** Package URLs of those that no record is about, in whatever version. */
  readonly withoutRecords: readonly string[]
  /** Packages that were compared with every record about them, of which there is one. */
  readonly compared: number
  /** The worst first. */
  readonly findings: readonly MatchFinding[]
  readonly notJudged: readonly NotJudged[]
}

/** How components are judged. */
interface JudgeOptions {
  /** Called between two packages; throws to stop. */
  readonly check: () => void
  /** What is known beside the components. */
  readonly around?: Surroundings
  /** Called with each part of the answer; throws to stop. */
  readonly add?: (part: object) => void
}

/**
 * Judges components by the evaluation of the query API, each package and version once: by its own name, and by that of its
 * source package. Throws `bad_request` for more findings than an answer may have.
 */
export async function judgeComponents(
  components: readonly SbomComponent[],
  source: JudgeSource,
  { check, around = { distribution: null }, add = () => undefined }: JudgeOptions,
): Promise<Judged> {
  const packages = identifyAll(components, around, check)
  const judging = packages.map((one) => beginJudging(one, source, check))
  const ahead = createAheadSource(source)
  const find = createFinder(ahead, check)
  let count = 0
  for (const { question, of } of eachRecorded(questionsOf(judging), ahead, check)) {
    check()
    const { findings, ...comparison } = await find(question)
    of.comparison = addComparison(of.comparison, comparison)
    const before = of.found.size
    joinFindings(of.found, findings)
    count += of.found.size - before
    if (count > MAX_FINDINGS)
      throw new MirrorError('bad_request', `the SBOM has more than ${MAX_FINDINGS} findings: split it`)
  }
  return { ...sumOf(judging), ...answerOf(judging, add) }
}

/** Creates the function that counts the bytes of an answer as JSON; it throws `bad_request` for what is one too many. */
export function createByteLimit(maxBytes: number): (part: object) => void {
  let bytes = 0
  return (part) => {
    if (maxBytes !== Infinity) bytes += Buffer.byteLength(JSON.stringify(part)) + 1
    if (bytes > maxBytes)
      throw new MirrorError(
        'bad_request',
        `the answer would be larger than ${maxBytes / 2 ** 20} MiB: split the SBOM, or use "patchmirror match"`,
      )
  }
}

/** A package that is being judged. */
interface Judging extends Omit<IdentifiedPackage, 'why'> {
  readonly component: MatchedComponent
  /** Why it is not judged, or not completely, before its records are looked at. */
  readonly why: Why | null
  readonly found: Map<string, PackageFinding>
  comparison: Comparison
}

function beginJudging(
  { component, identity, why }: IdentifiedPackage,
  source: JudgeSource,
  check: () => void,
): Judging {
  check()
  const known = identity === null ? why : whyPartly(identity, source)
  return { component, identity, why: known, found: new Map(), comparison: NO_RECORDS }
}

/** A question about a package. */
interface Asked {
  readonly question: Question
  readonly of: Judging
}

/** Returns the questions about packages that can be judged, those about one name one after the other. */
function questionsOf(judging: readonly Judging[]): Asked[] {
  const judged = judging.filter(({ why }) => why === null || isPartlyJudged(why))
  const asked = judged.flatMap((of) => (of.identity?.questions ?? []).map((question): Asked => ({ question, of })))
  return asked.sort(
    ({ question: one }, { question: other }) =>
      compareText(one.ecosystem.name, other.ecosystem.name) || compareText(one.name, other.name),
  )
}

/** Iterates over the questions about packages that any record names, read ahead: most packages of an SBOM have none. */
function* eachRecorded(
  asked: readonly Asked[],
  source: ReturnType<typeof createAheadSource>,
  check: () => void,
): Generator<Asked, void, undefined> {
  for (const [ecosystem, ones] of Map.groupBy(asked, ({ question }) => question.ecosystem.name)) {
    const versions = Map.groupBy(ones, ({ question }) => question.name)
    const names = [...versions.keys()]
    for (let at = 0; at < names.length;) {
      check()
      const { packages, recorded } = source.readAhead(ecosystem, names, at)
      for (const name of names.slice(at, at + packages)) if (recorded(name)) yield* versions.get(name) ?? []
      at += packages
    }
  }
}

/** Returns how many packages were judged with less than everything known about them. */
function sumOf(judging: readonly Judging[]) {
  const judged = judging.filter(({ why }) => why === null || isPartlyJudged(why))
  const unread = judged.flatMap(({ identity }) => identity?.unreadRelease ?? [])
  return {
    packages: judging.length,
    allReleases: judged.filter(({ component }) => component.allReleases).length,
    binaryNameOnly: judged.filter(({ component }) => component.binaryNameOnly).length,
    rebuilt: judged.filter(({ component }) => component.recordsOf !== null).length,
    unreadReleases: [...new Set(unread)],
    ecosystems: [...new Set(judging.flatMap(({ identity }) => identity?.ecosystem.name ?? []))],
  }
}

/** Whether records were looked up for a package, and none is about it. */
function isUnrecorded({ why, comparison }: Judging): boolean {
  const isAsked = why === null || isPartlyJudged(why)
  return isAsked && comparison.compared + comparison.uncompared.size === 0
}

function answerOf(judging: readonly Judging[], add: (part: object) => void) {
  const findings: MatchFinding[] = []
  const notJudged: NotJudged[] = []
  let wholly = 0
  const withoutRecords = judging.filter(isUnrecorded).flatMap(({ component: { purl } }) => purl ?? [])
  add(withoutRecords)
  for (const { component, identity, why, found, comparison } of judging) {
    const uncompared = identity === null ? null : whyUncompared(identity, comparison)
    const reason = why ?? uncompared
    if (reason === null && comparison.compared > 0) wholly++
    if (reason !== null) {
      const one = { ...component, ...reason }
      add(one)
      notJudged.push(one)
    }
    for (const one of found.values()) {
      const finding = { ...one, component, patches: [], patchCount: 0 }
      add(finding)
      findings.push(finding)
    }
  }
  findings.sort(compareFindings)
  return { findings, notJudged, withoutRecords, compared: wholly }
}

function compareFindings(one: MatchFinding, other: MatchFinding): number {
  const levels = rankOf(one) - rankOf(other)
  if (levels !== 0) return levels
  const scores = (other.severity.score ?? -1) - (one.severity.score ?? -1)
  if (scores !== 0) return scores
  return compareText(one.component.name, other.component.name) || compareText(one.id, other.id)
}

function rankOf({ severity: { level } }: MatchFinding): number {
  return level === null ? LEVELS.length : LEVELS.indexOf(level)
}
