import {
  type Fact,
  type Part,
  type Table,
  type Tone,
  type Value,
  codeValue,
  linkValue,
  textValue,
} from '../../lookup/answers/answer.ts'
import { isObject, jsonTextOf } from '../../../base/json/objects.ts'
import { MirrorError } from '../../../base/errors.ts'
import { clip, counted } from '../../../base/text.ts'
import { isWithdrawn } from '../../scanners/records/affected.ts'
import { type Level, LEVELS, severityOf } from '../../../documents/records/severity.ts'
import { type VexReads, readVexStatements } from '../../../documents/vex/read.ts'
import type { Statement } from '../../../documents/vex/statement.ts'
import { whyOutOfScope } from '../../../server/feeds/osv.ts'
import { findMissingNamed, whyNotAllSearched } from '../../../server/lookup/missing-record.ts'
import { describeAffected } from '../../lookup/reads/affected.ts'
import { readRecordsTags } from '../../../server/lookup/record-tags.ts'
import { createTagNames } from '../../lookup/reads/tag-names.ts'
import { type RemovedRecord, findRemovedAbout } from '../../../server/lookup/removed-records.ts'
import { type VexDocument, tagsBelieving } from '../../../store/catalog/vex.ts'
import { contentOf } from '../../../store/database/gzip.ts'
import type { Reads } from '../../../store/reads.ts'
import { patchesTable } from '../../lookup/list-answers.ts'
import { removedNotices, tagsPart } from '../../lookup/record.ts'
import type { FoundRecord } from '../../lookup/search.ts'
import type { Block } from '../blocks.ts'
import { link } from '../../lookup/answers/cells.ts'
import { answerBlocks, listBlocks } from '../links.ts'
import { type PageCall, type PageView, parameter } from '../page.ts'
import { readListPage } from './list-page.ts'

/** Rows of each kind on the page. */
const MOST = { records: 50, statements: 100, tags: 100, products: 3 }
/** VEX documents that are read for a page, bytes: more would keep other pages waiting for seconds. */
const MOST_VEX_BYTES = 64 * 2 ** 20

const CVE = /^CVE-\d{4}-\d{4,}$/i

/** Loads the page of a CVE, or of any other id of a vulnerability: all that this mirror has about it. */
export function loadCve(call: PageCall): PageView {
  const given = parameter(call.query, 'id')
  const id = CVE.test(given) ? given.toUpperCase() : given // a filter of the catalog compares it as it is
  if (id === '') throw new MirrorError('bad_request', 'name a CVE: ?id=CVE-2026-1')
  const records = recordsOf(call, id)
  const blocks = [
    ...recordBlocks(call, id, records),
    ...(call.signedIn ? privateBlocks(call, id, records) : signIn(call)),
  ]
  return { title: id, blocks }
}

/** The records of this id, and those that name it as another id of theirs; null: what names it cannot be looked up now. */
interface FoundByCve {
  readonly own: readonly FoundRecord[]
  readonly others: readonly FoundRecord[] | null
  /** Those that upstream removed. */
  readonly removed: readonly RemovedRecord[]
}

function recordsOf({ reads, views }: PageCall, id: string): FoundByCve {
  if (reads.snapshots.readSnapshot('osv') === null) return { own: [], others: null, removed: [] }
  const found = (by: FoundRecord['by']) => (name: string) => {
    return { id: name, modified: reads.osv.readEntry(name)?.modified ?? null, by }
  }
  const own = [...new Set([id, id.toUpperCase()])].filter((one) => reads.osv.readEntry(one) !== null)
  const others = views((open) => open.listAliasIds(id, '', MOST.records + 1))
  return {
    own: own.map(found('id')),
    others: others === null ? null : others.filter((one) => !own.includes(one)).map(found('other id')),
    removed: findRemovedAbout(reads, id),
  }
}

