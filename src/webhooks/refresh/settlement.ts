import { counted } from '../../base/text.ts'
import type { Announced } from '../../store/catalog/tags.ts'
import { type EventTarget, isSpecific, namesOf, targetsOf } from '../../base/domain/image-reference.ts'
import type { InboxRow, Settlement } from '../../store/webhooks/inbox.ts'

/** A row of the inbox that waits for its refresh, as far as the refresh needs it. */
export type Waiting = Pick<InboxRow, 'id' | 'target' | 'refreshedAt' | 'attempts' | 'dueAt'>

/** When to look again for what was announced, milliseconds after the first refresh that should have shown it. */
export const LOOKS_MS: readonly number[] = [5_000, 30_000, 120_000, 600_000]

/** Pauses after failed refreshes, milliseconds: each twice the one before. */
const FIRST_PAUSE_MS = 5_000
const LONGEST_PAUSE_MS = 600_000
/** The first seven tries take a quarter of an hour, the others ten minutes each: a day in all. */
export const MAX_ATTEMPTS = 150

/** No row is postponed for longer, milliseconds. */
export const LONGEST_WAIT_MS = Math.max(LONGEST_PAUSE_MS * 1.25, ...LOOKS_MS)
/** A look that is not at its time by more than this, milliseconds: the clock was set, nothing ran, or the refreshes take long. */
const LATE_MS = 60_000

/** A refresh failed that covered the row: it is tried again, later and later, and given up after about a day. */
export function afterFailure(row: Waiting, why: string, now: number, random: number): Settlement {
  const attempts = row.attempts + 1
  const reason = `the refresh failed: ${why}`
  if (attempts < MAX_ATTEMPTS) {
    return {
      id: row.id,
      state: 'pending',
      attempts,
      dueAt: now + pauseMs(attempts, random),
      reason,
    }
  }
  return {
    id: row.id,
    state: 'dead',
    attempts,
    reason: `given up after ${counted(attempts, 'try', 'tries')}: ${why}`,
  }
}

/** Milliseconds until the next try; `random` in [0, 1) spreads it by a quarter to each side. */
export function pauseMs(attempts: number, random: number): number {
  const pause = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(attempts - 1, 20))
  return Math.round(pause * (0.75 + random / 2))
}

/**
 * What readers see of what was announced. `partly`: the tag, but not all of its documents; `alone`: the tag, and none of its
 * documents, as where it is outside the scope; `other digest`: the tag, but not the announced version of it. Null: the event
 * names nothing that could be looked for.
 */
export type Visibility = 'visible' | 'alone' | 'partly' | 'other digest' | 'absent' | null

/**
 * Settles a row after a successful refresh that covered it: an event that names nothing is done. What is not completely
 * visible is checked again, at the times above. After the last check a tag that is listed without some of its
 * documents is done, because not every tag has all of them; one that is not listed is given up.
 */
export function afterRefresh(row: Waiting, visibility: Visibility, now: number): Settlement {
  const refreshedAt = row.refreshedAt ?? now
  const about = { id: row.id, refreshedAt }
  if (visibility === null) return { ...about, state: 'done', reason: null }
  if (visibility === 'visible') return { ...about, state: 'done', visibleAt: now, reason: null }
  if (visibility === 'alone') return { ...about, state: 'done', visibleAt: now, reason: ALONE }
  const from = startOfLooks(row, now)
  const next = LOOKS_MS.find((after) => from + after > now)
  if (next !== undefined) {
    const reason = `not yet: ${MISSING[visibility]}`
    return { ...about, refreshedAt: from, state: 'pending', dueAt: from + next, reason }
  }
  const reason = `${MISSING[visibility]}, ten minutes after the refresh`
  if (visibility === 'partly') return { ...about, state: 'done', visibleAt: now, reason }
  const why = visibility === 'absent' ? 'not found here' : 'it was replaced since, or is not listed yet'
  return { ...about, state: 'dead', reason: `${why}: ${reason}` }
}

/**
 * When the refresh ended from which looks are counted. Where a look is not at its time, it is moved along: so every look is made, as
 * long after the one before as it should be, whatever the clock shows.
 */
function startOfLooks({ refreshedAt, dueAt }: Waiting, now: number): number {
  if (refreshedAt === null) return now
  const isOnTime = Math.abs(now - dueAt) <= LATE_MS
  return isOnTime ? refreshedAt : now - Math.max(0, dueAt - refreshedAt)
}

const ALONE = 'the tag is listed; none of its documents is mirrored (catalog.scope, catalog.patterns)'

const MISSING: Record<Exclude<Visibility, 'visible' | 'alone' | null>, string> = {
  partly: 'the tag is there, some of its documents are not',
  'other digest': 'the tag is listed with another digest than announced',
  absent: 'the stored list of tags does not have it',
}

/** Finds what was announced, as readers see it. */
export interface AnnouncedReader {
  readonly findAnnounced: (target: EventTarget) => Announced
}

/**
 * Returns what readers see of an announcement. Null when it names neither a tag nor a digest, or no catalog is mirrored:
 * there is nothing to look for.
 */
export function visibilityOf(target: EventTarget, catalog: AnnouncedReader | null): Visibility {
  if (catalog === null || !isSpecific(namesOf(target))) return null
  const { listed, digestMatches, artifacts } = catalog.findAnnounced(target)
  if (!listed) return 'absent'
  if (digestMatches === false) return 'other digest'
  if (artifacts === 'out of scope') return 'alone'
  return artifacts === 'lacking' || artifacts === 'none yet' ? 'partly' : 'visible'
}

/** The reason of a dead letter that was settled by what came later. */
const ARRIVED = 'brought by a sync after it was given up'

/**
 * Settles a dead letter whose tags a sync brought since: each is stored with the announced digest, or, where none was announced,
 * was looked for before in vain. Null: it stays.
 */
export function afterArrival({ id, target, refreshedAt }: Waiting, catalog: AnnouncedReader, now: number) {
  const hasArrived = (one: EventTarget): boolean => {
    const names = namesOf(one)
    if (!isSpecific(names)) return false
    const { listed, digestMatches } = catalog.findAnnounced(one)
    if (digestMatches !== null) return digestMatches
    return names.digest === null && listed && refreshedAt !== null
  }
  if (target === null || !targetsOf(target).every(hasArrived)) return null
  return { id, state: 'done', visibleAt: now, reason: ARRIVED } satisfies Settlement
}
