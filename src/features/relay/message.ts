import { toIso } from '../../base/time.ts'
import { EVENT_TYPES, FINDINGS_CHANGED } from '../../base/domain/event-types.ts'
import type { ChangeMessage } from '../../store/changes/message.ts'
import type { LoggedSnapshot } from '../../store/changes/log.ts'
import type { FindingsPart } from '../../store/findings/message.ts'

/** A message to relay: its `webhook-id`, equal for all attempts, and its bytes. */
interface Message {
  webhookId: string
  body: Buffer
}

/**
 * Builds the CloudEvent (1.0, JSON) for a published snapshot. Its id consists of this mirror's instance name and the
 * position in the change log: it is the same each time the event is built, and differs when a snapshot recurs.
 */
export function snapshotMessage(
  instance: string,
  row: Pick<LoggedSnapshot, 'id' | 'source' | 'publishedAt'>,
  data: ChangeMessage,
): Message {
  const { type } = EVENT_TYPES.snapshotPublished
  return cloudEvent(instance, `${row.id}`, { type, subject: row.source, at: row.publishedAt, data })
}

/**
 * Builds the CloudEvent for changed findings of tags. Its id has the log's name and the entries that it is of, so that it is the
 * same each time the event is built, and differs from that of any other entries.
 */
export function findingsMessage(instance: string, { message: data, first, last, at }: FindingsPart): Message {
  const id = `tags_${data.after.replace(/-.*/, '')}_${first}-${last}`
  return cloudEvent(instance, id, { type: FINDINGS_CHANGED, subject: 'tags', at, data })
}

/** `at`: Unix milliseconds. */
interface EventParts {
  readonly type: string
  readonly subject: string
  readonly at: number
  readonly data: object
}

function cloudEvent(instance: string, id: string, { type, subject, at, data }: EventParts): Message {
  const webhookId = `pm_${instance}_${id}`
  const event = {
    specversion: '1.0',
    id: webhookId,
    source: `/patchmirror/${instance}`,
    type,
    subject,
    time: toIso(at),
    datacontenttype: 'application/json',
    data,
  }
  return { webhookId, body: Buffer.from(JSON.stringify(event)) }
}
