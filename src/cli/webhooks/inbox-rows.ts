import { closing } from '../../base/closing.ts'
import { withReads } from '../../store/reads.ts'
import { MirrorError, systemCode } from '../../base/errors.ts'
import { toIsoOrNull } from '../../base/time.ts'
import type { Config } from '../../config/schema.ts'
import { type Db, inboxPath, openInbox, openInboxReader } from '../../store/database/open.ts'
import { lossAt, lostDatabase, namingFaults } from '../../store/database/faults.ts'
import { lossOfInbox } from '../../store/given-numbers.ts'
import { messageNow } from '../../store/runs/rejected.ts'
import type { InboxRow } from '../../store/webhooks/inbox.ts'
import type { EventTarget } from '../../base/domain/image-reference.ts'
import { visible } from '../output.ts'

/**
 * Calls `work` with the database of deliveries to read it, which a running daemon may have open as well; gives `none` when nothing
 * was ever delivered. Throws `storage`, `corrupt`, `schema`, and `not_ready` where no daemon has migrated it.
 */
export function withInbox<T>({ data: { dir } }: Config, none: T, work: (db: Db) => T): T {
  const path = inboxPath(dir)
  return namingFaults(
    dir,
    () => {
      const loss = lossOfInbox(dir)
      if (loss !== null) throw lostDatabase(path, loss)
      const db = openInboxReader(dir)
      if (db !== null) return closing(db, () => work(db))
      if (lossAt(path) !== null) return none
      throw new MirrorError('not_ready', `${path} is not migrated yet: start the daemon ("patchmirror serve")`)
    },
    path,
  )
}

/** Calls `work` with it to change what is stored. */
export function changeInbox<T>(config: Config, none: T, work: (db: Db) => T): T {
  const { dir } = config.data
  if (!withInbox(config, false, () => true)) return none
  const db = openInbox(dir)
  return closing(db, () => namingFaults(dir, () => work(db), inboxPath(dir)))
}

/** Reports whether it is SQLite's own error, as of a damaged page. */
const isSqlite = (error: unknown): boolean => systemCode(error)?.startsWith('SQLITE') === true

/** Returns deliveries with what was decided since about the runs that their notes name; where that cannot be read, as they are. */
export function withDecisions({ data }: Config, rows: readonly InboxRow[]): InboxRow[] {
  try {
    const decided = withReads(data.dir, (reads) =>
      rows.map((row) => ({ ...row, reason: messageNow(reads, row.reason) })),
    )
    return decided ?? [...rows]
  } catch (error) {
    if (error instanceof MirrorError || isSqlite(error)) return [...rows]
    throw error
  }
}

/** What an event names, in one line: `library/python:3.12@sha256:0123456789ab…`. */
export function nameOf(target: EventTarget | null): string {
  if (target === null) return '-'
  const { repository, tag, digest, subject, others = [] } = target
  const more = others.length === 0 ? '' : ` and ${others.length} more`
  if (tag === null && digest === null) return visible(`${repository ?? subject ?? '-'}${more}`)
  const short = digest === null ? '' : `@${digest.slice(0, 19)}…`
  return visible(`${repository ?? '?'}${tag === null ? '' : `:${tag}`}${short}${more}`)
}

/** A row as it may be shown: all but its body. Times in ISO 8601 UTC. */
export function shownRow({ body, ...row }: InboxRow): object {
  const { receivedAt, storedAt, refreshedAt, visibleAt, dueAt, size, ...rest } = row
  return {
    ...rest,
    receivedAt: toIsoOrNull(receivedAt),
    storedAt: toIsoOrNull(storedAt),
    refreshedAt: toIsoOrNull(refreshedAt),
    visibleAt: toIsoOrNull(visibleAt),
    dueAt: row.state === 'pending' ? toIsoOrNull(dueAt) : null,
    bytes: Math.max(size, body.length),
  }
}