function recordBlocks(call: PageCall, id: string, { own, others, removed }: FoundByCve): Block[] {
  const records = [...own, ...(others ?? [])].slice(0, MOST.records)
  const notSearched = others === null ? NO_INDEX : whyNotAllSearched(call.reads, null)
  const missing = records.length > 0 ? null : (whyNoRecord(call, id) ?? notSearched)
  const gone = removedNotices(removed)
  if (missing !== null) return answerBlocks(call, { parts: [...gone, notKnown('records', missing)] })
  const notes = whyFewer({ own, others })
  const said = records.map((one) => ({ ...one, ...saidBy(call.reads, one.id) }))
  return answerBlocks(call, {
    parts: [...gone, ...summaryParts(said), recordsTable(said, [...notes, ...unreadNotes(said)])],
  })
}

/** What a record says of the vulnerability. */
interface Said {
  /** Null: it states none. */
  readonly level: Level | null
  readonly score: number | null
  /** Its first line for people; '' where it has none. */
  readonly summary: string
  readonly isWithdrawn: boolean
  /** The packages that it names, with what fixes them. */
  readonly packages: readonly string[]
  /** False: it was not looked at, so nothing is known of what it says. */
  readonly isRead: boolean
}

const NOT_READ: Said = { level: null, score: null, summary: '', isWithdrawn: false, packages: [], isRead: false }
/** Longest record that is read for a page, bytes: with more, fifty of them would keep other pages waiting. */
const MOST_RECORD_BYTES = 2 ** 20

function saidBy({ osv }: Reads, id: string): Said {
  const row = osv.readRecord(id)
  if (row === null || row.size > MOST_RECORD_BYTES) return NOT_READ
  try {
    const record: unknown = JSON.parse(jsonTextOf(contentOf(row.body, row.size)))
    if (!isObject(record)) return NOT_READ
    const { summary, affected } = record
    const { level, score } = severityOf(record)
    return {
      level,
      score,
      summary: typeof summary === 'string' ? summary.trim() : '',
      isWithdrawn: isWithdrawn(record),
      packages: packagesOf(affected),
      isRead: true,
    }
  } catch {
    return NOT_READ // its bytes are served as upstream has them
  }
}

/** Packages of a record on the page of a CVE, and fixed versions of one; the page of the record has all. */
const MOST_OF_RECORD = { packages: 5, fixed: 3 }

function packagesOf(affected: unknown): string[] {
  const all: unknown[] = Array.isArray(affected) ? affected : []
  const named = all.slice(0, MOST_OF_RECORD.packages).map((one) => {
    const { name, ecosystem, fixed } = describeAffected(one)
    const shown = [...fixed.slice(0, MOST_OF_RECORD.fixed), ...(fixed.length > MOST_OF_RECORD.fixed ? ['…'] : [])].join(
      ', ',
    )
    return `${name ?? 'no name'} (${ecosystem ?? 'no ecosystem'}): ${shown === '' ? 'no fix is named' : `fixed in ${shown}`}`
  })
  const more = all.length - named.length
  return more > 0 ? [...named, `and ${more} more`] : named
}

/** Says the highest severity of the records that are not withdrawn, and the summary of the first that has one. */
function summaryParts(records: readonly (FoundRecord & Said)[]): Part[] {
  const valid = records.filter(({ isWithdrawn }) => !isWithdrawn)
  const summary = valid.find((one) => one.summary !== '')
  const level = LEVELS.find((one) => valid.some((record) => record.level === one))
  const by = valid.filter((record) => record.level === level).map(({ id }) => id)
  const facts: Fact[] = []
  if (level !== undefined) facts.push(['severity', [levelValue(level), textValue(`by ${by.slice(0, 3).join(', ')}`)]])
  if (summary !== undefined) facts.push(['summary', textValue(summary.summary, 500)])
  return facts.length === 0 ? [] : [{ kind: 'facts', title: 'in short', rows: facts }]
}

const TONES: Partial<Record<Level, Tone>> = { critical: 'bad', high: 'warn' }

function levelValue(level: Level | null, score: number | null = null): Value {
  if (level === null) return textValue(null)
  return { kind: 'text', text: level, tone: TONES[level] ?? 'plain', ...(score !== null && { note: String(score) }) }
}

