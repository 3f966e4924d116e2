import { type EventLog, createWebhookLog } from '../server/followers/event-log.ts'
import type { Config } from '../config/schema.ts'
import { messageOf } from '../base/errors.ts'
import type { Logger } from '../base/log.ts'
import { createChangeCheck } from '../store/database/change-check.ts'
import { nameStorageError } from '../store/database/faults.ts'
import { watchLoss } from '../store/database/loss.ts'
import { inboxPath, openInboxReader } from '../store/database/open.ts'
import { type OutboxReads, createOutboxReads } from '../store/webhooks/outbox.ts'
import { warnOnce } from './log-lines.ts'

/** webhooks.db as the serving thread reads it. Where it is damaged, no page fails: each shows what was seen last. */
export interface InboxView {
  /** Returns what is read; the other where the file is missing, not migrated yet, or cannot be read. */
  readonly read: <T>(work: (reads: OutboxReads) => T, otherwise: () => T) => T
  /** Adds a listener that is called when any connection wrote, of this process or another; looked at each second. */
  readonly onWritten: (listener: () => void) => void
  /** The received events. */
  readonly webhookLog: EventLog
  close(): void
}

interface InboxViewOptions {
  readonly config: Config
  readonly log: Pick<Logger, 'warn'>
  /** Reports whether the cause of a fault is in the log. */
  readonly isExplained: (message: string) => boolean
  /** Called when the file that was open is at its path again, after it was lost: an empty inbox has no thread that would notice. */
  readonly onFound: () => void
}

/** Interval between two looks, milliseconds. */
const LOOK_MS = 1_000

/** Creates the view. The file is opened once it is there: a first delivery may create it at any time. */
export function createInboxView({ config: { data }, log, isExplained, onFound }: InboxViewOptions): InboxView {
  const listeners: (() => void)[] = []
  const warn = warnOnce(log) // status pages are requested often
  let opened: ReturnType<typeof open> = null
  let isLost = false
  const refuseLoss = (refuse: () => void): void => {
    const wasLost = isLost
    isLost = true
    refuse()
    isLost = false
    if (wasLost) onFound()
  }
  const attempt = <T>(work: (view: NonNullable<typeof opened>) => T, otherwise: () => T): T => {
    try {
      opened ??= open(data.dir)
      if (opened === null) return otherwise()
      refuseLoss(opened.refuseLoss)
      return work(opened)
    } catch (error) {
      const why = messageOf(nameStorageError(error, data.dir, inboxPath(data.dir)))
      if (!isExplained(why)) warn(`what is passed on cannot be shown: ${why}`)
      return otherwise()
    }
  }
  const look = (): void => {
    const wrote = attempt(
      ({ changed }) => changed(),
      () => false,
    )
    if (wrote) for (const listener of listeners) listener()
  }
  const looking = setInterval(look, LOOK_MS).unref()
  const read: InboxView['read'] = (work, otherwise) => attempt(({ reads }) => work(reads), otherwise)
  return {
    read,
    onWritten: (listener) => void listeners.push(listener),
    webhookLog: webhookLogOf(read),
    close() {
      clearInterval(looking)
      opened?.db.close()
    },
  }
}

function open(dataDir: string) {
  const db = openInboxReader(dataDir)
  try {
    const refuseLoss = watchLoss(inboxPath(dataDir))
    return db && { db, reads: createOutboxReads(db), changed: createChangeCheck([db]), refuseLoss }
  } catch (error) {
    db?.close()
    throw error
  }
}

function webhookLogOf(read: InboxView['read']): EventLog {
  const ask = <T>(work: (log: EventLog) => T, otherwise: () => T): T =>
    read((reads) => work(createWebhookLog(reads)), otherwise)
  let last = 0
  return {
    last: () =>
      (last = ask(
        (log) => log.last(),
        () => last,
      )),
    // Fewer than the last id: a client that returns with its position starts from the beginning.
    count: (after) =>
      ask(
        (log) => log.count(after),
        () => -1,
      ),
    list: (after, limit) =>
      ask(
        (log) => log.list(after, limit),
        () => [],
      ),
  }
}
