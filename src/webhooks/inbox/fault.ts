import { dirname, sep } from 'node:path'
import type { Logger } from '../../base/log.ts'
import { toIso } from '../../base/time.ts'
import { inboxPath } from '../../store/database/open.ts'
import type { WebhooksStatus } from '../../base/reports/webhooks.ts'

/** What is known of a webhooks.db that cannot be used: its parts meet one cause, which is logged once. */
export interface InboxFault {
  /** Notes why a part cannot use it. */
  readonly note: (message: string) => void
  /** Does that when a message is about a webhooks.db that stays as it is; returns false when it is about something else, or passes. */
  readonly noteOwn: (message: string) => boolean
  /** It can be used again. */
  readonly end: () => void
  /** What a report shows; null: nothing is wrong. */
  readonly state: () => NonNullable<WebhooksStatus['failing']> | null
}

/** What the fault of a data folder is noted with. */
interface FaultOptions {
  readonly dataDir: string
  readonly log: Pick<Logger, 'info' | 'error'>
  /** Unix milliseconds. */
  readonly now: () => number
}

/** Creates the note of what is wrong with webhooks.db. */
export function createInboxFault({ dataDir, log, now }: FaultOptions): InboxFault {
  const path = inboxPath(dataDir)
  let known: { readonly message: string; readonly since: number } | null = null
  const note = (message: string): void => {
    if (known?.message === message) return
    known = { message, since: known?.since ?? now() }
    log.error({}, `the inbox of webhooks is not available: ${message}`)
  }
  return {
    note,
    noteOwn(message) {
      const isOwn = message.startsWith(path) && !message.startsWith(`${path} cannot be`)
      if (isOwn) note(message)
      return isOwn
    },
    end() {
      if (known === null) return
      known = null
      log.info({}, 'the inbox of webhooks is available again')
    },
    state: () => known && { message: withoutFolder(known.message, path), since: toIso(known.since) },
  }
}

/** Returns a message about webhooks.db as everybody may read it: without the name of its folder. */
export function withoutFolder(message: string, path: string): string {
  return message.replaceAll(dirname(path) + sep, '')
}