function severityValue({ level, score, isWithdrawn, isRead }: Omit<Said, 'summary' | 'packages'>): Value {
  if (!isRead) return textValue('not read')
  return isWithdrawn ? textValue('withdrawn') : levelValue(level, score)
}

/** What the highest severity does not cover. */
function unreadNotes(records: readonly Said[]): string[] {
  const unread = records.filter(({ isRead }) => !isRead).length
  return unread === 0
    ? []
    : [`${counted(unread, 'record')} too large or not readable as JSON: what is said of severity leaves them out`]
}

function recordsTable(records: readonly (FoundRecord & Said)[], notes: readonly string[]): Table {
  return {
    kind: 'table',
    title: 'records',
    notes,
    columns: ['record', 'severity', 'packages', 'summary', 'modified', 'found by'],
    rows: records.map(({ id, modified, by, level, score, summary, packages, isWithdrawn, isRead }) => [
      codeValue(id, { kind: 'record', name: id }),
      severityValue({ level, score, isWithdrawn, isRead }),
      packages.map((one) => textValue(one, 300)),
      textValue(summary, 200),
      textValue(modified),
      textValue(by),
    ]),
    empty: NO_RECORD,
  }
}

/** Returns why there may be more records than are looked at. */
function whyFewer({ own, others }: Omit<FoundByCve, 'removed'>): string[] {
  if (others === null) return [NO_INDEX]
  return own.length + others.length > MOST.records
    ? [`more than ${MOST.records} records name it: the search shows all`]
    : []
}

const NO_INDEX = 'which records name it as another id is not known now: the index of ids is not there'
const NO_RECORD = 'no record of this mirror has this id, or names it'

/** Returns why a record may be missing here; null where nothing says so. */
function whyNoRecord({ reads }: PageCall, id: string): string | null {
  if (reads.snapshots.readSnapshot('osv') === null) return 'no OSV records are mirrored yet'
  return whyOutOfScope(reads, id) ?? findMissingNamed(reads, id)?.message ?? null
}

function notKnown(what: string, why: string): Part {
  return { kind: 'notice', level: 'warning', title: `${what} are not known`, text: why }
}

/** What takes a key: patches and tickets, VEX, and the tags with one of the records. */
function privateBlocks(call: PageCall, id: string, records: FoundByCve): Block[] {
  if (call.reads.snapshots.readSnapshot('catalog') === null) return []
  return [...patchBlocks(call, id), ...answerBlocks(call, { parts: [vexPart(call, id), tagPart(call, id, records)] })]
}

/** Says that more is shown to clients with a key, where this mirror has more. */
function signIn({ reads, ui }: PageCall): Block[] {
  if (reads.snapshots.readSnapshot('catalog') === null) return []
  const text = 'Patches, tickets, VEX and mirrored tags are shown to clients with a local key.'
  return [{ kind: 'notice', tone: 'plain', title: 'More about it', text, links: [link('Sign in', ui('sign-in'))] }]
}

function patchBlocks(call: PageCall, id: string): Block[] {
  try {
    const filter = { cve_id: id }
    const page = readListPage(call, '/v1/patches', new URLSearchParams(filter), '')
    const about = page.total === null ? [] : [counted(page.total, 'patch', 'patches')]
    const table = { ...patchesTable(page), title: 'patches and tickets', about, empty: NO_PATCH }
    return listBlocks(call, 'patches', table, filter)
  } catch (error) {
    if (!(error instanceof MirrorError) || !['not_found', 'not_ready', 'stale'].includes(error.code)) throw error
    return answerBlocks(call, { parts: [notKnown('patches and tickets', error.message)] })
  }
}

const NO_PATCH = 'no patch of the mirrored list names it'

/** A statement about the vulnerability, and the document that has it. */
interface Stated {
  readonly statement: Statement
  readonly document: VexDocument
}

/** What the mirrored VEX says about a vulnerability, and how much of the VEX was looked at. */
interface FoundVex {
  readonly stated: readonly Stated[]
  readonly documents: number
  readonly unread: number
  /** Those of which what rules out is left out, because their signature is not verified. */
  readonly unbelieved: number
}

