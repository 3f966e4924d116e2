import { findChanges, isPrivateSource } from '../../../api/followers/changes.ts'
import { type SincePlace, placesSince } from '../../../api/followers/since.ts'
import { MirrorError } from '../../../core/errors.ts'
import { SINCE_FORMS, readSince } from '../../../core/time.ts'
import { type SourceName, SOURCES } from '../../../domain/sources.ts'
import type { LoggedSnapshot } from '../../../store/changes/log.ts'
import type { Block } from '../../blocks.ts'
import { type Cell, clip, code, count, link, plain, state, time } from '../../cells.ts'
import { type Page, type PageCall, type PageView, numberOf, parameter } from '../../page.ts'
import { selectOf } from '../runs/list.ts'
import { asksForPrivate, askedSources, changeWords } from './log.ts'

/** Rows on a page. */
const PAGE = 100

/** The page of what changed: the published snapshots, one of them by name, or everything since a date or a snapshot. */
export const CHANGE_LIST: Page = {
  path: 'changes',
  label: 'Changes',
  access: 'open',
  usesStatus: false,
  isLog: true,
  isPrivate: asksForPrivate,
  parameters: {
    source: 'A source; catalog and identity take a key.',
    since:
      'A snapshot that was served or its number, or a time in UTC: 2026-01-31, with a time, yesterday, monday, 7d.',
    entry: 'The number of a published snapshot in the log.',
    before: 'Published snapshots with smaller numbers only.',
    after: 'The position where the page begins, from the page before.',
  },
  load(call) {
    const entry = numberOf(call.query, 'entry')
    const since = parameter(call.query, 'since')
    const view = entry !== null ? entryView(call, entry) : since === '' ? logView(call) : sinceView(call, since) // prettier-ignore
    const source = parameter(call.query, 'source')
    const alternates = [
      { type: 'application/atom+xml', title: 'Changes (Atom)', href: call.ui('changes.atom', { source }) },
      { type: 'application/feed+json', title: 'Changes (JSON Feed)', href: call.ui('changes.json', { source }) },
    ] // prettier-ignore
    return { ...view, alternates }
  },
}

function formBlock(call: PageCall): Block {
  const { query, ui, signedIn } = call
  const known = SOURCES.filter((source) => signedIn || !isPrivateSource(source))
  const since = parameter(query, 'since')
  const hint = 'a date, monday, 7d, or a snapshot'
  return {
    kind: 'form',
    label: 'What changed',
    action: ui('changes'),
    fields: [
      selectOf('source', 'Source', known, parameter(query, 'source')),
      { name: 'since', label: 'Since', value: since, hint },
    ],
    button: 'Show',
  }
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
      ['to follow', [link('Atom', ui('changes.atom', { source })), link('JSON Feed', ui('changes.json', { source }))]], // prettier-ignore
      ...sources.flatMap((one) => beginning(call, one)),
      ['entries are kept for', plain(`${call.config.data.changeDays} days (data.changeDays), or less where very much changed`)], // prettier-ignore
    ],
  }
  const table: Block = {
    kind: 'table',
    title: 'Published snapshots, newest first',
    columns: ['Published', 'Source', 'Changes', 'Records', 'Snapshot'],
    rows: shown.map((row) => [
      time(row.publishedAt, now),
      plain(row.source),
      link(changeWords(row), ui('changes', entryParameters(row))),
      count(row.records),
      code(row.snapshot.slice(0, 12), ui('changes', { source: row.source, since: row.snapshot })),
    ]),
    empty: 'No snapshot is in the log.',
    first: before === null ? null : ui('changes', { source }),
    next,
  }
  return { title: 'Changes', blocks: [formBlock(call), feeds, table] }
}

/** Says since when the log has a source; nothing where it has none of it. */
function beginning({ reads, now }: PageCall, source: SourceName): [string, Cell][] {
  const oldest = reads.changes.readNextLogged(source, 0)
  return oldest === null ? [] : [[`log of ${source} since`, time(oldest.publishedAt, now)]]
}

/** A private source is part of the address, so that a client without a key is asked for one. */
function entryParameters({ id, source }: LoggedSnapshot): Record<string, string | number> {
  return isPrivateSource(source) ? { source, entry: id } : { entry: id }
}

