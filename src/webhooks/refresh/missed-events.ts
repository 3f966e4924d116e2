import { DAY_MS, HOUR_MS } from '../../base/time.ts'
import type { Misses } from '../../base/reports/webhooks.ts'
import { namesOf, plainRepository } from '../../base/domain/image-reference.ts'
import type { NewTag } from '../../store/catalog/tags.ts'
import type { AnnouncedTag } from '../../store/webhooks/inbox-reports.ts'

/** What is compared. Times in unix milliseconds. */
export interface Compared {
  /** Of the window, oldest first. */
  readonly arrivals: readonly NewTag[]
  /** Of the window and a day before it: an event often arrives before its tag is listed. */
  readonly announcements: readonly AnnouncedTag[]
  readonly lastEventAt: number | null
  /** Since when events could come at all, as far as that is known; null: they cannot, no secret is configured. */
  readonly expectedSince: number | null
  readonly now: number
}

/** How far back polls and events are compared. */
export const WINDOW_MS = 7 * DAY_MS
/** An event may come this long after a poll has found what it announces. */
const LATE_MS = 15 * 60_000
/** Changes without any event from which a subscription is considered dead. */
const SUSPICIOUS = 3

/** Compares what polls found with what events announced. */
export function compareMisses(compared: Compared): Misses {
  const { announcements, now, expectedSince } = compared
  const from = Math.max(now - WINDOW_MS, expectedSince ?? Infinity)
  const judged = compared.arrivals.filter(({ at }) => at >= from && at <= now - LATE_MS)
  const known = namesIn(announcements)
  const missed = judged.filter((one) => one.trigger !== 'webhook' && !isAnnounced(one, known))
  return {
    arrivals: judged.length,
    unannounced: missed.length,
    missRate: judged.length === 0 ? null : missed.length / judged.length,
    unconfirmed: announcements.filter((one) => one.unconfirmed && one.receivedAt >= from).length,
    warning: warningOf(missed, compared.lastEventAt),
  }
}

type Names = Pick<AnnouncedTag, 'receivedAt'> & {
  repository: string | null
  digest: string | null
}
type Known = ReadonlyMap<string, readonly Names[]>

/** Announcements by tag, or by digest where they name no tag. */
function namesIn(announcements: readonly AnnouncedTag[]): Known {
  const known = new Map<string, Names[]>()
  for (const { target, receivedAt } of announcements) {
    const { repository, tag, digest } = namesOf(target)
    const key = tag ?? digest
    if (key === null) continue
    const named = known.get(key) ?? []
    known.set(key, named)
    named.push({ repository, digest, receivedAt })
  }
  return known
}

/**
 * Reports whether an event announced the tag. A missing value contradicts nothing. An event may name the digest of one
 * platform where the list has that of all, so another digest only counts as another change when the two are an hour apart.
 */
function isAnnounced({ repository, tag, digest, at }: NewTag, known: Known): boolean {
  const own = repository === null ? null : plainRepository(repository)
  const agree = (a: string | null, b: string | null): boolean => a === null || b === null || a === b
  const found = [tag, digest].flatMap((key) => (key === null ? [] : (known.get(key) ?? [])))
  return found.some(
    (one) => agree(one.repository, own) && (agree(one.digest, digest) || Math.abs(one.receivedAt - at) <= HOUR_MS),
  )
}

function warningOf(missed: readonly NewTag[], lastEventAt: number | null): string | null {
  const since = missed.filter(({ at }) => lastEventAt === null || at > lastEventAt)
  if (since.length < SUSPICIOUS) return null
  return (
    `the webhook subscription seems dead: polls found ${since.length} new tags since the last verified event, and ` +
    'none was announced. Look at "patchmirror webhooks list", and send a test with "patchmirror webhooks test"'
  )
}
