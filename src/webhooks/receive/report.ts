import { within } from '../../base/pacing.ts'
import { toIsoOrNull } from '../../base/time.ts'
import type { WebhooksStatus } from '../../base/reports/webhooks.ts'
import type { Endpoint } from '../../config/kinds/webhooks.ts'
import type { InboxCounts } from '../../store/webhooks/inbox.ts'
import type { ReceiptOutcome } from './responses.ts'
import type { Secrets } from './secrets.ts'
import type { InboxFault } from '../inbox/fault.ts'
import type { InboxThread } from '../inbox/thread.ts'

/** What the report is made from. */
interface ReportOptions {
  readonly endpoints: readonly Endpoint[]
  readonly secrets: Secrets
  readonly inbox: InboxThread
  /** Unix milliseconds. */
  readonly now: () => number
  readonly fault: Pick<InboxFault, 'state'>
}

/** Remembers when requests were accepted and refused, and returns the report. */
export function createReport({ endpoints, secrets, inbox, now, fault }: ReportOptions) {
  const last = createLast(now)
  const counts = createCounts(inbox, last, now)
  return {
    countWebhook: last.countWebhook,
    make: async (): Promise<WebhooksStatus> => {
      const found = await counts()
      const active = secrets.active().length
      return {
        state: active > 0 ? ('on' as const) : ('off' as const),
        endpoints,
        secrets: active,
        counts: found && withoutOldest(found),
        oldestPendingAt: toIsoOrNull(found?.oldestPendingAt),
        lastReceivedAt: toIsoOrNull(last.receivedAt()),
        lastRefusedAt: toIsoOrNull(last.refused()?.at),
        lastRefusedReason: last.refused()?.reason ?? null,
        failing: fault.state(),
      }
    },
  }
}

/** When something was last let in, and last refused. What came before something else is dated no later, also where the clock was set back. */
function createLast(now: () => number) {
  const startedAt = now()
  let received: number | null = null
  let refused: { readonly at: number; readonly reason: string } | null = null
  const receive = (at: number): void => {
    received = at
    if (refused !== null) refused = { ...refused, at: Math.min(refused.at, at) }
  }
  const refuse = (at: number, reason: string): void => {
    refused = { at, reason }
    if (received !== null) received = Math.min(received, at - 1)
  }
  return {
    countWebhook: (outcome: ReceiptOutcome, reason: string): void => {
      if (['new', 'altered', 'duplicate', 'ignored'].includes(outcome)) receive(now())
      else if (reason === 'method')
        return // no delivery: the address was requested with another method
      else if (outcome === 'unauthorized' || outcome === 'refused' || reason === 'no_secret') refuse(now(), reason)
    },
    /** What is remembered from before the start. */
    seed(at: number | null): void {
      if (received === null && at !== null) received = Math.min(at, startedAt, (refused?.at ?? Infinity) - 1)
    },
    receivedAt: () => received,
    refused: () => refused,
  }
}

/** A status page must not wait for a disk: after this long the counts are those of the last time. */
const PATIENCE_MS = 200
/** The same while the inbox thread starts, which is no fault. */
const START_PATIENCE_MS = 1_000

function createCounts(
  inbox: InboxThread,
  seen: Pick<ReturnType<typeof createLast>, 'receivedAt' | 'seed'>,
  now: () => number,
): () => Promise<InboxCounts | null> {
  let last: InboxCounts | null = null
  return async () => {
    const patienceMs = inbox.alive ? PATIENCE_MS : START_PATIENCE_MS
    const remembered = seen.receivedAt() === null ? inbox.call('announcedSince', now()) : null
    const asked = Promise.all([inbox.counts(), remembered]).then(
      ([counts, heard]) => {
        seen.seed(heard?.lastAt ?? null)
        return (last = counts)
      },
      () => (last = null),
    )
    return within(asked, patienceMs, () => last)
  }
}

function withoutOldest({ pending, dead, done, ignored }: InboxCounts) {
  return { pending, dead, done, ignored }
}
