import { type Cell, code, grouped, link, plain, state, time, withTimes } from '../../../lookup/answers/cells.ts'
import { asSentence } from '../../../lookup/answers/html.ts'
import type { Tone } from '../../../lookup/answers/answer.ts'
import { MirrorError } from '../../../../base/errors.ts'
import { clip, counted } from '../../../../base/text.ts'
import { toIso } from '../../../../base/time.ts'
import { LEVELS, disagrees } from '../../../../documents/records/severity.ts'
import { whySbomOld } from '../../../../documents/sboms/mirrored.ts'
import { describeDates } from '../../../../server/lookup/dates.ts'
import { JUDGED_BEFORE, isJudgedByServed } from '../../../../server/lookup/record-tags.ts'
import type { FindingsReads, TagFindings } from '../../../../store/findings/reads.ts'
import type { ListedFinding } from '../../../../store/findings/tag-list.ts'
import { gapWords, notJudgedYet, tagGaps } from '../../../../store/findings/words.ts'
import { tagFindingsPart } from '../../../lookup/change-tables.ts'
import { createWhyNotJudged } from '../../../lookup/tag.ts'
import type { Block } from '../../blocks.ts'
import { answerBlocks } from '../../links.ts'
import { type PageCall, type PageView, numberOf, parameter } from '../../page.ts'
import { openElsewhere } from './elsewhere.ts'
import { type SaidOfFinding, createRecordReader } from './fixes.ts'
import { requireTagFindings } from './log.ts'
import { compareOthers } from './others.ts'
import { reasonsOf } from './ruled.ts'

/** Findings on a page: their records are read for it. */
const PAGE = 50

/** Loads the page of the findings of one tag, as `patchmirror match` finds them; with a text those that contain it. */
export function loadTagFindings(call: PageCall): PageView {
  const id = parameter(call.query, 'id')
  if (id === '') throw new MirrorError('bad_request', 'name the tag: ?id=…')
  return requireTagFindings(call, (found) => {
    const tag = found.readTag(id)
    if (found.readState()?.beganAt === null) throw new MirrorError('not_ready', notJudgedYet(found.countTags()))
    if (tag === null) throw new MirrorError('not_found', `this mirror has judged no tag of the id ${clip(id, 200)}`)
    const title = `Findings of ${clip(tag.name, 200)}`
    const known = { withoutVex: found.listTagsWithoutVex(), whySbomOld: (one: string) => whySbomOld(call.reads, one) }
    const gaps = gapWords(tagGaps(tag, known))
    const judged = tag.refusal === null ? tag : createWhyNotJudged(call)(id, tag.refusal)
    const blocks = answerBlocks(call, { parts: [tagFindingsPart(judged, gaps)] })
    const more: Block = { kind: 'facts', rows: [['tag', link(tag.name, call.ui('tag', { id }))]] }
    const listed = tag.refusal === null ? [formOf(call, id), tableOf(call, found, tag)] : []
    return { title, blocks: [more, ...blocks, ...listed] }
  })
}

function formOf({ ui, query }: PageCall, id: string): Block {
  const label = 'Id, package or version contains'
  const fields = [{ name: 'q', label, value: parameter(query, 'q'), hint: 'openssl' }]
  return {
    kind: 'form',
    label: 'Filter of findings',
    action: ui('tag-findings'),
    fields,
    button: 'Show',
    hidden: [['id', id]],
  }
}

function tableOf(call: PageCall, found: FindingsReads, tag: TagFindings): Block {
  const at = numberOf(call.query, 'at') ?? 0
  const q = parameter(call.query, 'q')
  const findings = found.listFindingsPage(tag.id, q, PAGE, at)
  const all = findings[0]?.fitting ?? 0
  const isCurrent = isJudgedByServed(found, call.reads.snapshots)
  const pageAt = (next: number): string => call.ui('tag-findings', { id: tag.owner, q, at: next === 0 ? null : next })
  const { rows, unread, isCompared } = rowsOf(call, found, { tag, findings, isCurrent })
  const isBehind = !isCurrent || found.hasUnread()
  const notes = [
    ...(findings.length < all ? [`${grouped(at + 1)} to ${grouped(at + findings.length)} of ${grouped(all)}`] : []),
    ...(q === '' ? [] : [`only those that contain “${clip(q, 100)}”`]),
    ...(isBehind ? [JUDGED_BEFORE] : []),
    ...(isCurrent ? [] : ['what other tags have is shown after that']),
    ...(isCurrent && !isCompared ? ['no other tags are compared, since this one names no repository'] : []),
    ...(unread === 0 ? [] : [`${counted(unread, 'record')} not read here: not stored now, damaged, or too many bytes`]),
    'a package that is listed by several package URLs counts once',
    'new since is the change that named the finding last; of what the first judgement of the tag found it is not known',
  ]
  return {
    kind: 'table',
    title: 'Findings',
    note: withTimes(notes.map(asSentence).join(' ')),
    ...(isBehind && { incomplete: JUDGED_BEFORE }),
    columns: ['Finding', 'Package', 'Severity', 'Status', 'Fixed versions', 'In other tags', 'New since'],
    rows,
    empty: emptyOf(q, at),
    first: at === 0 ? null : pageAt(0),
    next: at + PAGE < all ? pageAt(at + PAGE) : null,
  }
}

