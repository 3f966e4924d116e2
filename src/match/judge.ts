import { MirrorError, messageOf } from '../core/errors.ts'
import { type Fields, fieldsOf, jsonTextOf } from '../json/objects.ts'
import { askVersion } from '../query/affected.ts'
import { remedyFor } from '../query/fixes.ts'
import { semverOrder } from '../query/orders/semver.ts'
import { type Query, readPurl, readQuestion } from '../query/query.ts'
import { type QuerySource, type SearchResult, search } from '../query/search.ts'
import type { MatchFinding, MatchedComponent, NotJudged } from './result.ts'
import { LEVELS, type Severity, severityOf } from './severity.ts'
import type { SbomComponent } from './sbom.ts'

/** Findings in one answer, far above real SBOMs. */
const MAX_FINDINGS = 100_000

/** Where an SBOM is judged: one snapshot's index and records. */
export interface JudgeSource extends QuerySource {
  /** Whether the snapshot has any record of the ecosystem. */
  readonly hasEcosystem: (name: string) => boolean
}

/** What was found about the components of an SBOM. */
interface Judged {
  /** Different packages. */
  readonly packages: number
  /** The worst first. */
  readonly findings: MatchFinding[]
  readonly notJudged: NotJudged[]
}

/**
 * Judges components by the evaluation of the query API, each package and version once. `check` is called between two of
 * them, and throws to stop. Throws `bad_request` for more findings than an answer may have.
 */
export async function judgeComponents(
  components: readonly SbomComponent[],
  source: JudgeSource,
  check: () => void,
): Promise<Judged> {
  const packages = groupComponents(components)
  const find = createFinder(source, check)
  const judged: Judged = { packages: packages.length, findings: [], notJudged: [] }
  for (const listed of packages) {
    check()
    const asked = askAbout(listed)
    const component = 'code' in asked ? listed : { ...listed, version: asked.version }
    const why = 'code' in asked ? asked : whyPartly(asked, source)
    if (why !== null) judged.notJudged.push({ ...component, ...why })
    if ('code' in asked || why?.code === 'no_records') continue
    for (const found of await find(asked)) judged.findings.push({ ...found, component })
    if (judged.findings.length > MAX_FINDINGS)
      throw new MirrorError(
        'bad_request',
        `the SBOM has more than ${MAX_FINDINGS} findings: split it`,
      )
  }
  judged.findings.sort(compareFindings)
  return judged
}

/** Returns the different packages of an SBOM: by purl and version, those without a purl by name and version. */
function groupComponents(components: readonly SbomComponent[]): MatchedComponent[] {
  const known = new Map<string, MatchedComponent & { readonly refs: string[] }>()
  for (const { ref, name, version, purl } of components) {
    const key = JSON.stringify(purl === null ? [name, version] : [purl, version, ''])
    const same = known.get(key)
    if (same === undefined) known.set(key, { name, version, purl, refs: ref === '' ? [] : [ref] })
    else if (ref !== '' && !same.refs.includes(ref)) same.refs.push(ref)
  }
  return [...known.values()]
}

type Why = Pick<NotJudged, 'code' | 'reason'>
type KnownQuery = Query & { readonly ecosystem: NonNullable<Query['ecosystem']> }

/** Returns the query for a component, or why there is none. */
function askAbout({ purl, version }: MatchedComponent): KnownQuery | Why {
  if (purl === null) return { code: 'no_purl', reason: 'it has no package URL (purl)' }
  try {
    const named = readPurl(purl)
    const own = named?.version === '' ? { version } : {}
    const query = readQuestion({ package: { purl }, ...own })
    const { ecosystem } = query
    if (ecosystem === null) return { code: 'unknown_ecosystem', reason: unknownEcosystem(purl) }
    if (query.version !== '') return { ...query, ecosystem }
    return { code: 'no_version', reason: 'neither its package URL nor the SBOM names its version' }
  } catch (error) {
    if (!(error instanceof MirrorError)) throw error
    return { code: 'bad_purl', reason: messageOf(error) }
  }
}