/** The names that one published snapshot changed. */
function entryView(call: PageCall, id: number): PageView {
  const { query, reads, ui, now, signedIn } = call
  const row = reads.changes.readLogged(id)
  if (row === null || (isPrivateSource(row.source) && !signedIn)) throw new MirrorError('not_found', `the log has no entry ${id}: old ones are deleted (data.changeDays), and those of private sources take a key`) // prettier-ignore
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
      ['changes', plain(changeWords(row))],
      ['snapshot', code(row.snapshot)],
      ['the one before', row.previous === null ? plain(null) : code(row.previous)],
    ],
  }
  const table: Block = {
    kind: 'table',
    title: 'What changed',
    columns: ['Change', 'Name'],
    rows: shown.map(({ name, change }) => [changeCell(change), nameCell(call, row.source, name)]),
    empty: row.complete ? 'No name changed.' : 'No names are stored: everything may have changed.',
    first: after === '' ? null : ui('changes', parameters),
    next: names.length > PAGE ? ui('changes', { ...parameters, after: shown.at(-1)?.name }) : null,
  }
  return { title: `${row.source}: ${changeWords(row)}`, blocks: [facts, table] }
}

/** Everything that changed since a date or a snapshot, each name once. */
function sinceView(call: PageCall, since: string): PageView {
  const { query, reads, ui } = call
  const place = placeOf(call, since)
  const form = formBlock(call)
  const source = place?.source ?? (parameter(query, 'source') || 'osv')
  const title = `Changes of ${source} since ${clip(since, 64)}`
  const after = parameter(query, 'after')
  const asked = { after: after === '' ? null : after, limit: PAGE }
  const found = place === null ? null : findChanges(reads, place, place.snapshot, asked)
  if (found === null) return { title, status: 404, blocks: [form, { kind: 'facts', rows: beginning(call, SOURCES.find((one) => one === source) ?? 'osv') }, UNKNOWN] } // prettier-ignore
  if (!found.complete) return { title, blocks: [form, EVERYTHING] }
  const names = found.changes.map((one) => ({ ...one, name: 'id' in one ? one.id : one.path }))
  const table: Block = {
    kind: 'table',
    title: 'Names that differ, each once',
    note: `From snapshot ${found.from.slice(0, 12)} to ${found.to.slice(0, 12)}.`,
    columns: ['Change', 'Name', 'Last in snapshot'],
    rows: names.map(({ change, name, snapshot }) => [
      changeCell(change),
      nameCell(call, found.source, name),
      code(snapshot.slice(0, 12)),
    ]),
    empty: 'Nothing changed since then.',
    first: after === '' ? null : ui('changes', { source, since }),
    next: found.next === null ? null : ui('changes', { source, since: place?.snapshot, after: found.next }), // prettier-ignore
  }
  return { title, blocks: [form, table] }
}

const UNKNOWN: Block = {
  kind: 'notice',
  tone: 'warn',
  title: 'The log does not reach back that far',
  text: 'Everything may have changed since then: read everything, and follow from there. The log is kept for data.changeDays days, and only the last part of it where very much changed.',
}

const EVERYTHING: Block = {
  kind: 'notice',
  tone: 'warn',
  title: 'Everything may have changed',
  text: 'More changed since then than the log lists by name: read everything, and follow from there.',
}

/** Returns where the log continues from a time or a snapshot; null when it does not know it. Throws `bad_request`. */
function placeOf(call: PageCall, since: string): SincePlace | null {
  const { reads, query, now } = call
  const wanted = SOURCES.find((one) => one === parameter(query, 'source')) ?? null
  const allowed = askedSources(call)
  if (readSince(since, now) === null && !/^(?:[0-9a-f]{12,64}|\d{1,9})$/.test(since))
    throw new MirrorError('bad_request', `since is none of: a snapshot (12 to 64 hexadecimal digits) or its number, ${SINCE_FORMS}`) // prettier-ignore
  const places = placesSince(reads, since, wanted, now).filter(({ source }) =>
    allowed.includes(source),
  )
  const [place, another] = places
  if (another !== undefined && wanted === null)
    throw new MirrorError('bad_request', 'since is a snapshot of two sources: choose one')
  return place ?? null
}

const TONES = { added: 'good', changed: 'plain', removed: 'warn' } as const

function changeCell(change: keyof typeof TONES): Cell {
  return state(change, TONES[change])
}

/** A record leads to its page, a path to what the mirror serves there. */
function nameCell({ ui, root }: PageCall, source: SourceName, name: string): Cell {
  if (source === 'osv' && name.length <= 500) return code(name, ui('record', { id: name }))
  return /^\/(?![/\\])[^\p{Cc}]*$/u.test(name) ? code(name, root(name)) : code(name)
}
