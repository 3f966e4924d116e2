import type { Config } from '../../config/schema.ts'
import { sha256Hex } from '../../base/digest.ts'
import { MirrorError } from '../../base/errors.ts'
import { counted, wholeNumber } from '../../base/text.ts'
import { type InboxRow, type InboxState, createInbox, createInboxReads } from '../../store/webhooks/inbox.ts'
import { changeInbox, nameOf, shownRow, withDecisions, withInbox } from './inbox-rows.ts'
import { type GlobalOptions, isServed, print, settings } from '../context.ts'
import { table, timeOf, visible } from '../output.ts'
import { duration } from '../../base/time.ts'

/** Options of `patchmirror webhooks inbox`. */
interface InboxOptions extends GlobalOptions {
  state?: string
  limit?: string
  body?: boolean
  json?: boolean
}

const STATES: readonly InboxState[] = ['pending', 'done', 'ignored', 'dead']

/** `patchmirror webhooks inbox [ID]`: the newest deliveries, of one state or of all; or all about one. */
export function inboxCommand(id: string | undefined, options: InboxOptions): number {
  if (id !== undefined) return showDelivery(id, options)
  if (options.body === true) throw new MirrorError('usage', '--body is of one delivery: give its id')
  const state = stateOf(options.state)
  const rows = listRows(state, options)
  if (options.json === true) print(JSON.stringify(rows.map(shownRow), null, 2))
  else if (rows.length === 0) print(state === null ? NONE : `no deliveries are ${state}`)
  else if (state === 'dead') printDeadLetters(rows)
  else print(table(HEAD, rows.map(cells)))
  return 0
}

const NONE = 'no delivery is stored; they are kept for 30 days'

/** Prints what was given up, and why. */
function printDeadLetters(rows: readonly InboxRow[]): void {
  const lines = rows.map((row) => [
    String(row.id),
    timeOf(row.receivedAt),
    row.type ?? '-',
    nameOf(row.target),
    row.reason ?? '',
  ])
  print(table(['id', 'received', 'type', 'names', 'why'], lines))
  print('\nagain: patchmirror webhooks resolve --replay ID, or --all')
  print('seen: patchmirror webhooks resolve --dismiss ID, or --all')
}

const HEAD = ['id', 'received', 'state', 'type', 'names', 'visible after', 'failed tries', 'note']

function cells(row: InboxRow): string[] {
  const { id, receivedAt, state, type, target, visibleAt, attempts } = row
  return [
    String(id),
    timeOf(receivedAt),
    state,
    type ?? '-',
    nameOf(target),
    visibleAt === null ? '-' : duration((visibleAt - receivedAt) / 1000),
    String(attempts),
    noteOf(row),
  ]
}

function noteOf({ state, reason, dueAt, attempts, refreshedAt }: InboxRow): string {
  const waits = state === 'pending' && (attempts > 0 || refreshedAt !== null)
  return [reason ?? '', waits ? `next try ${timeOf(dueAt)}` : ''].filter(Boolean).join('; ')
}

/** Prints all about one delivery; its body only when it is asked for, byte for byte. */
function showDelivery(id: string, options: InboxOptions): number {
  if (options.state !== undefined) throw new MirrorError('usage', '--state is of the list: give it without an id')
  const { config } = settings(options, false, [])
  const stored = withInbox(config, null, (db) => createInboxReads(db).readRow(numberOf(id)))
  const [row] = stored === null ? [] : withDecisions(config, [stored])
  if (row === undefined) throw unknown(id)
  if (options.body === true) {
    process.stdout.write(process.stdout.isTTY ? printable(row.body) : row.body)
    return 0
  }
  const bodySha256 = sha256Hex(row.body)
  const shown = { ...shownRow(row), bodySha256 }
  if (options.json === true) {
    print(JSON.stringify(shown, null, 2))
    return 0
  }
  const flat = { ...shown, target: nameOf(row.target), ...timingsOf(row) }
  const rows = Object.entries(flat).map(([name, value]) => [name, textOf(value)])
  print(table(['field', 'value'], rows))
  if (row.body.length > 0) print(`\nits body, as it came: patchmirror webhooks inbox ${row.id} --body`)
  return 0
}

function timingsOf({ receivedAt, storedAt, refreshedAt, visibleAt }: InboxRow): object {
  const after = (at: number | null): string | null => (at === null ? null : `${at - receivedAt} ms`)
  return {
    storedAfter: after(storedAt),
    refreshedAfter: after(refreshedAt),
    visibleAfter: after(visibleAt),
  }
}

