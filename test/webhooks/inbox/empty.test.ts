import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openInbox } from '../../../src/store/database/open.ts'
import { EMPTY, isInboxEmpty } from '../../../src/webhooks/inbox/empty.ts'
import { createOperations } from '../../../src/webhooks/inbox/operations.ts'
import { NOW, delivery, scratch, startInbox } from './inboxes.ts'

test('an empty inbox starts its thread with the first delivery, and answers as before until then', async () => {
  const dir = scratch()
  expect(isInboxEmpty(dir)).toBe(true)
  expect(existsSync(join(dir, 'webhooks.db'))).toBe(true)
  const inbox = await startInbox(dir, { isEmpty: true })
  expect(inbox.alive).toBe(true)
  expect(await inbox.counts()).toMatchObject({ pending: 0, oldestPendingAt: null })
  expect(await inbox.pending(NOW, 9)).toEqual([])
  expect(await inbox.prune(NOW)).toBe(0)
  expect(await inbox.receive(delivery())).toBe('new')
  expect(await inbox.counts()).toMatchObject({ pending: 1 })
  expect(isInboxEmpty(dir)).toBe(false)
})

test('the answers of an empty inbox are those of a thread that has an empty database', async () => {
  const inbox = await startInbox(scratch())
  const asked = {
    pending: inbox.call('pending', NOW, 9),
    dead: inbox.call('dead', 9, NOW),
    read: inbox.call('read', 1),
    nextDueAt: inbox.call('nextDueAt'),
    counts: inbox.call('counts'),
    eventTimes: inbox.call('eventTimes', 9),
    announcedSince: inbox.call('announcedSince', NOW),
    prune: inbox.call('prune', NOW),
  }
  expect(Object.keys(asked).sort()).toEqual(Object.keys(EMPTY).sort())
  const db = openInbox(scratch())
  onTestFinished(() => void db.close())
  const reads = Object.entries(createOperations(db)).filter(([, { writes }]) => !writes)
  expect(Object.keys(EMPTY)).toEqual(expect.arrayContaining(reads.map(([name]) => name)))
  for (const [name, answer] of Object.entries(asked))
    expect(await answer, name).toEqual(EMPTY[name as keyof typeof EMPTY])
})

test('the thread of an empty inbox that cannot start is reported with the first delivery, which is refused', async () => {
  const dir = scratch()
  writeFileSync(join(dir, 'webhooks.db'), 'not a database')
  const inbox = await startInbox(dir, { isEmpty: true })
  expect(await inbox.nextDueAt()).toBe(null)
  expect(inbox.failures).toEqual([])
  await expect(inbox.receive(delivery())).rejects.toMatchObject({ code: 'storage' })
  expect(inbox.failures).toHaveLength(1)
  expect(inbox.alive).toBe(false)
})

test('an empty inbox that is closed starts nothing', async () => {
  const inbox = await startInbox(scratch(), { isEmpty: true })
  await inbox.close()
  await expect(inbox.receive(delivery())).rejects.toMatchObject({ code: 'storage' })
})

test('a database that cannot be read is not called empty', () => {
  const dir = scratch()
  writeFileSync(join(dir, 'webhooks.db'), 'not a database')
  expect(isInboxEmpty(dir)).toBe(false)
})
