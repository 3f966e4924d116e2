import { createChangeCheck } from '../store/database/change-check.ts'
import { openInboxReader } from '../store/database/open.ts'
import { type OutboxReads, createOutboxReads } from '../store/webhooks/outbox.ts'

/** Returns what `work` returns; when that throws, what the other does. */
export type Attempt = <T>(work: () => T, otherwise: () => T) => T

/** webhooks.db as the serving thread reads it. */
export interface InboxView {
  /** Null while the file is missing or not migrated yet. Throws the errors of the database. */
  readonly reads: () => OutboxReads | null
  /** Adds a listener that is called when any connection wrote, of this process or another; looked at each second. */
  readonly onWritten: (listener: () => void) => void
  close(): void
}

/** Interval between two looks, milliseconds. */
const LOOK_MS = 1_000

/** Creates the view. The file is opened once it is there: a first delivery may create it at any time. */
export function createInboxView(dataDir: string, attempt: Attempt): InboxView {
  const listeners: (() => void)[] = []
  let opened: ReturnType<typeof open> = null
  const view = (): typeof opened => (opened ??= open(dataDir))
  const look = (): void => {
    const wrote = attempt(
      () => view()?.changed() ?? false,
      () => false,
    )
    if (wrote) for (const listener of listeners) listener()
  }
  const looking = setInterval(look, LOOK_MS).unref()
  return {
    reads: () => view()?.reads ?? null,
    onWritten: (listener) => void listeners.push(listener),
    close() {
      clearInterval(looking)
      opened?.db.close()
    },
  }
}

function open(dataDir: string) {
  const db = openInboxReader(dataDir)
  try {
    return db && { db, reads: createOutboxReads(db), changed: createChangeCheck([db]) }
  } catch (error) {
    db?.close()
    throw error
  }
}
