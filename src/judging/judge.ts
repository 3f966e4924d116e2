import { MirrorError, messageOf } from '../core/errors.ts'
import type { Fields } from '../json/objects.ts'
import { askVersion } from '../query/affected.ts'
import { remedyFor } from '../query/fixes.ts'
import { semverOrder } from '../query/orders/semver.ts'
import { type Query, readQuestion } from '../query/query.ts'
import { type QuerySource, type SearchResult, parseRecord, search } from '../query/search.ts'
import { type JudgeSource, createAheadSource, createPackageSource } from './package-source.ts'
import type { MatchFinding, MatchedComponent, NotJudged } from './finding.ts'
import { LEVELS, severityOf } from './severity.ts'
import type { SbomComponent } from '../sboms/sbom.ts'

/** Findings in one answer, far above real SBOMs. */
const MAX_FINDINGS = 100_000

/** References of a component that are listed; all are counted. */
const MAX_REFS = 100

/** What was found about the components of an SBOM. */
interface Judged {
  /** Different packages. */
  readonly packages: number
  /** The worst first. */
  readonly findings: readonly MatchFinding[]
  readonly notJudged: readonly NotJudged[]
}

/**
 * Judges components by the evaluation of the query API, each package and version once. `check` is called between two of
 * them, and throws to stop; `add` with each part of the answer. Throws `bad_request` for more findings than an answer may have.
 */
export async function judgeComponents(
  components: readonly SbomComponent[],
  source: JudgeSource,
  check: () => void,
  add: (part: object) => void = () => undefined,
): Promise<Judged> {
  const packages = groupComponents(components, check)
  const { judged, notJudged } = chooseJudged(packages, source, check)
  const ahead = createAheadSource(source)
  const find = createFinder(ahead, check)
  for (const one of notJudged) add(one)
  const findings: MatchFinding[] = []
  for (const { query, component } of eachRecorded(judged, ahead, check)) {
    check()
    for (const found of await find(query)) {
      const finding = { ...found, component, patches: [], patchCount: 0 }
      add(finding)
      findings.push(finding)
    }
    if (findings.length > MAX_FINDINGS)
      throw new MirrorError(
        'bad_request',
        `the SBOM has more than ${MAX_FINDINGS} findings: split it`,
      )
  }
  findings.sort(compareFindings)
  return { packages: packages.length, findings, notJudged }
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

/** Returns what can be judged, the versions of a package one after the other, and what cannot, or not completely. */
function chooseJudged(
  packages: readonly MatchedComponent[],
  source: JudgeSource,
  check: () => void,
) {
  const notJudged: NotJudged[] = []
  const judged = packages.flatMap((listed) => {
    check()
    const query = askAbout(listed)
    const isKnown = !('code' in query)
    const component = isKnown ? { ...listed, version: query.version } : listed
    const why = isKnown ? whyPartly(query, source) : query
    if (why !== null) notJudged.push({ ...component, ...why })
    return isKnown && why?.code !== 'no_records' ? [{ query, component }] : []
  })
  judged.sort(
    ({ query: one }, { query: other }) =>
      compareText(one.ecosystem.name, other.ecosystem.name) || compareText(one.name, other.name),
  )
  return { judged, notJudged }
}

interface JudgedPackage {
  readonly query: KnownQuery
  readonly component: MatchedComponent
}

/** Iterates over the packages that any record names, read ahead: most packages of an SBOM have none. */
function* eachRecorded(
  judged: readonly JudgedPackage[],
  source: ReturnType<typeof createAheadSource>,
  check: () => void,
): Generator<JudgedPackage, void, undefined> {
  for (const [ecosystem, ones] of Map.groupBy(judged, ({ query }) => query.ecosystem.name)) {
    const versions = Map.groupBy(ones, ({ query }) => query.name)
    const names = [...versions.keys()]
    for (let at = 0; at < names.length;) {
      check()
      const { packages, recorded } = source.readAhead(ecosystem, names, at)
      for (const name of names.slice(at, at + packages))
        if (recorded(name)) yield* versions.get(name) ?? []
      at += packages
    }
  }
}

/** Returns the different packages of an SBOM: by purl and version, those without a purl by name and version. */
function groupComponents(
  components: readonly SbomComponent[],
  check: () => void,
): MatchedComponent[] {
  const known = new Map<string, { readonly of: SbomComponent; readonly refs: Set<string> }>()
  for (const one of components) {
    check()
    const { ref, name, version, purl } = one
    const key = JSON.stringify(purl === null ? [name, version] : [purl, version, ''])
    const same = known.get(key) ?? { of: one, refs: new Set() }
    known.set(key, same)
    if (ref !== '') same.refs.add(ref)
  }
  return [...known.values()].map(({ of: { name, version, purl }, refs }) => {
    const listed = [...refs].slice(0, MAX_REFS)
    return { name, version, purl, refs: listed, refCount: refs.size }
  })
}

type Why = Pick<NotJudged, 'code' | 'reason'>

/** A query for a version of a package of a known ecosystem. */
type KnownQuery = Query & { readonly ecosystem: NonNullable<Query['ecosystem']> }

/** Returns the query for a component, or why there is none. */
export function askAbout({
  purl,
  version,
}: Pick<MatchedComponent, 'purl' | 'version'>): KnownQuery | Why {
  if (purl === null) return { code: 'no_purl', reason: 'it has no package URL (purl)' }
  try {
    const named = readQuestion({ package: { purl } })
    const { ecosystem } = named
    if (ecosystem === null) return { code: 'unknown_ecosystem', reason: unknownEcosystem(purl) }
    const query = named.version === '' ? readQuestion({ package: { purl }, version }) : named
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

type PackageFinding = Omit<MatchFinding, 'component' | 'patches' | 'patchCount'>

/** Creates the function that finds the vulnerabilities of a package's version; those of the same are found once. */
export function createFinder(source: QuerySource, check: () => void) {
  const ofPackage = createPackageSource(source)
  const bounds = { records: Infinity, bytes: Infinity, isLate: () => false }
  const pause = (): Promise<void> => {
    check()
    return Promise.resolve()
  }
  return async (query: KnownQuery): Promise<readonly PackageFinding[]> => {
    const { found } = await search(ofPackage, query, { ...bounds, pause })
    const asked = { ...query, version: askVersion(query.version) }
    return found.map((one): PackageFinding => {
      const record = one.parsed ?? parseRecord(one.content)
      return { ...describe(one, { ...record }), ...remedyFor(record, asked, one.prefixes[0]) }
    })
  }
}

function describe({ id, modified }: SearchResult, record: Fields) {
  const { aliases, upstream, summary } = record
  return {
    ...{ id, modified, severity: severityOf(record) },
    ...{ aliases: textsOf(aliases), upstream: textsOf(upstream) },
    summary: typeof summary === 'string' ? summary : '',
  }
}

function textsOf(value: unknown): string[] {
  const listed: unknown[] = Array.isArray(value) ? value : []
  return listed.filter((one) => typeof one === 'string')
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
