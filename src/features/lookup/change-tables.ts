import {
  type Fact,
  type Part,
  type Table,
  type Tone,
  type Value,
  codeValue,
  countValue,
  linkValue,
  textValue,
  timeValue,
} from './answers/answer.ts'
import { grouped } from './answers/cells.ts'
import { type PublishedDoubt, doubtSentence } from '../../base/domain/doubts.ts'
import type { SourceName } from '../../base/domain/sources.ts'
import type { LeftRecords } from '../../store/changes/left.ts'
import { clip, counted, nounOf } from '../../base/text.ts'
import type { changeMessage } from '../../store/findings/message.ts'
import type { TagFindings } from '../../store/findings/reads.ts'
import { changedFindings, detailWords, findingWords, judgedWords, packageWords } from '../../store/findings/words.ts'

/*
 * Makes tables of what changed, and of findings: in a terminal a change is a line, with its details below it.
 */

/** What is special to one of the tables. */
type Parts = Partial<Pick<Table, 'title' | 'about' | 'next' | 'total' | 'more' | 'empty'>>

/** How much of a change is shown: sentences, and the characters of each. */
interface Extent {
  readonly words: number
  readonly length: number
}
const EVERYTHING: Extent = { words: Infinity, length: Infinity }

/** What became of a name of a source. */
export interface NamedChange {
  readonly name: string
  readonly change: 'added' | 'changed' | 'removed'
  /** Why a removed record left that is not known to be removed upstream. */
  readonly cause?: LeftRecords['cause'] | undefined
  /** What people call the thing whose path the name is; absent: nothing else. */
  readonly label?: string | undefined
  /** When it changed last, ISO 8601, as the snapshot that it is in last; absent: the table is of one snapshot. */
  readonly at?: string
  readonly snapshot?: string
  readonly words?: readonly string[] | undefined
  readonly doubts?: readonly PublishedDoubt[] | undefined
}

const TONES = { added: 'good', changed: 'plain', removed: 'warn' } as const satisfies Record<string, Tone>

/** Returns the table of what became of the names of a source. */
export function changedNames(
  source: SourceName,
  changes: readonly NamedChange[],
  parts: Parts,
  extent = EVERYTHING,
): Table {
  const hasWords = source === 'osv'
  const hasSnapshot = changes.some(({ snapshot }) => snapshot !== undefined)
  return {
    kind: 'table',
    title: 'names that differ, each once',
    columns: [
      { name: 'change', isDetail: true },
      { name: 'name' },
      ...(hasWords ? [{ name: 'what', isBelow: true } as const] : []),
      ...(hasSnapshot ? [{ name: 'when' }, { name: 'last in snapshot', isDetail: true } as const] : []),
    ],
    rows: changes.map((one) => [
      { kind: 'text', text: one.cause === undefined ? one.change : 'left', tone: TONES[one.change] },
      nameValue(source, one),
      ...(hasWords ? [wordValues(one, extent)] : []),
      ...(hasSnapshot ? [timeValue(one.at ?? ''), codeValue((one.snapshot ?? '').slice(0, 12))] : []),
    ]),
    empty: 'nothing changed',
    ...parts,
  }
}

/** A record leads to its page, a path to what the mirror serves there. */
function nameValue(source: SourceName, { name, label }: NamedChange): Value {
  if (source === 'osv' && name.length <= 500) return codeValue(name, { kind: 'record', name })
  const value = /^\/(?![/\\])[^\p{Cc}]*$/u.test(name) ? codeValue(name, { kind: 'path', name }) : codeValue(name)
  return label === undefined || value.kind !== 'text' ? value : { ...value, note: clip(label, 200) }
}

/** Returns why the change of a record is doubted, and the sentences about it. */
function wordValues({ words = [], doubts = [] }: NamedChange, { words: most, length }: Extent): Value[] {
  const doubted = doubts.map((doubt): Value => ({ kind: 'text', text: doubtSentence(doubt), tone: 'warn' }))
  const more = words.length - most
  const shown = words.slice(0, most).map((text) => textValue(text, length))
  return [...doubted, ...shown, ...(more > 0 ? [textValue(`… and ${more} more`)] : [])]
}

/** Says that changes are not listed which may concern what was asked. */
export function notJudgedWords(records: number): string {
  const what = counted(records, 'changed record is not listed: its', 'changed records are not listed: their')
  const whether = nounOf(records, 'it concerns', 'they concern')
  return `${what} earlier version is not stored, so it is not known whether ${whether} what was asked`
}

/** The numbers of a judged tag, in the order in which answers have them. */
const COUNTS = [
  ['with a fix', 'fixable'],
  ['findings', 'findings'],
  ['critical', 'critical'],
  ['high', 'high'],
  ['ruled out by VEX', 'suppressed'],
] as const

