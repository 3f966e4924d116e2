import { describe, expect, test } from 'vitest'
import type { NewTag } from '../../../src/store/catalog/tags.ts'
import type { AnnouncedTag } from '../../../src/store/webhooks/inbox-reports.ts'
import { type Compared, WINDOW_MS, compareMisses } from '../../../src/webhooks/refresh/missed-events.ts'

const NOW = 1_800_000_000_000
const HOUR = 3_600_000

const arrival = (tag: string, hoursAgo: number, more: Partial<NewTag> = {}): NewTag => ({
  runId: 1,
  at: NOW - hoursAgo * HOUR,
  repository: 'library/python',
  tag,
  digest: `sha256:${'a'.repeat(64)}`,
  trigger: 'schedule',
  ...more,
})

const announced = (tag: string | null, hoursAgo: number, more: Partial<AnnouncedTag['target']> = {}) => {
  const nothing = { repository: null, digest: null, arch: null, subject: null }
  const target = { ...nothing, repository: 'cr.example.com/library/python', tag, ...more }
  return { target, receivedAt: NOW - hoursAgo * HOUR, unconfirmed: false }
}

const compare = (more: Partial<Compared>) =>
  compareMisses({
    arrivals: [],
    announcements: [],
    lastEventAt: null,
    expectedSince: 0,
    now: NOW,
    ...more,
  })

describe('changes found by polls and announced by events', () => {
  test('agree when each change was announced, before or after it was found', () => {
    const arrivals = [arrival('a', 5), arrival('b', 3), arrival('c', 2, { trigger: 'webhook' })]
    const announcements = [announced('a', 6), announced('b', 1)]
    expect(compare({ arrivals, announcements })).toEqual({
      arrivals: 3,
      unannounced: 0,
      missRate: 0,
      unconfirmed: 0,
      warning: null,
    })
  })

  test('disagree when a poll found a change without an event', () => {
    const arrivals = [arrival('a', 5), arrival('b', 3), arrival('c', 2), arrival('d', 1)]
    const found = compare({ arrivals, announcements: [announced('a', 6)], lastEventAt: NOW })
    expect(found).toMatchObject({ arrivals: 4, unannounced: 3, missRate: 0.75, warning: null })
  })

  test('are different for another repository or an earlier digest', () => {
    const digest = `sha256:${'b'.repeat(64)}`
    const other = announced('a', 5, { repository: 'library/node' })
    const before = announced('a', 50, { digest })
    const arrivals = [arrival('a', 5)]
    expect(compare({ arrivals, announcements: [other, before] }).unannounced).toBe(1)
    expect(compare({ arrivals, announcements: [announced('a', 5.5, { digest })] }).unannounced).toBe(0)
    const bySubject = announced(null, 5, {
      repository: null,
      subject: 'cr.example.com/library/python:a',
    })
    expect(compare({ arrivals, announcements: [bySubject] }).unannounced).toBe(0)
    const byDigest = announced(null, 5, { digest: arrivals[0]?.digest ?? null })
    expect(compare({ arrivals, announcements: [byDigest] }).unannounced).toBe(0)
  })

  test('are not compared before events could arrive, or without a secret', () => {
    const arrivals = [arrival('old', WINDOW_MS / HOUR + 1), arrival('early', 10), arrival('new', 0.1)]
    expect(compare({ arrivals, expectedSince: NOW - 5 * HOUR })).toMatchObject({
      arrivals: 0,
      missRate: null,
    })
    expect(compare({ arrivals: [arrival('a', 5)], expectedSince: null })).toMatchObject({
      arrivals: 0,
    })
  })

  test('make a subscription seem dead when changes come and events do not', () => {
    const arrivals = [arrival('a', 5), arrival('b', 4), arrival('c', 3), arrival('d', 2)]
    const silent = compare({ arrivals, lastEventAt: NOW - 4.5 * HOUR })
    expect(silent.warning).toContain('polls found 3 new tags since the last verified event')
    expect(compare({ arrivals, lastEventAt: NOW - 3.5 * HOUR }).warning).toBeNull()
    expect(compare({ arrivals: arrivals.slice(2) }).warning).toBeNull()
  })

  test('disagree when an announced change is never listed', () => {
    const announcements = [{ ...announced('ghost', 3), unconfirmed: true }, announced('a', 2)]
    expect(compare({ announcements }).unconfirmed).toBe(1)
  })
})
