import { FILTERED_FEEDS } from '../../base/domain/feed-paths.ts'
import type { GuardVerdict } from '../../guard/verdict.ts'
import { jsonTextOf } from '../../base/json/objects.ts'
import { contentOf, sizeOf } from '../../store/database/gzip.ts'
import type { Document } from '../../store/feeds/documents.ts'
import type { SyncContext } from '../context.ts'
import { accountDoubts, createStandard } from '../doubts.ts'

/** What a feed of patches would hide, and how it is accounted for. */
export interface FeedVerdict {
  readonly verdict: GuardVerdict
  /** Accounts for it, in the transaction that publishes. */
  readonly account: () => void
}

/** Judges a feed of patches that replaces the stored one; null: it is another document, or the guard is off. */
export async function judgeFeed(
  context: SyncContext,
  stored: Document | null,
  { path, body }: Document,
): Promise<FeedVerdict | null> {
  const { config } = context
  const before = stored?.body ?? null
  if (config.guard.mode === 'off' || !FILTERED_FEEDS.has(path)) return null
  if (before === null || body === null) return null
  const { lostEntries } = await import('../../guard/feed-entries.ts')
  const { createDoubtCount } = await import('../../guard/verdict.ts')
  const { lost, total } = lostEntries(parsed(before), parsed(body))
  const removal = { count: config.feeds.guardEntries, share: config.feeds.guardFraction }
  const standard = createStandard(context, () => total, removal)
  const count = createDoubtCount(standard)
  for (const { name, because, isEnded } of lost) {
    const kind = isEnded ? 'entriesEnded' : 'entriesLost'
    count.note({ kind, name: `${path} ${name}`, content: '', because, packages: [], path })
  }
  const verdict = count.verdict()
  return { verdict, account: () => accountDoubts(context, verdict, standard) }
}

function parsed(body: Buffer): unknown {
  return JSON.parse(jsonTextOf(contentOf(body, sizeOf(body)))) as unknown
}
