import { readOrigin } from '../../../server/http/origin.ts'
import { whyOutOfScope } from '../../../server/feeds/osv.ts'
import { datesInWords } from '../../../server/lookup/dates.ts'
import { findMissingRecord } from '../../../server/lookup/missing-record.ts'
import { recordNamed } from '../../../server/lookup/named.ts'
import { MirrorError } from '../../../base/errors.ts'
import { clip, counted } from '../../../base/text.ts'
import { eachObject, fieldsOf, jsonTextOf } from '../../../base/json/objects.ts'
import { contentOf } from '../../../store/database/gzip.ts'
import type { Block } from '../blocks.ts'
import { type Cell, code, grouped, link, outside, plain, size, state, time } from '../../../answers/cells.ts'
import { type PageCall, type PageView, numberOf, parameter } from '../page.ts'
import { affectedRow, severityCells } from './affected.ts'
import { recordTagsBlocks } from './record-tags.ts'

type Fields = ReturnType<typeof fieldsOf>

/** Rows of affected packages on a page; of references and other ids in all. */
const PAGE = 100
const MOST_REFERENCES = 200
const MOST_IDS = 500
/** Largest record that is shown as a page, bytes. */
const MAX_BYTES = 16 * 2 ** 20

/** Loads the page of one OSV record. */
export function loadRecord(call: PageCall): PageView {
  const asked = parameter(call.query, 'id')
  const id = recordNamed(call.reads.osv, call.query.get('id') ?? '') ?? asked
  const stored = call.reads.osv.readRecord(id)
  if (stored === null) return missingView(call, id)
  const fields = stored.size > MAX_BYTES ? null : parse(contentOf(stored.body, stored.size))
  return {
    title: id,
    blocks: [
      ...(fields === null ? [UNREADABLE] : contentBlocks(call, id, fields)),
      { kind: 'facts', title: 'On this mirror', rows: storedRows(call, id, stored) },
      ...datesBlocks(call, id),
      ...recordTagsBlocks(call, id),
      historyBlock(call, id),
    ],
  }
}

const UNREADABLE: Block = {
  kind: 'notice',
  tone: 'warn',
  title: 'This record is not shown here',
  text: 'It is larger than 16 MiB, or is no JSON object. Its bytes are served as upstream has them.',
}

function parse(content: Buffer): Fields | null {
  try {
    const value: unknown = JSON.parse(jsonTextOf(content))
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? fieldsOf(value) : null
  } catch {
    return null
  }
}

function contentBlocks(call: PageCall, id: string, record: Fields): Block[] {
  const { summary, details, withdrawn } = record
  const { now } = call
  const blocks: Block[] = []
  if (typeof withdrawn === 'string')
    blocks.push({
      kind: 'notice',
      tone: 'warn',
      title: 'This record is withdrawn',
      text: clip(`since ${withdrawn}`),
    })
  if (typeof summary === 'string') blocks.push({ kind: 'text', text: clip(summary, 2000) })
  const severity = severityCells(record)
  const rows: [string, Cell | Cell[]][] = [
    ['published', dateCell(record['published'], now)],
    ['modified', dateCell(record['modified'], now)],
    ...(severity.length === 0 ? [] : ([['severity', severity]] as [string, Cell[]][])),
    ...(['aliases', 'upstream', 'related'] as const).flatMap((name): [string, Cell[]][] => {
      const ids = idCells(call, record[name])
      return ids.length === 0 ? [] : [[name, ids]]
    }),
  ]
  blocks.push({ kind: 'facts', rows }, affectedBlock(call, id, record['affected']))
  if (typeof details === 'string' && details !== '') blocks.push({ kind: 'text', title: 'Details', text: details })
  return [...blocks, referencesBlock(record['references'])]
}

/** A date of upstream's may be any text. */
function dateCell(value: unknown, now: number): Cell {
  return typeof value === 'string' && value.length < 40 ? time(value, now) : plain(value)
}

function idCells({ ui }: PageCall, value: unknown): Cell[] {
  const list: unknown[] = Array.isArray(value) ? value : []
  const shown = list.slice(0, MOST_IDS).filter((one) => typeof one === 'string')
  const cells = shown.map((one) => code(one, ui('search', { q: one.slice(0, 500) })))
  return list.length > MOST_IDS ? [...cells, plain(`and ${grouped(list.length - MOST_IDS)} more`)] : cells
}