function emptyOf(q: string, at: number): string {
  if (at > 0) return 'There are no more findings.'
  return q === '' ? 'Nothing was found in the packages that are judged.' : 'No finding of this tag contains this text.'
}

interface Shown {
  readonly tag: TagFindings
  readonly findings: readonly ListedFinding[]
  readonly isCurrent: boolean
}

/** Returns the rows of a page, how many of its records were not read, and whether other tags were compared. */
function rowsOf(call: PageCall, found: FindingsReads, { tag, findings, isCurrent }: Shown) {
  const said = call.views((views) => {
    const read = createRecordReader(views)
    return new Map(findings.map((one) => [one, read(one)]))
  })
  const saidOf = (one: ListedFinding): SaidOfFinding | null => said?.get(one) ?? null
  const open = findings.filter(({ suppressed }) => suppressed === 0)
  const others = isCurrent ? compareOthers({ reads: call.reads, found, tag, findings: open, saidOf }) : null
  const elsewhere = openElsewhere(call)
  const reasons = reasonsOf(
    call,
    found,
    tag,
    findings.filter(({ suppressed }) => suppressed === 1),
  )
  const seen = new Map(found.listNewOf(tag.owner).map(({ record, name, at }) => [`${record} ${name}`, at]))
  const rows = findings.map((one): (Cell | Cell[])[] => [
    findingCell(call, one),
    packageCell(one),
    severityCell(one, saidOf(one)),
    statusCell(one, reasons.get(one) ?? null),
    fixCells(one, saidOf(one)),
    one.suppressed === 1 || others === null ? plain(null) : elsewhere(others(one)),
    sinceCell(call, one, seen.get(`${one.record} ${one.name}`)),
  ])
  return { rows, unread: findings.filter((one) => saidOf(one) === null).length, isCompared: others !== null }
}

/** When a finding came, as far as a change names it; else what its record says of that, where the mirror saw the record come. */
function sinceCell({ reads, now }: PageCall, { record }: ListedFinding, at: number | undefined): Cell {
  if (at !== undefined) return time(at, now)
  const dates = reads.dates.readDates(record)
  const isKnown = dates !== null && describeDates(dates).firstSeen.exact
  const note = isKnown ? { note: `not before its record, ${toIso(dates.firstSeen).slice(0, 10)}` } : {}
  return { ...plain('not known'), ...note }
}

/** Leads to the page of the CVE that a finding is about, where it is one. */
function findingCell({ ui }: PageCall, { record, names }: ListedFinding): Cell {
  const ids = [record, ...(JSON.parse(names) as string[][]).flat()]
  const cves = [...new Set(ids.filter((one) => one.startsWith('CVE-')))]
  const [cve = record] = cves
  const id = cves.length === 1 ? cve : record
  const note = id === record ? {} : { note: id }
  return { ...(id.length <= 500 ? code(record, ui('cve', { id })) : code(record)), ...note }
}

function packageCell({ name, version, source, gap }: ListedFinding): Cell {
  const by = source === '' || source === name ? [] : [`by its source package ${source}`]
  const partly = gap === 0 ? [] : ['not judged completely']
  const notes = [...by, ...partly].join('; ')
  return { ...plain(`${name} ${version}`), ...(notes !== '' && { note: clip(notes, 200) }) }
}

const TONES: Readonly<Record<string, Tone>> = { critical: 'bad', high: 'warn' }

/** The level that counts is that of the judgement; its score is that of the record. */
function severityCell({ level }: ListedFinding, said: SaidOfFinding | null): Cell {
  const judged = LEVELS[level] ?? 'unknown'
  if (said === null) return state(judged, TONES[judged] ?? 'plain')
  const { level: word, score } = said.severity
  const shown = word ?? 'unknown'
  const notes = [
    ...(score === null ? [] : [score.toFixed(1)]),
    ...(disagrees(said.severity) ? ['the higher of two'] : []),
  ]
  return { ...state(shown, TONES[shown] ?? 'plain'), ...(notes.length > 0 && { note: notes.join(', ') }) }
}

function statusCell({ fixable, patched, suppressed }: ListedFinding, reason: string | null): Cell {
  if (suppressed === 1)
    return { ...state('ruled out by VEX', 'good'), ...(reason !== null && { note: clip(reason, 200) }) }
  return fixable === 1 || patched === 1 ? state('fixable', 'warn') : plain('no fix is known')
}

const NOT_READ = plain('not read')
const PATCHED = plain('patched by the service')

/** Fixed versions that are shown of a finding. */
const MOST_FIXED = 3

function fixCells({ patched }: ListedFinding, said: SaidOfFinding | null): Cell[] {
  if (said === null) return patched === 1 ? [NOT_READ, PATCHED] : [NOT_READ]
  const { fixed } = said
  const shown = fixed.slice(0, MOST_FIXED).map((one) => plain(one, 80))
  const more = fixed.length > MOST_FIXED ? [plain(`and ${fixed.length - MOST_FIXED} more`)] : []
  const done = patched === 1 ? [PATCHED] : []
  const cells = [...shown, ...more, ...done]
  return cells.length === 0 ? [plain(null)] : cells
}
