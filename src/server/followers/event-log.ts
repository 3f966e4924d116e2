import { toIso } from '../../base/time.ts'
import type { SourceName } from '../../base/domain/sources.ts'
import type { LeftReads } from '../../store/changes/left.ts'
import { announce } from '../../store/changes/message.ts'
import type { OutboxReads } from '../../store/webhooks/outbox.ts'

/** An event of a log, ready to be written. */
interface NumberedEvent {
  /** Place in its log. */
  id: number
  name: 'snapshot' | 'webhook'
  /** Null: of no source. */
  source: SourceName | null
  /** JSON; null: an entry without an event, which only advances the position. */
  data: (() => string) | null
}

/** An event of a stream. */
export type LoggedEvent = NumberedEvent | (Omit<NumberedEvent, 'id' | 'name'> & FindingsEvent)

/** Stands for all changes of findings since the position before it. */
interface FindingsEvent {
  id: string
  name: 'findings'
}

/** Log that feeds a stream. Ids increase by one, so a gap after a position shows that entries were deleted. */
export interface EventLog {
  /** The newest event's id; 0 while there is none. */
  last(): number
  /** Events that are still there after a place. */
  count(after: number): number
  /** The next of them, in order. */
  list(after: number, limit: number): LoggedEvent[]
}

/** The findings of the mirrored tags: their changes are read at `/-/tags/changes`, an event says that there are some. */
export interface FindingsLog {
  /** The newest position of `/-/tags/changes`; null while nothing is judged. */
  last(): string | null
  /** What changed after a position: JSON of a bounded size. */
  since(position: string): string
}

/** Position of a stream in its logs: the published snapshots, the received and forwarded events, the findings of tags. */
export interface LogPosition {
  readonly snapshots: number
  /** Null: the reader may not have them, and neither findings. */
  readonly webhooks: number | null
  /** Null: there are none yet. */
  readonly findings: string | null
}

/** The published snapshots, from the change log. */
export function createSnapshotLog(reads: LeftReads): EventLog {
  const { changes } = reads
  return {
    last: changes.lastLogged,
    count: changes.countLogged,
    list: (after, limit) =>
      changes.listLogged(after, limit).map((row) => {
        const { id, source } = row
        return { id, name: 'snapshot', source, data: () => JSON.stringify(announce(reads, row)) }
      }),
  }
}

/** Events that were received and forwarded. Forwarded snapshots are skipped: they are read from their own log. */
export function createWebhookLog(reads: OutboxReads): EventLog {
  return {
    last: reads.lastEvent,
    count: reads.countEvents,
    list: (after, limit) =>
      reads.listEvents(after, limit).map(({ id, kind, webhookId, createdAt, body }) => {
        const head = JSON.stringify({ webhookId, at: toIso(createdAt) })
        const data = () => `${head.slice(0, -1)},"event":${asJson(body)}}`
        return { id, name: 'webhook', source: null, data: kind === 'webhook' ? data : null }
      }),
  }
}

/** Upstream's own text where it is JSON, without a byte order mark before it; anything else as a JSON string. */
function asJson(body: Uint8Array): string {
  const text = new TextDecoder().decode(body)
  try {
    JSON.parse(text)
    return text
  } catch {
    return JSON.stringify(text)
  }
}

/** A place as the `id` of an event. */
export function writePlace({ snapshots, webhooks, findings }: LogPosition): string {
  if (webhooks === null) return String(snapshots)
  return findings === null ? `${snapshots}.${webhooks}` : `${snapshots}.${webhooks}.${findings}`
}

/** Reads `Last-Event-ID`; null for anything else than `writePlace` writes. */
export function readPlace(text: string): LogPosition | null {
  const [, snapshots, webhooks, findings = null] = PLACE.exec(text) ?? []
  if (snapshots === undefined) return null
  return {
    snapshots: Number(snapshots),
    webhooks: webhooks === undefined ? null : Number(webhooks),
    findings,
  }
}

const PLACE = /^(\d{1,15})(?:\.(\d{1,15})(?:\.([0-9a-f]{8}-\d{1,15}))?)?$/

/** Whether everything behind a place is still there. A place ahead of the log is another database's. */
export function isContinuous(log: EventLog, after: number): boolean {
  const last = log.last()
  return after <= last && log.count(after) === last - after
}

/** An event in the form of a stream. Any line end would end the field, so each line is one of its own. */
export function formatEvent(name: string, id: string, data: string): string {
  const lines = data.split(/\r\n|\r|\n/).map((line) => `data: ${line}\n`)
  return `event: ${name}\nid: ${id}\n${lines.join('')}\n`
}
