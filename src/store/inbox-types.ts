import type { EventTarget } from '../event-target.ts'

export type { EventTarget }

/** How a delivery stands: to be refreshed for, refreshed for, of no interest, or given up. */
export type InboxState = 'pending' | 'done' | 'ignored' | 'dead'

/** A delivery whose signature was verified, to be stored. Times are unix milliseconds, here and below. */
export interface NewDelivery {
  /** Name of the endpoint. Together with `webhookId` it tells deliveries apart. */
  readonly endpoint: string
  readonly webhookId: string
  readonly state: InboxState
  /** The event's type, as it says it; null: it says none. */
  readonly type: string | null
  /** The form of signature that matched; never the key. */
  readonly dialect: string
  /** The label of the secret that matched; never the secret. */
  readonly secret: string
  readonly target: EventTarget | null
  readonly receivedAt: number
  readonly storedAt: number
  /** Why it is ignored or dead, one plain line. */
  readonly reason: string | null
  readonly body: Uint8Array
}

/** `full`: it would be one too many that are pending, and nothing is stored. */
export type Received = 'new' | 'duplicate' | 'full'

/** A row of the inbox. */
export interface InboxRow extends Omit<NewDelivery, 'body'> {
  /** In order of arrival; never given twice. */
  readonly id: number
  readonly refreshedAt: number | null
  readonly visibleAt: number | null
  /** Failures so far. */
  readonly attempts: number
  /** Not before this time, while pending. */
  readonly dueAt: number
  /** As received; empty where rows are listed. */
  readonly body: Buffer
  /** Bytes of the body. */
  readonly size: number
  /** How often it was made pending anew by hand. */
  readonly replays: number
}

/** What became of a row. A field that is not given stays as it is. */
export interface Settlement {
  readonly id: number
  readonly state: InboxState
  readonly refreshedAt?: number | null
  readonly visibleAt?: number | null
  readonly attempts?: number
  readonly dueAt?: number
  readonly reason?: string | null
}

/** How many rows there are in each state, and when the oldest pending one came. */
export interface InboxCounts {
  readonly pending: number
  readonly dead: number
  readonly done: number
  readonly ignored: number
  readonly oldestPendingAt: number | null
}
