import { nameStorageError } from '../../store/database/faults.ts'
import { type Db, inboxPath } from '../../store/database/open.ts'
import { createInboxReports } from '../../store/webhooks/inbox-reports.ts'
import { createInbox } from '../../store/webhooks/inbox.ts'
import { MirrorError, messageOf } from '../../base/errors.ts'
import type { CallReply, NumberedCall } from '../../base/threads/calls.ts'
import { failureOf } from '../../base/threads/failure.ts'

/** An operation of the inbox thread: synchronous, and inside the transaction of its batch if it writes. */
interface InboxOperation<Args extends unknown[], Result> {
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
  return {
    receive: writing(inbox.receive),
    settle: writing(inbox.settle),
    prune: writing(inbox.prune),
    pending: reading(inbox.listPending),
    dead: reading(inbox.listDead),
    read: reading(inbox.readRow),
    nextDueAt: reading(inbox.nextDueAt),
    counts: reading(inbox.counts),
    eventTimes: reading(reports.eventTimes),
    announcedSince: reading(reports.announcedSince),
  }
}

type Operations = ReturnType<typeof createOperations>
export type OperationName = keyof Operations
/** The functions that the inbox thread answers, by name. */
export type InboxFunctions = { readonly [Name in OperationName]: Operations[Name]['run'] }
/** What the inbox thread is asked: an operation, and its arguments. */
export interface InboxQuestion {
  readonly name: OperationName
  readonly args: readonly unknown[]
}
/** A question to the inbox thread. */
export type InboxCall = NumberedCall<InboxQuestion>
/** Its reply; the result is that of the operation. */
export type InboxReply = CallReply<unknown>

/**
 * Answers all requests of a batch. Those that write share one transaction, and no answer is sent before its COMMIT: a
 * single fsync makes a hundred deliveries durable. One that fails is rolled back alone; when the transaction itself cannot
 * commit (a full disk), every request that wrote gets the error, and nothing of it is stored. Nothing is done while the file of the
 * database is not at its path: what is stored in it then is lost with the thread.
 */
export function answerBatch(
  db: Db,
  operations: Operations,
  questions: readonly InboxCall[],
  { dataDir, refuseLoss }: { readonly dataDir: string; readonly refuseLoss: () => void },
): InboxReply[] {
  const refused =
    (error: unknown) =>
    (id: number): InboxReply =>
      refusalOf(id, error, dataDir)
  const writes = questions.some(({ asked }) => operations[asked.name].writes)
  try {
    refuseLoss()
    if (!writes) return questions.map((question) => attempt(operations, question, refused))
    db.exec('BEGIN IMMEDIATE')
    const replies = questions.map((question) => {
      if (!operations[question.asked.name].writes) return attempt(operations, question, refused)
      db.exec('SAVEPOINT one')
      const reply = attempt(operations, question, (error) => {
        // SQLite itself gives up the whole transaction when the disk is full or fails.
        if (!db.inTransaction) throw error
        db.exec('ROLLBACK TO one')
        return refused(error)
      })
      db.exec('RELEASE one')
      return reply
    })
    db.exec('COMMIT')
    return replies
  } catch (error) {
    if (db.inTransaction) db.exec('ROLLBACK')
    return questions.map(({ id }) => refused(error)(id))
  }
}

function attempt(
  operations: Operations,
  { id, asked: { name, args } }: InboxCall,
  refused: (error: unknown) => (id: number) => InboxReply,
): InboxReply {
  // The thread's own interface has typed name and arguments together.
  const run = operations[name].run as (...args: readonly unknown[]) => unknown
  try {
    return { id, result: run(...args) }
  } catch (error) {
    return refused(error)(id)
  }
}

function refusalOf(id: number, thrown: unknown, dataDir: string): InboxReply {
  const error = nameStorageError(thrown, dataDir, inboxPath(dataDir))
  const named = error instanceof MirrorError ? error : new MirrorError('internal', messageOf(error), { cause: error })
  return { id, failure: failureOf(named) }
}