function affectedBlock(call: PageCall, id: string, value: unknown): Block {
  const list: unknown[] = Array.isArray(value) ? value : []
  const at = numberOf(call.query, 'at') ?? 0
  const next = at + PAGE
  return {
    kind: 'table',
    title: 'Affected packages',
    ...(list.length > PAGE && {
      note: `${grouped(at + 1)} to ${grouped(Math.min(next, list.length))} of ${grouped(list.length)}`,
    }),
    columns: ['Ecosystem', 'Package', 'Affected', 'Fixed in'],
    rows: list.slice(at, next).map((one) => affectedRow(call, one)),
    empty: 'This record names no package.',
    first: at > 0 ? call.ui('record', { id }) : null,
    next: next < list.length ? call.ui('record', { id, at: next }) : null,
  }
}

function referencesBlock(value: unknown): Block {
  const list = [...eachObject(value)]
  return {
    kind: 'table',
    title: 'References',
    ...(list.length > MOST_REFERENCES && {
      note: `The first ${MOST_REFERENCES} of ${grouped(list.length)}.`,
    }),
    columns: ['Kind', 'Address'],
    rows: list.slice(0, MOST_REFERENCES).map(({ type, url }) => [plain(type), outside(url)]),
    empty: 'This record has no references.',
  }
}

type Stored = NonNullable<ReturnType<PageCall['reads']['osv']['readRecord']>>

function storedRows(call: PageCall, id: string, stored: Stored): [string, Cell | Cell[]][] {
  const { reads, now, ui, root } = call
  const views = call.views((open) => open.listViewsOf(id))
  return [
    ['raw JSON', code(`${encodeURIComponent(id)}.json`, root(`/external/osv/${encodeURIComponent(id)}.json`))],
    ['size', size(stored.size)],
    ['SHA-256', code(stored.sha256.toString('hex'))],
    ['last modified', time(stored.changed * 1000, now)],
    ['as of', time(readOrigin(reads, 'osv')?.asOf ?? null, now)],
    [
      'views that contain it',
      views === null
        ? plain('unknown: the views are not built')
        : views.map((name) => link(name, ui('packages', { ecosystem: name }))),
    ],
  ]
}

/** Changes of a record that are shown. */
const MOST_CHANGES = 50

function historyBlock({ reads, now, ui, config }: PageCall, id: string): Block {
  const changes = reads.changes.listChangesOf('osv', id, MOST_CHANGES)
  return {
    kind: 'table',
    title: 'History on this mirror',
    note: `As far as the log of changes reaches back: ${counted(config.data.changeDays, 'day')} (data.changeDays), or less.`,
    columns: ['Change', 'When', 'Snapshot'],
    rows: changes.map(({ change, publishedAt, snapshot }) => [
      plain(change === 'added' ? 'first seen' : change),
      time(publishedAt, now),
      code(snapshot.slice(0, 12), ui('changes', { source: 'osv', since: snapshot })),
    ]),
    empty:
      'No change of it is in the log: it came with the first snapshot, or its changes are older than data.changeDays.',
  }
}

/** Since when a record is known here; upstream's own dates are with its content. */
function datesBlocks({ reads, now }: PageCall, id: string): Block[] {
  const dates = reads.dates.readDates(id)
  if (dates === null) return []
  const rows = datesInWords(dates).map(([name, at, note]): [string, Cell] => {
    const cell = at === null ? plain(note) : time(at, now)
    const more = [cell.note, at === null ? '' : note].filter((one) => one !== undefined && one !== '')
    return [name, { ...cell, ...(more.length > 0 && { note: more.join(', ') }) }]
  })
  return [{ kind: 'facts', title: 'Since when', rows }]
}

/** A record that is not stored: removed, missing, or of another id. */
function missingView(call: PageCall, id: string) {
  const { reads, now, ui } = call
  const tombstone = reads.osv.readTombstone(id)
  if (tombstone !== null) {
    const removed: Block = {
      kind: 'facts',
      rows: [
        ['state', state('removed: upstream does not list it any more', 'warn')],
        ['removed', time(reads.dates.readDates(id)?.removedAt ?? tombstone.removedAt, now)],
      ],
    }
    return { title: id, status: 404, blocks: [removed, ...datesBlocks(call, id), historyBlock(call, id)] }
  }
  const dates = datesBlocks(call, id)
  const outside = whyOutOfScope(reads, id)
  const missing = outside === null ? findMissingRecord(reads, id) : null
  const message = outside ?? missing?.message ?? `this mirror has no record ${clip(id)}`
  if (id === '' || reads.snapshots.readSnapshot('osv') === null)
    throw new MirrorError(
      id === '' ? 'bad_request' : 'not_ready',
      id === '' ? 'name a record: ?id=…' : 'no OSV records are mirrored yet',
    )
  const found: Block = {
    kind: 'notice',
    tone: 'warn',
    title: 'Not found',
    text: message,
    links: [link('Search for it', ui('search', { q: id }))],
  }
  return { title: id, status: 404, blocks: [found, ...dates] }
}
