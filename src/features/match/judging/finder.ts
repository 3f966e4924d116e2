import type { Question } from '../../../base/identity/identity.ts'
import type { Fields } from '../../../base/json/objects.ts'
import { isNamed } from '../../scanners/records/affected.ts'
import { askVersion } from '../../scanners/records/ranges.ts'
import { remedyFor } from '../../scanners/records/fixes.ts'
import { withoutEpoch } from '../../../base/versions/rpm.ts'
import { type QuerySource, type SearchResult, parseRecord, search } from '../../scanners/records/search.ts'
import type { Comparison } from './compared.ts'
import type { MatchFinding } from './finding.ts'
import { createPackageSource } from './package-source.ts'

/** A finding of a package, which is not yet one of a component. */
export type PackageFinding = Omit<MatchFinding, 'component' | 'patches' | 'patchCount'>

/** What the records say to one question. */
interface Answer extends Comparison {
  readonly findings: readonly PackageFinding[]
}

/** Creates the function that asks the records one question; ask about the versions of a package in a row. */
export function createFinder(source: QuerySource, check: () => void) {
  const ofPackage = createPackageSource(source)
  const bounds = { records: Infinity, bytes: Infinity, isLate: () => false }
  const pause = (): Promise<void> => {
    check()
    return Promise.resolve()
  }
  const find = async (question: Question): Promise<Answer> => {
    const { ecosystem, name, version, stream, by, unless } = question
    const query = { ecosystem, name, version, stream, pageToken: '' }
    const { found, compared, uncompared } = await search(ofPackage, query, { ...bounds, pause })
    const asked = { ecosystem, name, version: askVersion(version), stream }
    const findings = found.flatMap((one): PackageFinding[] => {
      const record = one.parsed ?? parseRecord(one.content)
      const vendor = one.prefixes[0]
      if (unless !== null && isNamed(record, { ...asked, name: unless }, vendor)) return []
      const about = describe(one, { ...record })
      const source = by === 'source' ? name : null
      return [{ ...about, source, ...remedyFor(record, asked, vendor) }]
    })
    return { findings, compared, uncompared }
  }
  return async (question: Question): Promise<Answer> => {
    const answer = await find(question)
    const version = withoutEpoch(question.version)
    return version === null ? answer : doubted(answer, await find({ ...question, version }))
  }
}

/**
 * Returns what is known of a version without its epoch. It has most likely that of the records it is compared with; the lowest
 * one is the most affected. What only that is affected by cannot be compared.
 */
function doubted(likely: Answer, lowest: Answer): Answer {
  const known = new Set(likely.findings.map(({ id }) => id))
  const open = lowest.findings.filter(({ id }) => !known.has(id)).map(({ id }) => [id, 'epoch'] as const)
  return {
    findings: likely.findings,
    compared: likely.compared - open.length,
    uncompared: new Map([...likely.uncompared, ...open]),
  }
}

function describe({ id, modified }: SearchResult, record: Fields) {
  const { aliases, upstream, summary } = record
  return {
    id,
    modified,
    aliases: textsOf(aliases),
    upstream: textsOf(upstream),
    summary: typeof summary === 'string' ? summary : '',
  }
}

function textsOf(value: unknown): string[] {
  const listed: unknown[] = Array.isArray(value) ? value : []
  return listed.filter((one) => typeof one === 'string')
}

/**
 * Joins findings of several questions about one component: a record counts once, and as one of its own name where it was found by
 * that.
 */
export function joinFindings<Finding extends Pick<MatchFinding, 'id' | 'source'>>(
  known: Map<string, Finding>,
  found: readonly Finding[],
): void {
  for (const one of found) {
    const before = known.get(one.id)
    if (before === undefined || (before.source !== null && one.source === null)) known.set(one.id, one)
  }
}
