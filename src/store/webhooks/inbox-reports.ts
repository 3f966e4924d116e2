import { type EventTarget, targetsOf } from '../../base/domain/image-reference.ts'
import { DAY_MS } from '../../base/time.ts'
import type { Db } from '../database/open.ts'
import { queries } from '../database/query.ts'
import { DISMISSED } from './inbox.ts'

/** When a completed event was received, stored, refreshed and seen; Unix milliseconds. */
export interface EventTimes {
  readonly receivedAt: number
  readonly storedAt: number
  readonly refreshedAt: number
  readonly visibleAt: number | null
}

/** An event that named something, and whether the search for it ended without success. */
export interface AnnouncedTag {
  readonly target: EventTarget
  /** Unix milliseconds. */
  readonly receivedAt: number
  readonly unconfirmed: boolean
}

/** Announcements to compare with polls; times in Unix milliseconds. */
export interface Announcements {
  /** Newest first. */
  readonly announcements: readonly AnnouncedTag[]
  /** Of the oldest and the newest stored delivery. */
  readonly firstAt: number | null
  readonly lastAt: number | null
  /** A day after the oldest announcement where older ones are left out; absent: none is. */
  readonly knownSince?: number | undefined
}

/** When a secret, by its label, signed a delivery the last time, Unix milliseconds. */
interface SecretUse {
  readonly label: string
  readonly at: number
}

/** Maximum number of announcements to compare. */
const MAX_ANNOUNCEMENTS = 5_000

type StoredAnnouncement = Omit<AnnouncedTag, 'target' | 'unconfirmed'> & {
  target: string
  unconfirmed: number
}

/** Creates reads of the inbox for reports, on any connection to webhooks.db. */
export function createInboxReports(db: Db) {
  const { all } = queries(db)
  const lastUses = all<[], SecretUse>('SELECT secret AS label, max(received_at) AS at FROM inbox GROUP BY secret')
  const announced = db.prepare<[number], StoredAnnouncement>(
    `SELECT target, received_at AS receivedAt, state = 'dead' AND refreshed_at IS NOT NULL AS unconfirmed
     FROM inbox WHERE received_at >= ? AND target IS NOT NULL AND (state <> 'ignored' OR reason = '${DISMISSED}')
     ORDER BY id DESC LIMIT ${MAX_ANNOUNCEMENTS}`,
  )
  const at = (order: 'ASC' | 'DESC') =>
    db.prepare<[], number>(`SELECT received_at FROM inbox ORDER BY id ${order} LIMIT 1`).pluck()
  const first = at('ASC')
  const last = at('DESC')
  return {
    lastUses,
    /** Whether no delivery is stored. */
    isEmpty: (): boolean => first.get() === undefined,
    /** Times of the newest completed events; replayed events are omitted, since the operator chose their time. */
    eventTimes: all<[limit: number], EventTimes>(
      `SELECT received_at AS receivedAt, stored_at AS storedAt, refreshed_at AS refreshedAt, visible_at AS visibleAt
       FROM inbox WHERE state = 'done' AND refreshed_at IS NOT NULL AND replays = 0 ORDER BY id DESC LIMIT ?`,
    ),
    /** Returns what was announced at or after a time (Unix milliseconds). */
    announcedSince: (from: number): Announcements => {
      const rows = announced.all(from)
      const announcements = rows.flatMap(({ target, receivedAt, unconfirmed }) =>
        targetsOf(JSON.parse(target) as EventTarget).map((one) => ({
          target: one,
          receivedAt,
          unconfirmed: unconfirmed === 1,
        })),
      )
      const oldest = rows.length === MAX_ANNOUNCEMENTS ? rows.at(-1) : undefined
      const knownSince = oldest === undefined ? undefined : oldest.receivedAt + DAY_MS
      return { announcements, firstAt: first.get() ?? null, lastAt: last.get() ?? null, knownSince }
    },
  }
}
