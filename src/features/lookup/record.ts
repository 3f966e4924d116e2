import {
  type Answer,
  type Fact,
  type Facts,
  type Part,
  type Table,
  type Value,
  bytesValue,
  codeValue,
  linkValue,
  textValue,
  timeValue,
} from './answers/answer.ts'
import { isWithdrawn } from '../scanners/records/affected.ts'
import { readOrigin } from '../../server/http/origin.ts'
import { describeAffected, describeSeverity } from './reads/affected.ts'
import { datesInWords } from '../../server/lookup/dates.ts'
import { type KnownRecordTags, JUDGED_BEFORE, foundPackage, tagsThatHaveIt } from '../../server/lookup/record-tags.ts'
import { type RemovedRecord, removedTagsWords, removedWords } from '../../server/lookup/removed-records.ts'
import { type Fields, eachObject, fieldsOf, isObject, jsonTextOf } from '../../base/json/objects.ts'
import { clip, counted } from '../../base/text.ts'
import { timeOf } from '../../cli/output.ts'
import type { Config } from '../../config/schema.ts'
import { damagedContent } from '../../store/database/faults.ts'
import { soundContent } from '../../store/database/gzip.ts'
import type { RecordDates } from '../../store/dates/reads.ts'
import type { Reads } from '../../store/reads.ts'
import type { Views } from '../scanners/store/reads.ts'

/** Longest summary that is shown, and longest name of a package or id that leads to a page, characters. */
const MAX_SUMMARY = 2000
const MAX_NAME = 500
/** Changes of a record that are shown. */
const MOST_CHANGES = 50

/** A stored record, with what this mirror knows of it. */
interface FoundRecord {
  readonly id: string
  /** The other id by which it was found. */
  readonly alias?: string
  /** Records with this other id that upstream removed. */
  readonly removed?: readonly RemovedRecord[]
  readonly stored: NonNullable<ReturnType<Reads['osv']['readRecord']>>
  /** Null: it is not shown. */
  readonly content: Fields | null
  readonly dates: RecordDates | null
  /** The mirrored tags with it, or why they are not known; null: they are not asked for. */
  readonly tags: KnownRecordTags | string | null
}

/** How much of a record an answer tells: rows of each kind, the affected packages from `at` on. */
interface RecordExtent {
  readonly at: number
  readonly packages: number
  readonly references: number
  readonly ids: number
  readonly tags: number
  /** Reads what only a page has room for; null: it is left out. */
  readonly more: RecordContext | null
}

/** What more of a record is read from. */
interface RecordContext {
  readonly reads: Reads
  readonly config: Config
  /** Null while no views are built. */
  readonly views: <T>(use: (views: Views) => T) => T | null
}

/** Returns a stored record; null: there is none of this id. Throws `corrupt` for one whose bytes are lost. */
export function readStoredRecord({ osv }: Reads, id: string): FoundRecord['stored'] | null {
  const stored = osv.readRecord(id)
  if (stored === null && osv.readEntry(id) !== null) throw damagedRecord(id)
  return stored
}

/** Returns the content of a record as an object; null where it is no JSON object. Throws `corrupt` for damaged bytes. */
export function recordContent(id: string, stored: FoundRecord['stored']): Fields | null {
  const content = soundContent(stored)
  if (content === null) throw damagedRecord(id)
  try {
    const value: unknown = JSON.parse(jsonTextOf(content))
    return isObject(value) ? value : null
  } catch {
    return null
  }
}

function damagedRecord(id: string): Error {
  return damagedContent(`the stored bytes of the record ${id} are damaged`)
}

/** Returns the answer about a record. */
export function recordAnswer(found: FoundRecord, extent: RecordExtent): Answer {
  const { id, alias, removed = [], content, dates, tags } = found
  return {
    title: alias === undefined ? id : `${id}, which names ${alias}`,
    parts: [
      ...removedNotices(removed),
      ...(content === null ? [NOT_SHOWN] : contentParts(content, extent)),
      storedFacts(found, extent.more),
      ...datesFacts(dates),
      ...(tags === null ? [] : [tagsPart(tags, extent.tags, id)]),
      ...(extent.more === null ? [] : [historyTable(extent.more, id)]),
    ],
  }
}

/** Returns the answer about a record that upstream removed; `removedAt`: of its tombstone. */
export function removedRecordAnswer(more: RecordContext, id: string, removedAt: number): Answer {
  const dates = more.reads.dates.readDates(id)
  const removed: Fact = ['removed', timeValue(dates?.removedAt ?? removedAt)]
  return {
    title: id,
    parts: [REMOVED, { kind: 'facts', rows: [removed] }, ...datesFacts(dates), historyTable(more, id)],
  }
}

