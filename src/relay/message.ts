import type { ChangeMessage } from '../store/changes/message.ts'
import type { LoggedSnapshot } from '../store/changes/log.ts'

/** The type of the event that tells of a published snapshot. */
export const SNAPSHOT_TYPE = 'io.patchmirror.snapshot.published.v1'

/** A message to pass on: its `webhook-id`, the same over all attempts, and its bytes. */
interface Message {
  webhookId: string
  body: Buffer
}

/**
 * A published snapshot as a CloudEvent (1.0, JSON). Its id is made of this mirror's name and the place in the change log, so
 * it is the same however often the event is made, and another one when a snapshot comes back later.
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
    type: SNAPSHOT_TYPE,
    subject: row.source,
    time: new Date(row.publishedAt).toISOString(),
    datacontenttype: 'application/json',
    data,
  }
  return { webhookId, body: Buffer.from(JSON.stringify(event)) }
}
