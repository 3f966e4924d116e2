import { toIso } from '../core/time.ts'
import { EVENT_TYPES } from '../domain/event-types.ts'
import type { ChangeMessage } from '../store/changes/message.ts'
import type { LoggedSnapshot } from '../store/changes/log.ts'

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
  const webhookId = `pm_${instance}_${row.id}`
  const event = {
    specversion: '1.0',
    id: webhookId,
    source: `/patchmirror/${instance}`,
    type: EVENT_TYPES.snapshotPublished.type,
    subject: row.source,
    time: toIso(row.publishedAt),
    datacontenttype: 'application/json',
    data,
  }
  return { webhookId, body: Buffer.from(JSON.stringify(event)) }
}
