import type { Config } from '../../../config/schema.ts'
import { MirrorError } from '../../../base/errors.ts'
import { counted, nounOf } from '../../../base/text.ts'
import { createMatcher } from '../matcher.ts'
import { whyNoRelease } from '../judging/components.ts'
import { isFixable } from '../judging/patches.ts'
import {
  type MatchFinding,
  type MatchPatches,
  type NotJudged,
  type SuppressedFinding,
  isUnjudged,
} from '../judging/finding.ts'
import type { MatchGap, MatchResult, MatchSnapshot, MatchVex } from '../result.ts'
import { sarifReport } from '../sarif.ts'
import { vulnerabilityReport } from '../vdr.ts'
import { buildPackageIndex } from '../../lookup/package-index.ts'
import { cut, table, timeOf, visible, visibleLines } from '../../../cli/output.ts'
import { print, printJson, settings, warn } from '../../../cli/context.ts'
import { closing } from '../../../base/closing.ts'
import { ageSecondsOf } from '../../../base/domain/sources.ts'
import { LEVELS, disagrees } from '../../../documents/records/severity.ts'
import { NONE_COMPARED } from '../../../store/findings/words.ts'
import { isPresent } from '../../../base/files.ts'
import type { InputSbom } from '../../../documents/sboms/sbom.ts'
import { sbomsOfTag } from '../../lookup/tag-sbom.ts'
import { readSbomFile } from './sbom-file.ts'
import { type LookupOptions, UNKNOWN, openLookup, refuseLookup } from '../../lookup/open.ts'
import { ageWords, createFreshness, marksOf } from '../../lookup/freshness.ts'
import { describeMissingVex, describePartialPatches } from '../gaps.ts'
import { notesOf } from '../notes.ts'

/** Options of `patchmirror match`. */
interface MatchOptions extends LookupOptions {
  format?: string
  failOn?: string
  /** False: VEX is not applied. */
  vex?: boolean
  /** The distribution and release of components that name none. */
  distro?: string
}

/** Exit code where findings are of the kind that `--fail-on` names. */
const FOUND = 1

/**
 * `patchmirror match SBOM`: the vulnerabilities of an SBOM's components, from the data folder alone. Exit code 1 where
 * `--fail-on` applies, for `unjudged` where a package was not judged completely; 3 where the mirror cannot know, with `--fail-on` also where
 * it is not known that nothing of its kind is there; 2 for what is no SBOM.
 */
export async function matchCommand(file: string, options: MatchOptions): Promise<number> {
  const failsOn = failureOf(options.failOn)
  const write = writerOf(options)
  const distro = distroOf(options)
  const { config } = settings(options, false, [])
  try {
    const sbom = await readSbom(file, config)
    const reads = openLookup(config)
    const result = await closing(reads, async () => {
      const missing = await buildPackageIndex(config)
      if (missing !== null) throw new MirrorError('not_ready', missing)
      const matcher = createMatcher(config, reads)
      const request = {
        now: Date.now(),
        served: null,
        check: () => undefined,
        catalog: true,
        vex: options.vex !== false,
        distro,
      }
      return closing(matcher, () => matcher.match(sbom, request))
    })
    write(result, file, config)
    return exitCodeOf(result, options.failOn, failsOn)
  } catch (error) {
    return refuseLookup(error, options.json === true || options.format === 'json', null)
  }
}

/** Reads the SBOM that an argument names: a file, or the mirrored SBOM of a tag. */
async function readSbom(name: string, config: Config): Promise<InputSbom> {
  if (!isTagName(name) || isPresent(name)) return readSbomFile(name)
  const reads = openLookup(config)
  return closing(reads, () =>
    reads.during(() => {
      const stored = { ...createFreshness(config, reads.reads, Date.now()), reads: reads.reads }
      const [sbom, ...others] = sbomsOfTag(stored, name)
      if (sbom !== undefined && others.length === 0) return sbom
      throw new MirrorError(
        'usage',
        `${name} has ${others.length + 1} SBOMs, and one is judged at a time: save them from its page or its /sbom path, and give each file`,
      )
    }),
  )
}