/** Says that records about the same were removed upstream; nothing where none was. */
export function removedNotices(removed: readonly RemovedRecord[]): Part[] {
  if (removed.length === 0) return []
  const title = 'upstream removed records about it'
  return [{ kind: 'notice', level: 'warning', title, text: removedWords(removed) }]
}

const REMOVED: Part = {
  kind: 'notice',
  level: 'warning',
  title: 'this record was removed',
  text: 'upstream does not list it any more',
}
const NOT_SHOWN: Part = {
  kind: 'notice',
  level: 'warning',
  title: 'this record is not shown here',
  text: 'It is larger than 16 MiB, or is no JSON object. Its bytes are served as upstream has them.',
}

function contentParts(record: Fields, extent: RecordExtent): Part[] {
  const { summary, details, withdrawn } = record
  const parts: Part[] = []
  if (typeof withdrawn === 'string') {
    const isOver = isWithdrawn(record)
    parts.push({
      kind: 'notice',
      level: 'warning',
      title: isOver ? 'this record is withdrawn' : 'this record is not taken for withdrawn',
      text: clip(`${isOver ? 'since' : 'its date of withdrawal lies ahead, or cannot be read:'} ${withdrawn}`),
    })
  }
  if (typeof summary === 'string') parts.push({ kind: 'text', text: clip(summary, MAX_SUMMARY) })
  const rows = contentFacts(record, extent.ids)
  if (rows.length > 0) parts.push({ kind: 'facts', rows })
  parts.push(affectedTable(record['affected'], extent))
  if (extent.more !== null && typeof details === 'string' && details !== '')
    parts.push({ kind: 'text', title: 'details', text: details })
  return [...parts, referencesTable(record['references'], extent.references)]
}

/** Returns upstream's dates, the severities and the other ids of a record, as far as it has them. */
function contentFacts(record: Fields, mostIds: number): Fact[] {
  const dates = ['published', 'modified'].map((name): Fact => [name, dateValue(record[name])])
  const severity: Fact = ['severity', describeSeverity(record).map((one) => textValue(one))]
  const ids = ['aliases', 'upstream', 'related'].map((name): Fact => [name, idValues(record[name], mostIds)])
  return [...dates, severity, ...ids].filter(
    ([, value]) => !('kind' in value ? value.kind === 'none' : value.length === 0),
  )
}

/** A date of upstream's may be any value. */
function dateValue(value: unknown): Value {
  return typeof value === 'string' && value !== '' ? timeValue(clip(value)) : textValue(value)
}

function idValues(value: unknown, most: number): Value[] {
  const list: unknown[] = Array.isArray(value) ? value : []
  const shown = list.slice(0, most).filter((one) => typeof one === 'string')
  const values = shown.map((one) => codeValue(one, { kind: 'vulnerability', name: one.slice(0, MAX_NAME) }))
  return list.length > most ? [...values, textValue(`and ${list.length - most} more`)] : values
}

function affectedTable(value: unknown, { at, packages, more }: RecordExtent): Table {
  const list: unknown[] = Array.isArray(value) ? value : []
  return {
    kind: 'table',
    title: 'affected packages',
    columns: ['package', 'ecosystem', 'affected', 'fixed in'],
    rows: list.slice(at, at + packages).map((one) => affectedRow(one, more !== null)),
    of: list.length,
    at,
    empty: 'this record names no package',
  }
}

function affectedRow(one: unknown, withPurl: boolean): (Value | Value[])[] {
  const { ecosystem, name, purl, affected, fixed } = describeAffected(one)
  return [
    packageValue(ecosystem, name, withPurl ? purl : null),
    textValue(ecosystem),
    affected.map((range) => textValue(range, 401)),
    fixed.length === 0 ? textValue('no fix is named') : fixed.map((version) => textValue(version, 101)),
  ]
}

/** Returns the name of a package; it leads to the package where it has one and its ecosystem is named. */
function packageValue(ecosystem: string | null, name: string | null, purl: string | null): Value {
  const isShort = (text: string | null): text is string => text !== null && text !== '' && text.length < MAX_NAME
  const value =
    isShort(ecosystem) && isShort(name) ? linkValue(name, { kind: 'package', ecosystem, name }) : textValue(name)
  return purl === null || value.kind !== 'text' ? value : { ...value, note: clip(purl, 120) }
}