type TagCounts = Pick<TagFindings, (typeof COUNTS)[number][1]>

function countsOf(counts: TagCounts): Value[] {
  return COUNTS.map(([, key]) => countValue(counts[key]))
}

/** Returns what records say about the SBOM of a tag, or why it is not judged. `gaps`: what is not known of it. */
export function tagFindingsPart(
  found: (TagCounts & Parameters<typeof packageWords>[0]) | string,
  gaps: readonly string[],
): Part {
  if (typeof found === 'string')
    return { kind: 'notice', level: 'warning', title: 'the SBOM of this tag is not judged', text: found }
  const values = countsOf(found)
  const rows = COUNTS.map(([name], at): Fact => [name, values[at] ?? []])
  const packages: Fact = ['packages', textValue(packageWords(found), Infinity)]
  const unknown = gaps.map((gap): Fact => ['not known', textValue(gap, Infinity)])
  return { kind: 'facts', rows: [...rows, packages, ...unknown] }
}

/** A reason why tags are not judged, and how many. */
export interface NotJudged {
  readonly reason: string
  readonly tags: number
}

/** Returns how many tags are judged, and why others are not. `isWhole`: all were judged once. */
export function judgedParts(
  counts: Parameters<typeof judgedWords>[0],
  isWhole: boolean,
  refusals: readonly NotJudged[],
): Part[] {
  const why = refusals.map(({ reason, tags }): Part => {
    return { kind: 'notice', level: 'note', title: 'not judged', text: `${counted(tags, 'tag')}: ${clip(reason, 600)}` }
  })
  return [{ kind: 'text', text: judgedWords(counts, isWhole) }, ...why]
}

/** Returns the table of judged tags by their findings. `gapsOf`: what is not known of one, which a terminal says below. */
export function tagsToFix(
  tags: readonly TagFindings[],
  gapsOf: (tag: TagFindings) => readonly string[],
  parts: Parts,
): Table {
  return {
    kind: 'table',
    title: 'tags with a fix',
    columns: ['tag', ...COUNTS.map(([name]) => name), { name: 'gaps', isDetail: true }],
    rows: tags.map((tag) => [
      linkValue(tag.name, { kind: 'tag', name: tag.owner }),
      ...countsOf(tag),
      gapsOf(tag).map((gap) => textValue(gap, Infinity)),
    ]),
    empty: 'no tag is judged',
    ...parts,
  }
}

type FindingsChange = ReturnType<typeof changeMessage>

/** Says that no change of findings is listed, of how many tags. Of a tag that is not judged no change can be known. */
export function noChangeWords({ tags, judged }: Parameters<typeof judgedWords>[0]): string {
  if (judged === tags) return 'nothing changed'
  return judged === 0 ? 'no tag is judged, so no change is known' : 'nothing changed in the tags that are judged'
}

/** Returns the table of what changed in the findings of tags; `isOfOne`: a terminal has named the tag before. */
export function changedFindingsTable(
  changes: readonly FindingsChange[],
  parts: Parts & { readonly empty: string },
  isOfOne = false,
): Table {
  return {
    kind: 'table',
    title: 'changes of findings',
    about: ['by other records, SBOMs, VEX or patches', 'what VEX rules out does not count'],
    columns: [
      { name: 'when' },
      { name: 'tag', ...(isOfOne && { isDetail: true }) },
      { name: 'change' },
      { name: 'the first of them', isBelow: true },
      { name: 'findings then', isDetail: true },
    ],
    rows: changes.map((one) => [
      timeValue(one.at),
      linkValue(one.tag.name, { kind: 'tag', name: one.tag.id }),
      textValue(findingWords(numbersOf(one)), Infinity),
      detailsOf(one),
      textValue(`${grouped(one.counts.findings)}, ${grouped(one.counts.fixable)} with a fix`),
    ]),
    ...parts,
  }
}

function numbersOf(one: FindingsChange) {
  return {
    found: one.newFindings,
    foundFixable: one.newFixable,
    gone: one.goneFindings,
    goneFixable: one.goneFixable,
    fixes: one.newFixes,
    fixesGone: one.goneFixes,
    cause: one.cause,
    whyGone: one.changes.flatMap(({ change, why }) => (change === 'gone' ? [why] : [])),
  }
}

/** The findings that are named of a change, and how many are not. */
function detailsOf(one: FindingsChange): Value[] {
  const details = one.changes.map(({ change, id, package: name, version, fixable, source, why }) =>
    detailWords([change, id, name, version, fixable ? 1 : 0, source ?? '', why ?? undefined]),
  )
  const unlisted = changedFindings(numbersOf(one)) - details.length
  const rest = unlisted > 0 ? [`and ${unlisted} more`] : []
  return [...details, ...rest].map((text) => textValue(text, 1000))
}