/** Whether an argument may name a tag: `library/python:3.12`, a digest, or the id that other commands name; files end otherwise. */
function isTagName(name: string): boolean {
  if (/^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i.test(name)) return true
  return /^[^\s:]+:[^\s:/]+$/.test(name) && !/\.(json|xml|spdx|cdx|txt)$/i.test(name)
}

/** Fails for packages that are not judged, or not completely, whatever is found. */
const UNJUDGED = 'unjudged'

type FailsOn = (finding: MatchFinding) => boolean

const FAILURES: Readonly<Record<string, FailsOn>> = {
  any: () => true,
  fixable: isFixable,
  high: ({ severity: { level } }) => level === 'critical' || level === 'high',
  critical: ({ severity: { level } }) => level === 'critical',
  [UNJUDGED]: () => false,
}

/** The values of `--fail-on`. */
const FAIL_ON = Object.keys(FAILURES)

function failureOf(name: string | undefined): FailsOn {
  if (name === undefined) return () => false
  const failsOn = Object.hasOwn(FAILURES, name) ? FAILURES[name] : undefined
  if (failsOn !== undefined) return failsOn
  throw new MirrorError('usage', `--fail-on takes one of ${FAIL_ON.join(', ')}, not ${name}`)
}

function distroOf({ distro }: MatchOptions): string | null {
  const why = distro === undefined ? null : whyNoRelease(distro)
  if (why !== null) throw new MirrorError('usage', `--distro ${why}`)
  return distro ?? null
}

/** Says what `--fail-on` leaves open, and returns the exit code: 0 says that nothing of its kind is there, and is no answer where that is not known. */
function exitCodeOf(result: MatchResult, failOn: string | undefined, failsOn: FailsOn): number {
  if (result.findings.some(failsOn)) return FOUND
  const nothing = result.gaps.find(({ code }) => code === 'components')
  if (nothing !== undefined) warn(nothing.reason)
  if (failOn === undefined) return 0
  const unjudged = shareUnjudged(result)
  if (unjudged !== null && failOn === UNJUDGED) {
    warn(unjudged)
    return FOUND
  }
  const open = [
    unknownSeverities(result, failOn),
    nothing === undefined ? unjudged : null,
    ...gapsFor(result, failOn, failsOn),
  ]
  const reasons = open.filter((one) => one !== null)
  for (const reason of reasons)
    warn(`nothing found is of the kind of --fail-on ${failOn}, but that is not certain: ${reason}`)
  return reasons.length > 0 || nothing !== undefined ? UNKNOWN : 0
}

/** Says how many packages are not judged, or not completely; null: all are judged. */
function shareUnjudged({ counts, notJudged }: MatchResult): string | null {
  const unjudged = notJudged.filter(isUnjudged).length
  if (unjudged === 0) return null
  const packages = counts.packages - (notJudged.length - unjudged)
  return `${unjudged} of ${counted(packages, 'package')} ${nounOf(unjudged, 'was', 'were')} not judged, or not completely`
}

/** Says of how many findings a threshold by severity cannot tell; null: of none. */
function unknownSeverities({ counts }: MatchResult, failOn: string): string | null {
  const { unknown } = counts.levels
  if ((failOn !== 'critical' && failOn !== 'high') || unknown === 0) return null
  return `the records of ${counted(unknown, 'finding')} state no severity`
}

/** Returns the gaps that decide about `--fail-on`; that nothing was judged is said apart. */
function gapsFor({ gaps, suppressed, findings }: MatchResult, failOn: string, failsOn: FailsOn): string[] {
  const decides = {
    components: false,
    sbom: true,
    age: true,
    records: true,
    vex: suppressed.some(failsOn),
    patches: failOn === 'fixable' && findings.length > 0,
    release: false,
  }
  return gaps.filter(({ code }) => decides[code]).map(({ reason }) => reason)
}

type Writer = (result: MatchResult, file: string, config: Config) => void

const WRITERS: Readonly<Record<string, Writer>> = {
  table: (result, _file, config) => {
    for (const line of matchLines(result, config, Date.now())) print(visibleLines(line))
  },
  json: (result) => printJson(result),
  cyclonedx: (result) => printJson(vulnerabilityReport(result, Date.now())),
  sarif: (result, file) => printJson(sarifReport(result, file === '-' ? 'stdin' : file)),
}

