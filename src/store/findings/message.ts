import { toIso } from '../../base/time.ts'
import type { ChangeNumbers, FindingsReads, LoggedFindings } from './reads.ts'

/** A change of a tag, as answers and events show it. */
type ChangeMessage = ReturnType<typeof changeMessage>

/** What one snapshot changed in the findings of tags, as reported to followers. */
interface FindingsMessage extends ChangeNumbers {
  cause: LoggedFindings['cause']
  snapshot: string
  /** Tags that changed; the numbers are of all of them. */
  tags: number
  /** Both ends, for `/-/tags/changes?after=…`. */
  after: string
  position: string
  /** The first tags; `more`: there are further ones. */
  changes: ChangeMessage[]
  more: boolean
}

/** A message, and which entries of the log it is of. */
export interface FindingsPart {
  readonly message: FindingsMessage
  readonly first: number
  last: number
  /** When the last of them was logged, Unix milliseconds. */
  at: number
  /** Ids of the tags that changed: a judgement that was interrupted may have logged one twice. */
  readonly owners: Set<string>
  /** Of the listed tags. */
  bytes: number
}

/** Most tags in a message, and most bytes of them: it announces, it does not transfer. */
const ANNOUNCED_TAGS = 50
const ANNOUNCED_BYTES = 64 * 1024
/** Entries that are read at a time. */
const BATCH = 200

/** Returns a change of a tag, as answers and events show it. */
export function changeMessage(one: LoggedFindings) {
  const { at, owner, name, cause, snapshot } = one
  return {
    at: toIso(at),
    tag: { id: owner, name },
    cause,
    snapshot,
    ...numbersOf(one),
    counts: { findings: one.findings, fixable: one.fixable },
    changes: one.details.map(([change, record, component, version, fixable, source, why = null]) => ({
      change,
      id: record,
      package: component,
      version,
      fixable: fixable === 1,
      source: source === '' ? null : source,
      why,
    })),
  }
}

function numbersOf(one: LoggedFindings): ChangeNumbers {
  return {
    newFindings: one.found,
    newFixable: one.foundFixable,
    goneFindings: one.gone,
    goneFixable: one.goneFixable,
    newFixes: one.fixes,
    goneFixes: one.fixesGone,
  }
}

/** Returns the log's name in positions: a database that is made again has another. */
export function logName(reads: FindingsReads): string {
  return (reads.readState()?.instance ?? '').slice(0, 8)
}

/** Returns the position behind an entry of the log. */
export function logPosition(reads: FindingsReads, seq: number): string {
  return `${logName(reads)}-${seq}`
}

/** Returns the messages of the log after an entry, in order: one for the entries in a row that one snapshot caused. */
export function* announceFindings(reads: FindingsReads, after: number): Generator<FindingsPart> {
  let part: FindingsPart | null = null
  for (const row of eachLogged(reads, after)) {
    if (part !== null && !isOf(part, row)) {
      yield part
      part = null
    }
    part ??= beginPart(reads, row)
    addEntry(part, row, logPosition(reads, row.seq))
  }
  if (part !== null) yield part
}

function* eachLogged(reads: FindingsReads, after: number): Generator<LoggedFindings> {
  for (let rows = reads.listLog(after, BATCH); rows.length > 0;) {
    yield* rows
    rows = reads.listLog(rows.at(-1)?.seq ?? after, BATCH)
  }
}

function isOf({ message: { cause, snapshot } }: FindingsPart, row: LoggedFindings): boolean {
  return cause === row.cause && snapshot === row.snapshot
}

function beginPart(reads: FindingsReads, { seq, at, cause, snapshot }: LoggedFindings): FindingsPart {
  const after = logPosition(reads, seq - 1)
  const message: FindingsMessage = {
    cause,
    snapshot,
    tags: 0,
    newFindings: 0,
    newFixable: 0,
    goneFindings: 0,
    goneFixable: 0,
    newFixes: 0,
    goneFixes: 0,
    after,
    position: after,
    changes: [],
    more: false,
  }
  return { message, first: seq, last: seq, at, owners: new Set(), bytes: 0 }
}

function addEntry(part: FindingsPart, row: LoggedFindings, position: string): void {
  const { message } = part
  const numbers = numbersOf(row)
  for (const name of NUMBERS) message[name] += numbers[name]
  message.tags = part.owners.add(row.owner).size
  message.position = position
  ;[part.last, part.at] = [row.seq, row.at]
  if (message.more) return
  const change = changeMessage(row)
  part.bytes += JSON.stringify(change).length
  message.more = message.tags > ANNOUNCED_TAGS || part.bytes > ANNOUNCED_BYTES
  if (!message.more) message.changes.push(change)
}

const NUMBERS = [
  ...(['newFindings', 'newFixable', 'goneFindings', 'goneFixable'] as const),
  ...(['newFixes', 'goneFixes'] as const),
]