function referencesTable(value: unknown, most: number): Table {
  const list = [...eachObject(value)].map(fieldsOf)
  return {
    kind: 'table',
    title: 'references',
    columns: ['reference', 'address'],
    rows: list.slice(0, most).map(({ type, url }) => [textValue(type), addressValue(url)]),
    of: list.length,
    empty: 'this record has no references',
  }
}

function addressValue(url: unknown): Value {
  const value = textValue(url)
  return typeof url === 'string' && value.kind === 'text' ? { ...value, link: { kind: 'web', url } } : value
}

/** Returns what is stored of a record, and where. */
function storedFacts({ id, stored }: FoundRecord, more: RecordContext | null): Facts {
  const own: Fact[] = [
    ['size', bytesValue(stored.size)],
    ['SHA-256', codeValue(stored.sha256.toString('hex'))],
    ['Last-Modified', timeValue(stored.changed * 1000)],
  ]
  const file: Fact = ['raw JSON', codeValue(`${encodeURIComponent(id)}.json`, { kind: 'record file', name: id })]
  const rows = more === null ? own : [file, ...own, ...servedFacts(more, id)]
  return { kind: 'facts', title: 'on this mirror', rows }
}

function servedFacts({ reads, views }: RecordContext, id: string): Fact[] {
  const names = views((open) => open.listViewsOf(id))
  const asOf = readOrigin(reads, 'osv')?.asOf
  return [
    ['as of', asOf === undefined ? textValue(null) : timeValue(asOf)],
    [
      'views that contain it',
      names === null
        ? textValue('unknown: the views are not built')
        : names.map((name) => linkValue(name, { kind: 'view', name })),
    ],
  ]
}

/** Returns since when a record is known here; upstream's own dates are with its content. */
export function datesFacts(dates: RecordDates | null): Facts[] {
  if (dates === null) return []
  const rows = datesInWords(dates).map(([name, at, note]): Fact => {
    return [name, at === null ? textValue(note) : timeValue(at, note)]
  })
  return [{ kind: 'facts', title: 'since when', rows }]
}

/** Returns a date of `datesInWords` as text. */
export function dateInWords(at: number | null, note: string): string {
  if (at === null) return note
  return note === '' ? timeOf(at) : `${timeOf(at)}, ${note}`
}

/** Returns the mirrored tags with a record or CVE among their findings, or why they are not known; `of`: its id. */
export function tagsPart(found: KnownRecordTags | string, most: number, of: string): Part {
  if (typeof found === 'string')
    return { kind: 'notice', level: 'note', title: 'the mirrored tags with it are not known', text: found }
  const { tags, isCurrent, removed = [] } = found
  const gone = removed.length === 0 ? [] : [removedTagsWords(removed)]
  const rows = tags
    .slice(0, most)
    .map((one) => [
      linkValue(clip(one.name || one.id, 200), { kind: 'findings', tag: one.id, of }),
      textValue(foundPackage(one), 200),
      textValue(one.version, 200),
      textValue(fixWords(one)),
    ])
  const words = tagsThatHaveIt(found)
  return {
    kind: 'table',
    title: 'mirrored tags with it',
    notes: [...(tags.length === 0 ? [] : [words]), ...gone, ...(isCurrent ? [] : [JUDGED_BEFORE])],
    columns: ['tag', 'package', 'version', 'with a fix'],
    rows,
    of: tags.length,
    empty: words,
  }
}

/** Returns whether a finding has a fix, in words. */
function fixWords({ suppressed, fixable }: KnownRecordTags['tags'][number]): string {
  if (suppressed) return 'ruled out by VEX'
  return fixable ? 'yes' : 'no'
}

function historyTable({ reads, config }: RecordContext, id: string): Table {
  const { historyDays } = config.data
  return {
    kind: 'table',
    title: 'history on this mirror',
    notes: [`as far as the log of changes reaches back: ${counted(historyDays, 'day')} (data.historyDays), or less`],
    columns: ['change', 'when', 'snapshot'],
    rows: reads.changes
      .listChangesOf('osv', id, MOST_CHANGES)
      .map(({ change, publishedAt, snapshot }) => [
        textValue(change === 'added' ? 'first seen' : change),
        timeValue(publishedAt),
        codeValue(snapshot.slice(0, 12), { kind: 'changes', source: 'osv', since: snapshot }),
      ]),
    empty:
      'no change of it is in the log: it came with the first snapshot, or its changes are older than data.historyDays',
  }
}