function writerOf({ format, json }: MatchOptions): Writer {
  const name = format ?? (json === true ? 'json' : 'table')
  const writer = Object.hasOwn(WRITERS, name) ? WRITERS[name] : undefined
  if (writer !== undefined && (json !== true || name === 'json')) return writer
  const known = Object.keys(WRITERS).join(', ')
  throw new MirrorError(
    'usage',
    json === true ? '--json and --format exclude each other' : `--format takes one of ${known}, not ${name}`,
  )
}

/** Names of components that are listed for one reason; `--json` has all. */
const MOST_NAMES = 5

/** Returns what was found in an SBOM as lines of text; `now`: Unix milliseconds. */
function matchLines(result: MatchResult, config: Config, now: number): string[] {
  const { findings, notJudged, snapshot, suppressed, vex, patches } = result
  return [
    headline(result),
    ...findingLines(findings),
    ...disagreeingLines(findings),
    ...section('Ruled out by VEX:', suppressed.map(suppressedRow), SUPPRESSED_HEAD),
    ...section('Not judged:', reasonRows(notJudged), ['components', 'reason', 'such as']),
    ...noteLines(result),
    '',
    snapshotLine(snapshot, config),
    vexLine(vex, config, now),
    patchesLine(patches),
  ]
}

/** Gaps that stand below the findings; the others are said by the lines of the snapshot, of VEX and of patches. */
const NOTED: ReadonlySet<MatchGap['code']> = new Set(['components', 'sbom', 'release'])

/** Says that nothing was judged, of how many packages less was known, and of which release it is not clear. */
function noteLines(result: MatchResult): string[] {
  const noted = result.gaps.flatMap(({ code, reason }) => (NOTED.has(code) ? [reason] : []))
  const notes = [...notesOf(result), ...noted]
  return notes.length === 0 ? [] : ['', ...notes]
}

const SUPPRESSED_HEAD = ['status', 'component', 'version', 'record', 'justification', 'document', 'signature']

function suppressedRow({ component, id, vex }: SuppressedFinding): string[] {
  const { status, justification, note, document, signature } = vex
  const why = justification === '' ? note : justification
  return [
    status.replaceAll('_', ' '),
    ...[cut(component.name, 60), cut(component.version, 40), id],
    ...[why === '' ? '-' : cut(why, 60), document.slice(0, 12), signature?.state ?? '-'],
  ]
}

/** Says that records contradict themselves about a severity, and what counts then. */
function disagreeingLines(findings: readonly MatchFinding[]): string[] {
  const found = findings.filter(({ severity }) => disagrees(severity)).length
  if (found === 0) return []
  return [
    '',
    `of ${counted(found, 'finding')} the record's word and its CVSS score are of different levels: the higher one is shown and counts`,
  ]
}

/** A column that is shown where it says something of any finding. */
interface OptionalColumn {
  readonly name: string
  readonly says: (finding: MatchFinding) => boolean
  readonly cell: (finding: MatchFinding) => string
}

/** The release of a distribution, which a component's name and version do not have; and the patches. */
const OPTIONAL: readonly OptionalColumn[] = [
  {
    name: 'ecosystem',
    says: ({ ecosystems }) => ecosystems.some((one) => one.includes(':')),
    cell: ({ ecosystems }) => cut(ecosystems.join(', '), 40) || '-',
  },
  {
    name: 'by its source package',
    says: ({ source }) => source !== null,
    cell: ({ source }) => (source === null ? '-' : cut(source, 60)),
  },
  { name: 'patches', says: ({ patches }) => patches.length > 0, cell: patchCell },
]

function findingLines(findings: readonly MatchFinding[]): string[] {
  const more = OPTIONAL.filter(({ says }) => findings.some(says))
  const rows = findings.map((one) => [...rowOf(one), ...more.map(({ cell }) => cell(one))])
  return section('', rows, [...FINDING_HEAD, ...more.map(({ name }) => name)])
}

function patchCell({ patches, patchCount }: MatchFinding): string {
  const texts = patches.map(({ status, release, version }) =>
    [status || 'no status', [release, version].filter((one) => one !== '').join(' ')].join(': '),
  )
  const more = patchCount > patches.length ? ` (${patches.length} of ${patchCount} listed)` : ''
  return texts.length === 0 ? '-' : cut([...new Set(texts)].join(', '), 80) + more
}

