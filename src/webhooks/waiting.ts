import type { InboxRow } from '../store/inbox-types.ts'

export { type EventTarget, targetsOf } from '../event-target.ts'

/** A row of the inbox that waits for its refresh, as far as that is about it. */
export type Waiting = Pick<InboxRow, 'id' | 'target' | 'refreshedAt' | 'attempts' | 'dueAt'>
