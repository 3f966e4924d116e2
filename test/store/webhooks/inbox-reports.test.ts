import { expect, onTestFinished, test } from 'vitest'
import { DAY_MS } from '../../../src/base/time.ts'
import { openInbox } from '../../../src/store/database/open.ts'
import { createInboxReports } from '../../../src/store/webhooks/inbox-reports.ts'
import { createInbox } from '../../../src/store/webhooks/inbox.ts'
import { figuresFrom, latencyOf } from '../../../src/webhooks/refresh/report.ts'
import { NOW, delivery, scratch } from '../../webhooks/inbox/inboxes.ts'

function opened() {
  const db = openInbox(scratch())
  onTestFinished(() => void db.close())
  return { inbox: createInbox(db), reports: createInboxReports(db) }
}

const target = {
  repository: 'library/python',
  tag: '3.12',
  digest: null,
  arch: null,
  subject: null,
}

test('due rows are read page by page, and the next due time is known', () => {
  const { inbox } = opened()
  expect(inbox.nextDueAt()).toBeNull()
  for (let i = 1; i <= 5; i++) inbox.receive(delivery({ webhookId: `e${i}` }))
  inbox.settle([{ id: 2, state: 'pending', attempts: 1, dueAt: NOW + 60_000 }])
  const first = inbox.listPending(NOW, 2)
  expect(first.map(({ id }) => id)).toEqual([1, 3])
  expect(inbox.listPending(NOW, 9, 3).map(({ id }) => id)).toEqual([4, 5])
  inbox.settle([1, 3, 4, 5].map((id) => ({ id, state: 'done' })))
  expect(inbox.nextDueAt()).toBe(NOW + 60_000)
})

test('a row that is delayed beyond any delay was due before the clock went backwards', () => {
  const { inbox } = opened()
  for (const id of ['far', 'near']) inbox.receive(delivery({ webhookId: id }))
  inbox.settle([
    { id: 1, state: 'pending', dueAt: NOW + 60_001 },
    { id: 2, state: 'pending', dueAt: NOW + 60_000 },
  ])
  expect(inbox.listPending(NOW, 9, 0, 60_000).map(({ id }) => id)).toEqual([1])
  expect(inbox.listPending(NOW, 9)).toEqual([])
})

test('a replayed row starts again, and keeps when it became visible first', () => {
  const { inbox } = opened()
  inbox.receive(delivery())
  inbox.settle([{ id: 1, state: 'dead', refreshedAt: NOW + 1, visibleAt: NOW + 2, reason: 'x' }])
  expect(inbox.replay(1, NOW + 9)).toBe(true)
  const anew = {
    state: 'pending',
    refreshedAt: null,
    visibleAt: NOW + 2,
    reason: null,
    dueAt: NOW + 9,
  }
  expect(inbox.readRow(1)).toMatchObject(anew)
  inbox.settle([{ id: 1, state: 'dead', refreshedAt: NOW + 10 }])
  expect(inbox.replayDead(NOW + 9)).toBe(1)
  expect(inbox.readRow(1)).toMatchObject(anew)
  inbox.settle([{ id: 1, state: 'done', refreshedAt: NOW + 11, visibleAt: NOW + 12 }])
  expect(inbox.readRow(1)).toMatchObject({ state: 'done', visibleAt: NOW + 2 })
})

test('reports contain the times of processed rows and the announced tags, also without a result', () => {
  const { inbox, reports } = opened()
  expect(reports.announcedSince(0)).toEqual({ announcements: [], firstAt: null, lastAt: null })
  const rows = [
    { webhookId: 'seen', target },
    { webhookId: 'lost', target, receivedAt: NOW + 1000 },
    { webhookId: 'nameless', receivedAt: NOW + 2000 },
    { webhookId: 'other', target, state: 'ignored' as const },
  ]
  for (const row of rows) inbox.receive(delivery(row))
  inbox.settle([
    { id: 1, state: 'done', refreshedAt: NOW + 3000, visibleAt: NOW + 4000 },
    { id: 2, state: 'dead', refreshedAt: NOW + 3000 },
    { id: 3, state: 'done', refreshedAt: NOW + 3000 },
  ])
  const heard = reports.announcedSince(NOW)
  expect(heard.announcements).toEqual([
    { target, receivedAt: NOW + 1000, unconfirmed: true },
    { target, receivedAt: NOW, unconfirmed: false },
  ])
  expect(reports.announcedSince(NOW + 1).announcements).toHaveLength(1)
  expect(latencyOf(reports.eventTimes(10))).toEqual({
    events: 2,
    stored: { median: 0, p99: 0 },
    refreshed: { median: 1000, p99: 3000 },
    visible: { median: 4000, p99: 4000 },
  })
  expect(inbox.dismiss(null)).toBe(1)
  // It came, so what it named was announced; that it came to nothing is no news any more.
  expect(reports.announcedSince(NOW).announcements[0]).toMatchObject({ target, unconfirmed: false })
  inbox.replay(1, NOW + 9_000_000)
  inbox.settle([{ id: 1, state: 'done', refreshedAt: NOW + 9_000_001, visibleAt: NOW + 9_000_002 }])
  expect(inbox.readRow(1)).toMatchObject({ state: 'done', replays: 1 })
  expect(latencyOf(reports.eventTimes(10))).toMatchObject({ events: 1, visible: null })
  expect(latencyOf([])).toEqual({ events: 0, stored: null, refreshed: null, visible: null })
})

test('polls are compared with events from when all events are known, where there are more than are compared', () => {
  const db = openInbox(scratch())
  onTestFinished(() => void db.close())
  const inbox = createInbox(db)
  const at = (i: number): number => NOW + i * 60_000
  const fill = db.transaction(() => {
    for (let i = 0; i < 5_001; i++) inbox.receive(delivery({ webhookId: `e${i}`, target, receivedAt: at(i) }))
  })
  fill()
  const heard = createInboxReports(db).announcedSince(0)
  expect(heard).toMatchObject({ firstAt: NOW, knownSince: at(1) + DAY_MS })
  const arrival = { runId: 1, repository: 'library/python', tag: '3.11', digest: null, trigger: 'schedule' } as const
  const arrivals = [0, 1, 2, 2_000].map((i) => ({ ...arrival, at: at(i) }))
  const figures = { times: [], heard, arrivals, startedAt: NOW, now: at(5_001) }
  expect(figuresFrom({ ...figures, isOn: true }).misses).toMatchObject({ arrivals: 1, unannounced: 1 })
  expect(figuresFrom({ ...figures, isOn: false }).misses).toBeNull() // nothing is compared
})
