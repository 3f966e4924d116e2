import { isPrivateSource } from '../../../../base/domain/sources.ts'
import { createDetailer } from '../../../../server/followers/details.ts'
import { MirrorError } from '../../../../base/errors.ts'
import { counted } from '../../../../base/text.ts'
import type { ChangedName, LoggedSnapshot } from '../../../../store/changes/log.ts'
import { type NamedChange, changedNames } from '../../../lookup/change-tables.ts'
import type { Block } from '../../blocks.ts'
import { listBlocks } from '../../links.ts'
import { type Cell, code, count, link, plain, state, time } from '../../../lookup/answers/cells.ts'
import { type PageCall, type PageView, numberOf, parameter } from '../../page.ts'
import { createLeft } from '../../../../store/changes/left.ts'
import { askedSources, changeWords, doubtWords, doubtsIn, labelerOf } from './log.ts'
import { SHOWN, beginning, formBlock } from './parts.ts'
import { sinceView } from './since.ts'

/** Rows on a page. */
const PAGE = 100

/** Loads the page of what changed: the published snapshots, one of them by name, or everything since a date or a snapshot. */
export function loadChangeList(call: PageCall): PageView {
  const entry = numberOf(call.query, 'entry')
  const [since, source, purl, tag] = ['since', 'source', 'purl', 'tag'].map((name) => parameter(call.query, name))
  const isList = entry === null && since === '' && purl === '' && tag === ''
  const view = viewOf(call, entry, isList)
  const href = call.ui('changes.atom', { source, purl, tag })
  return { ...view, alternates: [{ type: 'application/atom+xml', title: 'Changes', href }] }
}

function viewOf(call: PageCall, entry: number | null, isList: boolean): PageView {
  if (entry !== null) return entryView(call, entry)
  return isList ? logView(call) : sinceView(call)
}

function logView(call: PageCall): PageView {
  const { query, reads, ui, now } = call
  const sources = askedSources(call)
  const source = parameter(query, 'source')
  const before = numberOf(query, 'before')
  const found = reads.changes.listLoggedBefore(sources, before ?? Number.MAX_SAFE_INTEGER, PAGE + 1)
  const shown = found.slice(0, PAGE)
  const next = found.length > PAGE ? ui('changes', { source, before: shown.at(-1)?.id }) : null
  const feeds: Block = {
    kind: 'facts',
    rows: [
      ['to follow', [link('Atom', ui('changes.atom', { source }))]],
      ...sources.flatMap((one) => beginning(call, one)),
      [
        'entries are kept for',
        plain(`${counted(call.config.data.historyDays, 'day')} (data.historyDays), or less where very much changed`),
      ],
    ],
  }
  const table: Block = {
    kind: 'table',
    title: 'Published snapshots, newest first',
    columns: ['Published', 'Source', 'Changes', 'Records', 'Snapshot'],
    rows: shown.map((row) => [
      time(row.publishedAt, now),
      plain(row.source),
      [link(changeWords(call.reads, row), ui('changes', entryParameters(row))), ...doubtCells(call, row)],
      count(row.records),
      code(row.snapshot.slice(0, 12), ui('changes', { source: row.source, since: row.snapshot })),
    ]),
    empty: 'No snapshot is in the log.',
    first: before === null ? null : ui('changes', { source }),
    next,
  }
  return { title: 'Changes', blocks: [formBlock(call), feeds, table] }
}

/** Says what the guard doubted of a snapshot; nothing where it doubted nothing. */
function doubtCells({ reads }: PageCall, row: LoggedSnapshot): Cell[] {
  return doubtWords(reads, row).map((text) => state(text, 'warn'))
}

/** A private source is part of the address, so that a client without a key is asked for one. */
function entryParameters({ id, source }: LoggedSnapshot): Record<string, string | number> {
  return isPrivateSource(source) ? { source, entry: id } : { entry: id }
}

/** The names that one published snapshot changed. */
function entryView(call: PageCall, id: number): PageView {
  const { query, reads, now, signedIn } = call
  const row = reads.changes.readLogged(id)
  if (row === null || (isPrivateSource(row.source) && !signedIn))
    throw new MirrorError(
      'not_found',
      `the log has no entry ${id}: old ones are deleted (data.historyDays), and those of private sources take a key`,
    )
  const after = parameter(query, 'after')
  const names = reads.changes.listNames(id, PAGE + 1, after)
  const shown = names.slice(0, PAGE)
  const parameters = entryParameters(row)
  const facts: Block = {
    kind: 'facts',
    rows: [
      ['source', plain(row.source)],
      ['published', time(row.publishedAt, now)],
      ["upstream's date", time(row.asOf, now)],
      ['changes', [plain(changeWords(call.reads, row)), ...doubtCells(call, row)]],
      ['snapshot', code(row.snapshot)],
      ['the one before', row.previous === null ? plain(null) : code(row.previous)],
    ],
  }
  const describe = row.source === 'osv' ? describerOf(call, row) : labelerOf(call, row.source)
  const next = names.length > PAGE ? shown.at(-1)?.name : undefined
  const named = shown.map((one) => ({ name: one.name, change: one.change, ...describe(one) }))
  const table = changedNames(
    row.source,
    named,
    { title: 'what changed', empty: emptyText(row), total: null, ...(next !== undefined && { next }) },
    SHOWN,
  )
  return {
    title: `${row.source}: ${changeWords(call.reads, row)}`,
    blocks: [facts, ...listBlocks(call, 'changes', table, parameters)],
  }
}

function emptyText({ previous, complete }: LoggedSnapshot): string {
  if (previous === null) return 'This is the first snapshot of the source: everything in it is new.'
  return complete ? 'No name changed.' : 'No names are stored: everything may have changed.'
}

/** Creates what says how a snapshot changed a record, of as many records as one page compares. */
function describerOf({ reads }: PageCall, row: LoggedSnapshot) {
  const { id, snapshot, publishedAt } = row
  const detailer = createDetailer(reads, id, null)
  const doubted = doubtsIn(reads, row)
  const left = createLeft(reads)
  return (one: Pick<ChangedName, 'name' | 'change'>): Pick<NamedChange, 'words' | 'doubts' | 'cause'> => {
    const words = detailer.isFull()
      ? ['not compared: this page has much content']
      : detailer.describe({ ...one, log: id, snapshot, publishedAt })?.words
    const cause = one.change === 'removed' ? (left(one.name, snapshot) ?? undefined) : undefined
    return { words, cause, doubts: doubted.get(one.name) }
  }
}