/** `patchmirror webhooks resolve --replay ID… | --all`: makes deliveries pending again; a running daemon takes them up by itself. */
export function replayCommand(
  ids: readonly string[],
  options: GlobalOptions & { all?: boolean; json?: boolean },
): number {
  const { config, count } = settleChosen(ids, options, {
    usage: 'give the ids of deliveries, or --all for all dead letters',
    all: (inbox) => inbox.replayDead(Date.now()),
    refuse,
    one: (inbox, id) => inbox.replay(id, Date.now()),
  })
  if (options.json === true) print(JSON.stringify({ replayed: count }))
  else {
    const when = isServed(config.data.dir)
      ? 'the running mirror refreshes within two seconds'
      : 'the next "patchmirror serve" refreshes'
    print(
      count === 0 ? nothingReplayed(ids) : `${counted(count, 'delivery is', 'deliveries are')} pending again: ${when}`,
    )
  }
  return 0
}

function nothingReplayed(ids: readonly string[]): string {
  if (ids.length === 0) return 'nothing to replay'
  const which = ids.length === 1 ? `delivery ${ids.join()} is` : `deliveries ${ids.join(', ')} are`
  return `${which} pending already: the mirror refreshes for what is pending without a replay`
}

/** `patchmirror webhooks resolve --dismiss ID… | --all`: takes dead letters off the list; they are remembered until they are pruned. */
export function dismissCommand(
  ids: readonly string[],
  options: GlobalOptions & { all?: boolean; json?: boolean },
): number {
  const { count } = settleChosen(ids, options, {
    usage: 'give the ids of dead letters, or --all for all of them',
    all: (inbox) => inbox.dismiss(null),
    refuse: refuseLiving,
    one: (inbox, id) => inbox.dismiss(id) > 0,
  })
  if (options.json === true) print(JSON.stringify({ dismissed: count }))
  else print(count === 0 ? 'no dead letters' : `${count} dismissed`)
  return 0
}

/** How a command settles deliveries: all that it is for, or one; `refuse` throws where it is not for that one. */
interface Settling {
  readonly usage: string
  readonly all: (inbox: Inbox) => number
  readonly refuse: (id: number, row: InboxRow | null) => void
  readonly one: (inbox: Inbox, id: number) => boolean
}

type Inbox = ReturnType<typeof createInbox>

/** Settles the named deliveries or all, none where one is refused; returns how many they were. */
function settleChosen(
  ids: readonly string[],
  options: GlobalOptions & { all?: boolean },
  { usage, all, refuse, one }: Settling,
): { config: Config; count: number } {
  const isAll = options.all === true
  if (ids.length > 0 === isAll) throw new MirrorError('usage', usage)
  const { config } = settings(options, false, [])
  const numbers = ids.map(numberOf)
  const count = changeInbox(config, null, (db) => {
    const inbox = createInbox(db)
    const settle = db.transaction(() => {
      if (isAll) return all(inbox)
      for (const id of numbers) refuse(id, inbox.readRow(id))
      return numbers.filter((id) => one(inbox, id)).length
    })
    return settle.immediate()
  })
  if (count === null && !isAll) throw unknown(ids[0] ?? '')
  return { config, count: count ?? 0 }
}

function refuseLiving(id: number, row: InboxRow | null): void {
  if (row === null) throw unknown(String(id))
  if (row.state !== 'dead') throw new MirrorError('usage', `delivery ${id} is no dead letter, it is ${row.state}`)
}

function refuse(id: number, row: InboxRow | null): void {
  if (row === null) throw unknown(String(id))
}

function listRows(state: InboxState | null, options: InboxOptions): InboxRow[] {
  const { config } = settings(options, false, [])
  const limit = numberOf(options.limit ?? '20')
  return withDecisions(
    config,
    withInbox(config, [], (db) => createInboxReads(db).listRows(state, limit)),
  )
}

function stateOf(text: string | undefined): InboxState | null {
  const state = STATES.find((one) => one === text)
  if (text === undefined || state !== undefined) return state ?? null
  throw new MirrorError('usage', `${text} is no state; they are: ${STATES.join(', ')}`)
}

function numberOf(text: string): number {
  const number = wholeNumber(text)
  if (number !== null) return number
  throw new MirrorError('usage', `${text} is not a number above 0`)
}

function unknown(id: string): MirrorError {
  const text = `there is no delivery ${id}; "patchmirror webhooks inbox" lists the newest`
  return new MirrorError('not_found', text)
}

function textOf(value: unknown): string {
  if (value === null || value === undefined) return '-'
  return visible(typeof value === 'string' ? value : JSON.stringify(value))
}

/** Returns the body with line ends, but without other characters that move a terminal's cursor. */
function printable(body: Buffer): string {
  return `${body.toString('utf8').replace(/[^\P{C}\n]/gu, ' ')}\n`
}