function unknownEcosystem(purl: string): string {
  const [, type = '', namespace] = /^pkg:\/*([^/]+)\/(?:([^/@?#]+)\/)?/.exec(purl) ?? []
  const named = namespace === undefined ? `pkg:${type}` : `pkg:${type}/${namespace}`
  return `no ecosystem of vulnerability records is known for ${named.slice(0, 100)}`
}

/** Returns why records can say nothing, or not everything, about a version; null when they can. */
function whyPartly({ ecosystem, version }: KnownQuery, source: JudgeSource): Why | null {
  const { name, order } = ecosystem
  if (!source.hasEcosystem(name))
    return { code: 'no_records', reason: `this mirror has no records of the ecosystem ${name}` }
  if ((order ?? semverOrder).read(version) !== null) return null
  const rest = 'only records that list exactly this version were found'
  return { code: 'version_not_ordered', reason: `${version.slice(0, 100)} is not a version as ${name} orders them: ${rest}` } // prettier-ignore
}

type PackageFinding = Omit<MatchFinding, 'component'>

/** Creates the function that finds the vulnerabilities of a package's version; those of the same are found once. */
function createFinder(source: JudgeSource, check: () => void) {
  const known = new Map<string, readonly PackageFinding[]>()
  const describe = createDescriptions()
  const bounds = { records: Infinity, bytes: Infinity, isLate: () => false }
  const pause = (): Promise<void> => {
    check()
    return Promise.resolve()
  }
  return async (query: KnownQuery): Promise<readonly PackageFinding[]> => {
    const key = JSON.stringify([query.ecosystem.name, query.name, query.version])
    const before = known.get(key)
    if (before !== undefined) return before
    const { found } = await search(source, query, { ...bounds, pause })
    const asked = { ...query, version: askVersion(query.version) }
    const findings = found.map((one): PackageFinding => {
      const { record, ...about } = describe(query.ecosystem.name, one)
      return { ...about, ...remedyFor(record, asked, one.prefixes[0]) }
    })
    known.set(key, findings)
    return findings
  }
}

interface Description {
  readonly record: Fields
  readonly id: string
  readonly aliases: readonly string[]
  readonly summary: string
  readonly modified: string | null
  readonly severity: Severity
}

/** Records that are kept parsed: those of one package's versions, or of packages that are vulnerable together. */
const KEPT = 256

/** Creates the function that parses found records, and keeps the last ones. */
function createDescriptions() {
  const kept = new Map<string, Description>()
  return (ecosystem: string, { id, modified, content }: SearchResult): Description => {
    const key = `${ecosystem}\n${id}`
    const before = kept.get(key)
    if (before !== undefined) return before
    const record = fieldsOf(JSON.parse(jsonTextOf(content)))
    const { aliases, summary } = record
    const listed: unknown[] = Array.isArray(aliases) ? aliases : []
    const made = {
      ...{ record, id, modified, severity: severityOf(record) },
      aliases: listed.filter((alias) => typeof alias === 'string'),
      summary: typeof summary === 'string' ? summary : '',
    }
    const [oldest] = kept.keys()
    if (kept.size >= KEPT && oldest !== undefined) kept.delete(oldest)
    kept.set(key, made)
    return made
  }
}

function compareFindings(one: MatchFinding, other: MatchFinding): number {
  const levels = rankOf(one) - rankOf(other)
  if (levels !== 0) return levels
  const scores = (other.severity.score ?? -1) - (one.severity.score ?? -1)
  return scores || compareText(one.component.name, other.component.name) || compareText(one.id, other.id) // prettier-ignore
}

function rankOf({ severity: { level } }: MatchFinding): number {
  return level === null ? LEVELS.length : LEVELS.indexOf(level)
}

function compareText(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0
}
