import { openInbox, openInboxReader } from '../../store/database/open.ts'
import { createInboxReports } from '../../store/webhooks/inbox-reports.ts'
import type { InboxFunctions, OperationName } from './operations.ts'
import { closing } from '../../base/closing.ts'

/** Answers of an inbox in which nothing is stored. */
export const EMPTY: { readonly [Name in OperationName]?: ReturnType<InboxFunctions[Name]> } = {
  pending: [],
  dead: [],
  read: null,
  nextDueAt: null,
  counts: { pending: 0, dead: 0, done: 0, ignored: 0, oldestPendingAt: null },
  eventTimes: [],
  announcedSince: { announcements: [], firstAt: null, lastAt: null },
  prune: 0,
}

/** Whether no delivery is stored. Creates webhooks.db where there is none: others read it. False where it cannot be read. */
export function isInboxEmpty(dataDir: string): boolean {
  try {
    const db = openInboxReader(dataDir) ?? openInbox(dataDir)
    return closing(db, () => createInboxReports(db).isEmpty())
  } catch {
    return false // the thread meets the same fault, and reports it
  }
}