function vexPart(call: PageCall, id: string): Part {
  try {
    call.refuseOld('catalog')
  } catch (error) {
    if (error instanceof MirrorError && error.code === 'stale') return notKnown('VEX statements', error.message)
    throw error
  }
  const found = findVex(call.reads.vex, id)
  const nameOf = createTagNames(call.reads)
  const isPartial = call.reads.snapshots.readSnapshot('catalog')?.whole === false
  return {
    kind: 'table',
    title: 'VEX statements',
    notes: [...lookedAt(found), ...(isPartial ? [PARTIAL] : [])],
    columns: ['status', 'product', 'of tag', 'reason'],
    rows: found.stated.slice(0, MOST.statements).map((one) => statementRow(one, nameOf)),
    of: found.stated.length,
    empty: 'no statement of these documents is about it',
  }
}

const PARTIAL = 'the catalog is partial: VEX that could not be fetched is not among them'

/** Says how many documents were looked at, and of how many what they say is not known. */
function lookedAt({ documents, unread, unbelieved }: FoundVex): string[] {
  const looked = `${counted(documents - unread, 'mirrored VEX document was', 'mirrored VEX documents were')} looked at`
  const unknown = `what ${counted(unread, 'document says', 'documents say')} is not known: not readable, or too long to read for a page`
  return [looked, ...(unread === 0 ? [] : [unknown]), ...(unbelieved === 0 ? [] : [withoutRulings(unbelieved)])]
}

function withoutRulings(documents: number): string {
  return `what ${counted(documents, 'document rules', 'documents rule')} out is left out, because no signature of that is verified`
}

function statementRow({ statement, document }: Stated, nameOf: (id: string) => string | null): Table['rows'][number] {
  const { status, justification, note, products } = statement
  const names = products.flatMap((one) => one.names.map(({ purl }) => purl)).filter((purl) => purl !== '')
  const more = names.length > MOST.products ? [textValue(`and ${names.length - MOST.products} more`)] : []
  return [
    textValue(status.replaceAll('_', ' ') || 'not said'),
    [...names.slice(0, MOST.products).map((name) => codeValue(clip(name, 200))), ...more],
    (document.tags ?? [])
      .slice(0, MOST.products)
      .map((tag) => linkValue(clip(nameOf(tag) ?? tag, 200), { kind: 'tag', name: tag })),
    textValue([justification.replaceAll('_', ' '), note].filter((one) => one !== '').join(': '), 300),
  ]
}

/** Finds the statements about a vulnerability: that one of its names is this, in upper or lower case. */
function findVex(reads: VexReads, id: string): FoundVex {
  const wanted = id.toUpperCase()
  const stated: Stated[] = []
  let unread = 0
  let unbelieved = 0
  let bytes = 0
  const documents = reads.listVexDocuments()
  for (const document of documents) {
    bytes += document.size
    const statements = bytes > MOST_VEX_BYTES ? null : readVexStatements(reads, document)
    if (statements === null) unread++
    else if (tagsBelieving(document) === null) unbelieved++
    for (const statement of statements ?? [])
      if (statement.vulnerabilities.some((one) => one.toUpperCase() === wanted)) stated.push({ statement, document })
  }
  return { stated, documents: documents.length, unread, unbelieved }
}

/** The mirrored tags with one of the records among their findings: of records that are not known here nothing is said. */
function tagPart({ config, reads, refuseOld }: PageCall, id: string, records: FoundByCve): Part {
  const { own, others, removed } = records
  const ids = [...own, ...(others ?? [])].slice(0, MOST.records).map(({ id }) => id)
  if (ids.length === 0 && removed.length === 0)
    return notKnown('mirrored tags with it', 'findings are made of records, and none is known here')
  const refuse = (): void => {
    for (const source of ['osv', 'catalog'] as const) refuseOld(source)
  }
  const part = tagsPart(readRecordsTags(config, reads, ids, refuse, removed), MOST.tags, id)
  const of = `by ${counted(ids.length, 'record', 'records')} that this page names`
  return part.kind === 'table' ? { ...part, notes: [of, ...whyFewer(records), ...(part.notes ?? [])] } : part
}
