import { dirname, sep } from 'node:path'
import type { Logger } from '../../base/log.ts'
import { toIso } from '../../base/time.ts'
import { inboxPath } from '../../store/database/open.ts'
import type { WebhooksStatus } from '../../base/reports/webhooks.ts'

/** What is known of a webhooks.db that cannot be used: its parts meet one cause, which is logged once. */
export type InboxFault = ReturnType<typeof createInboxFault>

/** What the fault of a data folder is noted with. */
interface FaultOptions {
  readonly dataDir: string
  readonly log: Pick<Logger, 'info' | 'error'>
  /** Unix milliseconds. */
  readonly now: () => number
}

/** Creates the note of what is wrong with webhooks.db. */
export function createInboxFault({ dataDir, log, now }: FaultOptions) {
  const path = inboxPath(dataDir)
  let known: { readonly message: string; readonly since: number } | null = null
  const note = (message: string): void => {
    if (known?.message === message) return
    known = { message, since: known?.since ?? now() }
    log.error({}, `the inbox of webhooks is not available: ${message}`)
  }
  return {
    /** Notes why a part cannot use it. */
    note,
    /** Does that when a message is about a webhooks.db that stays as it is; returns false when it is about something else, or passes. */
    noteOwn(message: string): boolean {
      const isOwn = message.startsWith(path) && !message.startsWith(`${path} cannot be`)
      if (isOwn) note(message)
      return isOwn
    },
    /** It can be used again. */
    end: (): void => {
      if (known === null) return
      known = null
      log.info({}, 'the inbox of webhooks is available again')
    },
    /** What a report shows; null: nothing is wrong. */
    state: (): NonNullable<WebhooksStatus['failing']> | null =>
      known && { message: withoutFolder(known.message, path), since: toIso(known.since) },
  }
}

/** Returns a message about webhooks.db as everybody may read it: without the name of its folder. */
export function withoutFolder(message: string, path: string): string {
  return message.replaceAll(dirname(path) + sep, '')
}
