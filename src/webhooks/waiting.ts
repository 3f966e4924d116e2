import type { EventTarget } from '../event-target.ts'

export type { EventTarget } from '../event-target.ts'

/** A row of the inbox that waits for its refresh, as far as that is about it. Times in unix milliseconds. */
export interface Waiting {
  readonly id: number
  /** Null: the event names nothing. */
  readonly target: EventTarget | null
  /** When the first refresh that covers it succeeded. */
  readonly refreshedAt: number | null
  /** Failed refreshes so far. */
  readonly attempts: number
  readonly dueAt: number
}
