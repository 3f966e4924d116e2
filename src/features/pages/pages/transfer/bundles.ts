import type { BoxesStatus } from '../../../../base/reports/transfer.ts'
import type { ExportedState, ImportedBundle } from '../../../../store/replication/ledger.ts'
import type { Block } from '../../blocks.ts'
import { type Cell, code, count, plain, size, state, time } from '../../../lookup/answers/cells.ts'
import { type PageCall, type PageView, numberOf } from '../../page.ts'

/** Exported and imported bundles on a page. */
const PAGE = 50

/** Loads the page of signed bundles: both folders, what was exported and what was imported. */
export function loadBundles(call: PageCall): PageView {
  const { outbox = null, inbox = null } = call.status?.boxes ?? {}
  return {
    title: 'Bundles',
    blocks: [
      {
        kind: 'facts',
        rows: [['identity of this mirror', code(call.reads.ledger.readIdentity())]],
      },
      { kind: 'facts', title: 'Outbox', rows: outboxRows(call, outbox) },
      { kind: 'facts', title: 'Inbox', rows: inboxRows(call, inbox) },
      ...(inbox === null ? [] : [waitingTable(inbox)]),
      exportTable(call),
      importTable(call),
    ],
  }
}

type Rows = [string, Cell | Cell[]][]

function outboxRows({ now }: PageCall, outbox: BoxesStatus['outbox']): Rows {
  if (outbox === null) return [['state', plain('off: no folder is set (bundle.outbox)')]]
  const { last, exporting, problem, reason } = outbox
  const good = state(exporting ? 'an export is running' : 'ready', 'good')
  const bad = state(`the last export failed: ${problem ?? ''}`, 'bad')
  return [
    ['state', problem === null ? good : bad],
    ...(reason === null ? [] : ([['why', plain(reason, 1000)]] satisfies Rows)),
    [
      'last bundle',
      last === null
        ? plain('none since the start')
        : [plain(`${last.kind} ${last.sequence}`), code(last.file), size(last.bytes), time(last.at, now)],
    ],
    ...(last === null || last.receipts === null ? [] : ([['receipts', plain(last.receipts, 1000)]] satisfies Rows)),
  ]
}

function inboxRows({ now }: PageCall, inbox: BoxesStatus['inbox']): Rows {
  if (inbox === null) return [['state', plain('off: bundle.inbox is not set')]]
  const { imported, superseded, refused, lastRefused, problem } = inbox
  return [
    ['state', problem === null ? state('ready', 'good') : state(`it cannot be read: ${problem}`, 'bad')],
    ['since the start', plain(`${imported} imported, ${superseded} superseded, ${refused} refused`)],
    [
      'last refused',
      lastRefused === null
        ? plain('none since the start')
        : [code(lastRefused.file), plain(lastRefused.why, 1000), time(lastRefused.at, now)],
    ],
  ]
}

function waitingTable({ waiting }: NonNullable<BoxesStatus['inbox']>): Block {
  return {
    kind: 'table',
    title: 'Waiting in the inbox',
    columns: ['File', 'What it waits for'],
    rows: waiting.slice(0, PAGE).map(({ file, why }) => [code(file), plain(why, 1000)]),
    empty: 'No bundle waits.',
  }
}

function exportTable({ reads, query, ui, now }: PageCall): Block {
  const before = numberOf(query, 'before')
  const found = reads.ledger.listNewestExports(before ?? Number.MAX_SAFE_INTEGER, PAGE + 1)
  const shown = found.slice(0, PAGE)
  const row = ({ sequence, digest, sources, exportedAt, kept }: ExportedState): Cell[] => [
    count(sequence),
    time(exportedAt, now),
    code(digest.slice(0, 16)),
    plain(Object.keys(sources).join(', ')),
    plain(kept ? 'yes' : 'no: its summary is deleted'),
  ]
  return {
    kind: 'table',
    title: 'Exported states',
    columns: ['Sequence', 'Exported', 'State digest', 'Sources', 'A delta can build on it'],
    rows: shown.map(row),
    empty: 'This mirror has exported nothing.',
    first: before === null ? null : ui('bundles'),
    next: found.length > PAGE ? ui('bundles', { before: shown.at(-1)?.sequence }) : null,
  }
}

function importTable({ reads, now }: PageCall): Block {
  const row = (one: ImportedBundle): (Cell | Cell[])[] => [
    [plain(`${one.kind} ${one.sequence}`), ...(one.rollback ? [state('older than what was stored', 'warn')] : [])],
    time(one.importedAt, now),
    time(one.asOf, now),
    code(one.digest.slice(0, 16)),
    plain(Object.keys(one.sources).join(', ')),
    code(one.mirror.slice(0, 12)),
    one.keyId === null ? state('unsigned', 'warn') : code(one.keyId),
  ]
  return {
    kind: 'table',
    title: `The last ${PAGE} imported bundles`,
    columns: ['Bundle', 'Imported', 'As of', 'State digest', 'Sources', 'From mirror', 'Signed by'],
    rows: reads.ledger.listImports(PAGE).map(row),
    empty: 'This mirror has imported nothing.',
  }
}
