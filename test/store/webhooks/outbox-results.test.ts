import { expect, onTestFinished, test } from 'vitest'
import { openInbox } from '../../../src/store/database/open.ts'
import { createRelayOutbox } from '../../../src/store/webhooks/outbox.ts'
import { NOW, scratch } from '../../webhooks/inbox/inboxes.ts'

/** An outbox with one target, whose two deliveries are under way. */
function sending() {
  const db = openInbox(scratch())
  onTestFinished(() => void db.close())
  const outbox = createRelayOutbox(db)
  outbox.replaceTargets([{ name: null, url: 'http://127.0.0.1:9/hook' }], NOW)
  outbox.cursors.snapshot.place(0)
  const messages = ['one', 'two'].map((webhookId, at) => ({
    webhookId,
    body: Buffer.from('{}'),
    deliver: true,
    log: at + 1,
  }))
  outbox.passOnLog('snapshot', { messages, instance: 'a', end: 2 }, NOW)
  const due = outbox.listDue({ target: 1, now: NOW, longestMs: 1000, limit: 9 })
  return { outbox, due }
}

test('a delivery that succeeds after another one disabled its target leaves the target disabled', () => {
  const { outbox, due } = sending()
  const results = due.map(({ target, event }) => ({ target, event, at: NOW, seen: 0, latest: NOW }))
  const [first, second] = results
  if (first === undefined || second === undefined) throw new Error('there are not two deliveries')
  outbox.settle([{ ...first, kind: 'disabled', reason: 'it answered 410' }])
  expect(outbox.listTargets()).toMatchObject([{ pending: 0, givenUp: 2 }])
  outbox.settle([{ ...second, at: NOW + 1, kind: 'done' }])
  expect(outbox.listTargets()).toMatchObject([
    { state: 'disabled', since: NOW, reason: 'it answered 410', deliveredAt: NOW + 1, pending: 0, givenUp: 1 },
  ])
})