function patchesLine({ notApplied, entries, partial }: MatchPatches): string {
  if (notApplied !== null) return `patches: not joined: ${notApplied}`
  const said = `patches: ${entries} in the list`
  return partial === null ? said : `${said}; ${describePartialPatches(partial)}`
}

const FINDING_HEAD = ['severity', 'component', 'version', 'fixed in', 'record', 'also known as']

function headline({ sbom, counts, gaps }: MatchResult): string {
  const { findings, vulnerable, packages, fixable, levels, notJudged, suppressed } = counts
  const found = [...LEVELS, 'unknown' as const].filter((level) => levels[level] !== 0)
  const parts = found.map((level) => `${levels[level]} ${level === 'unknown' ? 'of no stated severity' : level}`)
  const name = sbom.name === '' ? 'unnamed' : cut(visible(sbom.name), 200)
  const what = `${visible(sbom.format)}, ${name}: ${counted(packages, 'package')}`
  const ruledOut = suppressed === 0 ? '' : `; ${suppressed} ruled out by VEX`
  const rest = notJudged === 0 ? ruledOut : `${ruledOut}; ${notJudged} not judged, or not completely`
  if (gaps.some(({ code, reason }) => code === 'components' && reason !== NONE_COMPARED)) return `${what}, none judged`
  if (findings === 0) return `${what}, no findings${rest}`
  return `${what}, ${counted(findings, 'finding')} in ${vulnerable} of them (${parts.join(', ')}); ${fixable} with a fix${rest}`
}

function rowOf({ severity, component, fixed, id, aliases }: MatchFinding): string[] {
  const { level, score, word } = severity
  const shown = score === null ? '' : ` ${score.toFixed(1)}`
  const said = disagrees(severity) ? ` (word: ${word})` : ''
  return [
    `${level ?? 'unknown'}${shown}${said}`,
    cut(component.name, 60),
    cut(component.version, 40),
    fixed.length === 0 ? '-' : fixed.join(', '),
    id,
    aliases.length === 0 ? '-' : cut(aliases.join(', '), 60),
  ]
}

function reasonRows(notJudged: readonly NotJudged[]): string[][] {
  const reasons = [...Map.groupBy(notJudged, ({ reason }) => reason)]
  return reasons.map(([reason, ones]) => {
    const names = ones.slice(0, MOST_NAMES).map(({ name, purl }) => cut(name || (purl ?? '-'), 60))
    const more = ones.length > MOST_NAMES ? ', …' : ''
    return [String(ones.length), reason, `${names.join(', ')}${more}`]
  })
}

function section(title: string, rows: readonly string[][], head: readonly string[]): string[] {
  if (rows.length === 0) return []
  return ['', ...(title === '' ? [] : [title]), ...table(head, rows).split('\n')]
}

function snapshotLine({ id, asOf, publishedAt, scope, ...known }: MatchSnapshot, config: Config): string {
  const { ageSeconds } = known
  const published = publishedAt === null ? '' : `, published ${timeOf(Date.parse(publishedAt))}`
  const marks = [
    ...marksOf(config, 'osv', known),
    ...(scope === null ? [] : [`the mirror has only a part of the records: ${scope}`]),
  ]
  return [`osv: snapshot ${id.slice(0, 12)}${published}, ${ageWords(asOf, ageSeconds)}`, ...marks].join('; ')
}

/** Of the catalog the VEX alone counts here, which has a mark of its own. */
const WHOLE = { partial: false, missing: 0 } as const

function vexLine(
  { notApplied, snapshot, asOf, documents, unread, missing }: MatchVex,
  config: Config,
  now: number,
): string {
  if (notApplied !== null) return `vex: not applied: ${notApplied}`
  const what = [counted(documents, 'document'), unread === 0 ? '' : `, ${unread} of them not readable here`].join('')
  const at = Date.parse(asOf ?? '')
  const said = `vex: ${what}, snapshot ${snapshot?.slice(0, 12)}, as of ${timeOf(at)}`
  const ageSeconds = ageSecondsOf(at, now)
  const vexMarks = missing === 0 ? [] : [describeMissingVex(missing)]
  return [said, ...vexMarks, ...marksOf(config, 'catalog', { ageSeconds, withheld: null, ...WHOLE })].join('; ')
}
