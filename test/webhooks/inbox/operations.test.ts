import { expect, onTestFinished, test } from 'vitest'
import { type Db, openInbox } from '../../../src/store/database/open.ts'
import { createInbox } from '../../../src/store/webhooks/inbox.ts'
import { type InboxReply, answerBatch, createOperations } from '../../../src/webhooks/inbox/operations.ts'
import { delivery, scratch } from './inboxes.ts'

/** Receives these in one turn, over the connection that the thread would have. */
function receive(db: Db, dir: string, bodies: readonly string[]): InboxReply[] {
  const questions = bodies.map((body, id) => ({
    id,
    asked: { name: 'receive' as const, args: [delivery({ webhookId: `evt_${id}`, body: Buffer.from(body) })] },
  }))
  return answerBatch(db, createOperations(db), questions, { dataDir: dir, refuseLoss: () => undefined })
}

function open(): { db: Db; dir: string } {
  const dir = scratch()
  const db = openInbox(dir)
  onTestFinished(() => void db.close())
  return { db, dir }
}

test('a delivery for which the disk has no space is refused as storage, and one that fits is stored', () => {
  const { db, dir } = open()
  const room = Number(db.pragma('max_page_count', { simple: true }))
  db.pragma('max_page_count = 30')
  const replies = receive(db, dir, ['{}', 'x'.repeat(400_000), '{"a":1}'])
  expect(replies).toMatchObject([{ result: 'new' }, { failure: { code: 'storage' } }, { result: 'new' }])
  expect(replies[1]).toMatchObject({ failure: { message: expect.stringContaining('is full') as string } })
  expect(createInbox(db).counts()).toMatchObject({ pending: 2 })
  db.pragma(`max_page_count = ${room}`)
  expect(receive(db, dir, ['{}', 'x'.repeat(400_000), '{"a":1}'])).toMatchObject([
    { result: 'duplicate' },
    { result: 'new' },
    { result: 'duplicate' },
  ])
})

test('a transaction that fails refuses every delivery in it', () => {
  const { db, dir } = open()
  // As SQLite itself does when the disk fails in the middle: the statement takes the whole transaction with it.
  db.exec(`CREATE TEMP TRIGGER lost BEFORE INSERT ON main.inbox WHEN NEW.webhook_id = 'evt_1'
    BEGIN SELECT RAISE(ROLLBACK, 'given up'); END`)
  const replies = receive(db, dir, ['{}', '{}', '{}'])
  expect(replies.every((reply) => 'failure' in reply)).toBe(true)
  expect(db.inTransaction).toBe(false)
  db.exec('DROP TRIGGER lost')
  expect(createInbox(db).listRows(null, 99)).toEqual([])
  expect(receive(db, dir, ['{}', '{}'])).toMatchObject([{ result: 'new' }, { result: 'new' }])
})

test('a delivery is refused as storage while another process locks the database', () => {
  const { db, dir } = open()
  const other = openInbox(dir)
  other.exec('BEGIN IMMEDIATE')
  db.pragma('busy_timeout = 10')
  expect(receive(db, dir, ['{}'])).toMatchObject([{ failure: { code: 'storage' } }])
  other.exec('ROLLBACK')
  other.close()
  expect(receive(db, dir, ['{}'])).toMatchObject([{ result: 'new' }])
})
