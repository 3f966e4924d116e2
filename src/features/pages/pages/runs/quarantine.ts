import { isPrivateSource } from '../../../../base/domain/sources.ts'
import { nounOf } from '../../../../base/text.ts'
import { jsonTextOf } from '../../../../base/json/objects.ts'
import { contentOf, sizeOf } from '../../../../store/database/gzip.ts'
import type { Quarantine } from '../../../../store/runs/quarantine.ts'
import type { NoticeBlock } from '../../../lookup/answers/html.ts'
import type { Block } from '../../blocks.ts'
import { type Cell, code, count, grouped, link, plain } from '../../../lookup/answers/cells.ts'
import { type EntryDifference, compareEntries, entriesOfFeed, entriesOfIndex } from '../../documents/difference.ts'
import { type PageCall, choiceOf, numberOf } from '../../page.ts'

/** Names of a difference on a page. */
const PAGE = 100
/** Largest refused document that is compared, bytes. */
const MAX_BYTES = 64 * 2 ** 20

/** Approvals, newest first, among which the one of a change is looked for. */
const MOST_APPROVALS = 1000

const GROUPS = ['removed', 'changed', 'added'] as const
type Group = (typeof GROUPS)[number]

/** Returns the notice of a quarantined change: what was decided, or the commands that decide. */
export function quarantineNotice(call: PageCall, quarantine: Quarantine): NoticeBlock {
  const { runId, path, reason, decision } = quarantine
  const notice = { kind: 'notice', tone: 'plain', title: `This change was ${decision}` } as const
  const what = `${path}: ${reason}.`
  const listed = 'The snapshot before it is served. What it would change is listed below.'
  const approve = `patchmirror approve ${runId}`
  if (decision === 'superseded') return { ...notice, text: `${what} A later run replaced it.` }
  if (decision === 'approved') {
    const { text, links } = approvedNotice(call, quarantine)
    return { ...notice, text: `${what} ${text}`, links }
  }
  if (decision === 'rejected') {
    const text = `${what} ${listed} The command below undoes the rejection.`
    return { ...notice, text, commands: [approve] }
  }
  return {
    ...notice,
    tone: 'bad',
    title: 'This change waits for your decision',
    text: `${what} ${listed}`,
    commands: [approve, `patchmirror reject ${runId}`],
  }
}

/** Says what became of an approved change, with a link to the run that applied it where the log still has that. */
function approvedNotice({ reads, ui }: PageCall, { runId, source }: Quarantine) {
  const decidedAt = reads.quarantine.readRefusal(runId)?.decidedAt ?? 0
  const before = Number.MAX_SAFE_INTEGER
  const found = reads.runs
    .findRuns({ source, kind: 'approve', state: '', before, limit: MOST_APPROVALS })
    .find(({ id, startedAt }) => id > runId && startedAt <= decidedAt)
  if (found === undefined) return { text: 'It was published.', links: [] }
  const links = [{ text: `Run ${found.id} applied it`, href: ui('run', { id: found.id }) }]
  if (found.state === 'complete' || found.state === 'partial') return { text: 'It was published.', links }
  return { text: `Run ${found.id} says what became of it.`, links }
}

/** Returns what a quarantined change would do to the data served now; nothing once it was approved or superseded. */
export function differenceBlocks(call: PageCall, run: number, quarantine: Quarantine): Block[] {
  const { source, decision } = quarantine
  if (decision !== null && decision !== 'rejected') return []
  if (isPrivateSource(source)) return [catalogTable(call, run, quarantine)]
  const difference = differenceOf(call, quarantine)
  if (difference === null) return [UNREADABLE]
  const { ui, query } = call
  const first = GROUPS.find((group) => difference[group].length > 0) ?? 'removed'
  const shown = choiceOf(query, 'show', GROUPS) || first
  const cell = (group: Group): Cell[] => {
    const number = difference[group].length
    return number === 0 ? [count(0)] : [count(number), link('list', ui('run', { id: run, show: group }))]
  }
  return [
    {
      kind: 'facts',
      title: 'What it would change',
      rows: GROUPS.map((group) => [`would be ${group}`, cell(group)]),
    },
    namesTable(call, run, quarantine, shown, difference[shown]),
  ]
}

const UNREADABLE: Block = {
  kind: 'notice',
  tone: 'warn',
  title: 'The difference is not shown here',
  text: 'The refused document is larger than 64 MiB, or is no JSON.',
}

function namesTable(
  { ui, query }: PageCall,
  run: number,
  { source }: Quarantine,
  group: Group,
  names: readonly string[],
): Block {
  const at = numberOf(query, 'at') ?? 0
  const last = Math.min(at + PAGE, names.length)
  const isRecord = (name: string): boolean => source === 'osv' && name.length <= 500
  return {
    kind: 'table',
    title: `Would be ${group}`,
    note: `${grouped(Math.min(at + 1, last))} to ${grouped(last)} of ${grouped(names.length)}, compared with what is served now.`,
    columns: [source === 'osv' ? 'Record' : 'Entry'],
    rows: names.slice(at, last).map((name) => [isRecord(name) ? code(name, ui('record', { id: name })) : plain(name)]),
    empty: 'none',
    first: at === 0 ? null : ui('run', { id: run, show: group }),
    next: last < names.length ? ui('run', { id: run, show: group, at: last }) : null,
  }
}

/** Compares the refused document with what is stored now; null when it cannot be read. */
function differenceOf({ reads, remember }: PageCall, quarantine: Quarantine): EntryDifference | null {
  const { source, path, sha256, body } = quarantine
  const snapshot = reads.snapshots.readSnapshot(source)?.id ?? ''
  return remember(`difference ${sha256.toString('hex')} ${snapshot}`, () => {
    const refused = parse(body)
    if (refused === null) return null
    if (source === 'osv') return compareEntries(reads.osv.eachPair(), entriesOfIndex(refused))
    const stored = reads.feeds.readDocument(path)?.body ?? null
    const before = stored === null ? null : parse(stored)
    return compareEntries(before === null ? [] : entriesOfFeed(before), entriesOfFeed(refused))
  })
}

function parse(member: Buffer): unknown {
  try {
    const size = sizeOf(member)
    if (size > MAX_BYTES) return null
    return JSON.parse(jsonTextOf(contentOf(member, size)))
  } catch {
    return null
  }
}

/** What a run of the catalog would remove: lists by the number of their items, everything else by name. */
function catalogTable({ ui, query }: PageCall, run: number, { body }: Quarantine): Block {
  const refused: unknown = parse(body)
  const rows = Object.entries(refused ?? {}).flatMap(([what, gone]): [string, Cell][] => {
    if (Array.isArray(gone)) return gone.map((one) => [KINDS[what] ?? what, plain(one)])
    const { count: number = null } = gone as { count?: number | null }
    return [[`items of ${what}`, plain(number === null ? null : `${grouped(number)} of them`)]]
  })
  const at = numberOf(query, 'at') ?? 0
  return {
    kind: 'table',
    title: 'Would be removed',
    note: `${grouped(rows.length)} ${nounOf(rows.length, 'line')}. The items of a list are counted; the first of them are among the facts of the run.`,
    columns: ['What', 'Which'],
    rows: rows.slice(at, at + PAGE).map(([what, which]) => [plain(what), which]),
    empty: 'The refused change names nothing.',
    first: at === 0 ? null : ui('run', { id: run }),
    next: at + PAGE < rows.length ? ui('run', { id: run, at: at + PAGE }) : null,
  }
}

const KINDS: Readonly<Record<string, string>> = {
  owners: 'an item with its artifacts',
  artifacts: 'an artifact',
  lists: 'a list',
}
