import type { Db } from '../store/database.ts'
import { createInboxReports } from '../store/inbox-reports.ts'
import { createInbox } from '../store/inbox.ts'

/** One thing that the inbox thread can be asked to do: synchronous, and inside the transaction of its turn if it writes. */
export interface InboxOperation<Args extends unknown[], Result> {
  readonly writes: boolean
  readonly run: (...args: Args) => Result
}

const reading = <A extends unknown[], R>(run: (...args: A) => R): InboxOperation<A, R> => ({
  writes: false,
  run,
})
const writing = <A extends unknown[], R>(run: (...args: A) => R): InboxOperation<A, R> => ({
  writes: true,
  run,
})

/**
 * Everything that the inbox thread does, by name: another line here is another thing that `thread.call` can ask for, with
 * the types of its arguments and of its result. Both must survive a structured clone.
 */
export function createOperations(db: Db) {
  const inbox = createInbox(db)
  const reports = createInboxReports(db)
  let version = inbox.dataVersion()
  return {
    receive: writing(inbox.receive),
    settle: writing(inbox.settle),
    prune: writing(inbox.prune),
    pending: reading(inbox.listPending),
    read: reading(inbox.readRow),
    nextDueAt: reading(inbox.nextDueAt),
    counts: reading(inbox.counts),
    eventTimes: reading(reports.eventTimes),
    heardSince: reading(reports.heardSince),
    /** Whether another connection has written since this was asked last. */
    changed: reading((): boolean => {
      const before = version
      version = inbox.dataVersion()
      return version !== before
    }),
  }
}

export type Operations = ReturnType<typeof createOperations>
export type OperationName = keyof Operations
export type ArgumentsOf<Name extends OperationName> = Parameters<Operations[Name]['run']>
export type ResultOf<Name extends OperationName> = ReturnType<Operations[Name]['run']>
