import { type EventTarget, targetsOf } from '../../domain/image-reference.ts'
import type { Db } from '../database/open.ts'
import { DISMISSED } from './inbox.ts'

/** When an event that is done was received, stored, refreshed for and seen; unix milliseconds. */
export interface EventTimes {
  readonly receivedAt: number
  readonly storedAt: number
  readonly refreshedAt: number
  readonly visibleAt: number | null
}

/** An event that named something, and whether what it named was looked for to the end in vain. */
export interface AnnouncedTag {
  readonly target: EventTarget
  /** Unix milliseconds. */
  readonly receivedAt: number
  readonly unconfirmed: boolean
}

/** What polls are compared with; times in unix milliseconds. */
export interface Heard {
  /** Newest first. */
  readonly announcements: readonly AnnouncedTag[]
  /** Of the oldest and the newest delivery that is remembered. */
  readonly firstAt: number | null
  readonly lastAt: number | null
}

/** The most announcements that are compared. */
const MAX_ANNOUNCEMENTS = 5_000

type StoredAnnouncement = Omit<AnnouncedTag, 'target' | 'unconfirmed'> & {
  target: string
  unconfirmed: number
}

/** Reads of the inbox for reports, on any connection to webhooks.db. */
export function createInboxReports(db: Db) {
  const times = db.prepare<[number], EventTimes>(
    `SELECT received_at AS receivedAt, stored_at AS storedAt, refreshed_at AS refreshedAt, visible_at AS visibleAt
     FROM inbox WHERE state = 'done' AND refreshed_at IS NOT NULL AND replays = 0 ORDER BY id DESC LIMIT ?`,
  )
  const announced = db.prepare<[number], StoredAnnouncement>(
    `SELECT target, received_at AS receivedAt, state = 'dead' AND refreshed_at IS NOT NULL AS unconfirmed
     FROM inbox WHERE received_at >= ? AND target IS NOT NULL AND (state <> 'ignored' OR reason = '${DISMISSED}')
     ORDER BY id DESC LIMIT ${MAX_ANNOUNCEMENTS}`,
  )
  const at = (order: 'ASC' | 'DESC') =>
    db.prepare<[], number>(`SELECT received_at FROM inbox ORDER BY id ${order} LIMIT 1`).pluck()
  const [first, last] = [at('ASC'), at('DESC')]
  return {
    /** Of the newest events that are done; not of those replayed, whose time is that of whoever replayed them. */
    eventTimes: (limit: number): EventTimes[] => times.all(limit),
    /** What was announced from a moment on (unix milliseconds). */
    announcedSince: (from: number): Heard => {
      const announcements = announced.all(from).flatMap(({ target, receivedAt, unconfirmed }) =>
        targetsOf(JSON.parse(target) as EventTarget).map((one) => ({
          ...{ target: one, receivedAt },
          unconfirmed: unconfirmed === 1,
        })),
      )
      return { announcements, firstAt: first.get() ?? null, lastAt: last.get() ?? null }
    },
  }
}
