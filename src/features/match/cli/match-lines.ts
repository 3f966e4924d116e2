import type { Config } from '../../../config/schema.ts'
import { counted } from '../../../base/text.ts'
import { ageSecondsOf } from '../../../base/domain/sources.ts'
import type { MatchFinding, MatchPatches, NotJudged, SuppressedFinding } from '../judging/finding.ts'
import type { MatchResult, MatchSnapshot, MatchVex } from '../result.ts'
import { describeMissingVex, describePartialPatches } from '../gaps.ts'
import { notesOf } from '../notes.ts'
import { LEVELS, disagrees } from '../../../documents/records/severity.ts'
import { cut, table, timeOf, visible } from '../../../cli/output.ts'
import { ageWords, marksOf } from '../../lookup/freshness.ts'

/** Names of components that are listed for one reason; `--json` has all. */
const MOST_NAMES = 5

/** Returns what was found in an SBOM as lines of text; `now`: Unix milliseconds. */
export function matchLines(result: MatchResult, config: Config, now: number): string[] {
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

/** Says of how many packages less was known, and of which release it is not clear. */
function noteLines(result: MatchResult): string[] {
  const releases = result.gaps.flatMap(({ code, reason }) => (code === 'release' ? [reason] : []))
  const notes = [...notesOf(result), ...releases]
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

function headline({ sbom, counts }: MatchResult): string {
  const { findings, vulnerable, packages, fixable, levels, notJudged, suppressed } = counts
  const found = [...LEVELS, 'unknown' as const].filter((level) => levels[level] !== 0)
  const parts = found.map((level) => `${levels[level]} ${level === 'unknown' ? 'of no stated severity' : level}`)
  const name = sbom.name === '' ? 'unnamed' : cut(visible(sbom.name), 200)
  const what = `${visible(sbom.format)}, ${name}: ${counted(packages, 'package')}`
  const ruledOut = suppressed === 0 ? '' : `; ${suppressed} ruled out by VEX`
  const rest = notJudged === 0 ? ruledOut : `${ruledOut}; ${notJudged} not judged, or not completely`
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
  return [said, ...vexMarks, ...marksOf(config, 'catalog', { ageSeconds, quarantined: 0, ...WHOLE })].join('; ')
}
