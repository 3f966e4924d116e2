import { renameSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { INBOX_LOG_BYTES, openInbox } from '../../../src/store/database/open.ts'
import { createInbox } from '../../../src/store/webhooks/inbox.ts'
import { type InboxThread, startInboxThread } from '../../../src/webhooks/inbox/thread.ts'
import { NOW, delivery, openInboxHere, scratch, startInbox } from './inboxes.ts'
import { mayMount, smallDisks } from '../../support/small-disk.ts'
import { bothTest, LONG, longTest, test } from '../../support/tables.ts'

const smallDisk = smallDisks()

/** A defect of the thread's own, which ends it. */
function crash(inbox: InboxThread): Promise<unknown> {
  return (inbox.call as (name: string) => Promise<unknown>)('no such operation')
}

longTest('a delivery is stored once, and visible to another process when the promise resolves', async () => {
  const dir = scratch()
  const inbox = await startInbox(dir)
  const target = {
    repository: 'library/python',
    tag: '3.12',
    digest: null,
    arch: 'amd64',
    subject: null,
  }
  expect(await inbox.receive(delivery({ target }))).toBe('new')
  expect(await inbox.receive(delivery({ target }))).toBe('duplicate')
  expect(await inbox.receive(delivery({ endpoint: 'staging' }))).toBe('new')
  const db = openInbox(dir)
  const [row] = createInbox(db).listRows(null, 9).reverse()
  expect(row).toMatchObject({ id: 1, endpoint: 'default', webhookId: 'evt_1', target, attempts: 0 })
  expect(createInbox(db).readRow(1)?.body).toEqual(delivery().body)
  expect(db.pragma('synchronous', { simple: true })).toBe(2)
  expect(statSync(join(dir, 'webhooks.db')).mode & 0o777).toBe(0o600)
  db.close()
})

test('a delivery with the id of another body is stored beside it, once', async () => {
  const dir = scratch()
  const inbox = await startInbox(dir)
  expect(await inbox.receive(delivery())).toBe('new')
  const other = delivery({ body: Buffer.from('other') })
  expect(await inbox.receive(other)).toBe('altered')
  expect(await inbox.receive(other)).toBe('duplicate')
  expect(await inbox.receive(delivery())).toBe('duplicate')
  const db = openInbox(dir)
  const rows = createInbox(db).listRows(null, 9)
  expect(rows.map(({ webhookId }) => webhookId)).toEqual([
    expect.stringMatching(/^evt_1:[0-9a-f]{16}$/) as string,
    'evt_1',
  ])
  expect(
    createInbox(db)
      .readRow(rows[0]?.id ?? 0)
      ?.body.toString(),
  ).toBe('other')
  db.close()
})

test('a delivery that arrives before the thread is ready is stored when it is', async () => {
  const inbox = startInboxThread({ dataDir: scratch(), keepMs: 60_000, onFailed: () => undefined })
  onTestFinished(() => inbox.close())
  expect(inbox.alive).toBe(false)
  expect(await inbox.receive(delivery())).toBe('new')
  expect(inbox.alive).toBe(true)
})

test('nothing is stored in a file that was moved away or replaced, and all goes on when it is back', async () => {
  const dir = scratch()
  const told: string[] = []
  const inbox = startInboxThread({
    dataDir: dir,
    keepMs: 60_000,
    onFailed: (message) => told.push(message),
    onRevived: () => told.push('revived'),
  })
  onTestFinished(() => inbox.close())
  expect(await inbox.receive(delivery())).toBe('new')
  const path = join(dir, 'webhooks.db')
  renameSync(path, `${path}.away`)
  const gone = /the file is not there any more\). If it was moved, put it back .* a new one\. The next syncs find/
  await expect(inbox.receive(delivery({ webhookId: 'evt_2' }))).rejects.toThrow(gone)
  await expect(inbox.counts()).rejects.toThrow(gone)
  writeFileSync(path, 'another')
  await expect(inbox.receive(delivery({ webhookId: 'evt_2' }))).rejects.toThrow('not the one that the daemon opened')
  renameSync(`${path}.away`, path)
  expect(await inbox.receive(delivery({ webhookId: 'evt_2' }))).toBe('new')
  expect(await inbox.counts()).toMatchObject({ pending: 2 })
  expect(new Set(told)).toEqual(
    new Set([expect.stringMatching(gone), expect.stringContaining('not the one'), 'revived']),
  )
})

test('a delivery that arrives before a thread that cannot start is refused', async () => {
  const dir = scratch()
  writeFileSync(join(dir, 'webhooks.db'), 'not a database')
  const failures: string[] = []
  const onFailed = (message: string): void => void failures.push(message)
  const inbox = startInboxThread({ dataDir: dir, keepMs: 60_000, onFailed })
  onTestFinished(() => inbox.close())
  await expect(inbox.receive(delivery())).rejects.toThrow('the inbox is not available now')
  expect(failures).toHaveLength(1)
})

test('two hundred identical deliveries at once are one row', async () => {
  const inbox = await startInbox(scratch())
  const all = await Promise.all(Array.from({ length: 200 }, () => inbox.receive(delivery())))
  expect(all.filter((outcome) => outcome === 'new')).toHaveLength(1)
  expect(await inbox.counts()).toMatchObject({ pending: 1 })
})

bothTest('thousands of deliveries at once are all stored in their order', async () => {
  const inbox = await startInbox(scratch())
  const count = LONG ? 10_000 : 1_000
  const started = Array.from({ length: count }, (_, i) => inbox.receive(delivery({ webhookId: `evt_${i}` })))
  expect(new Set(await Promise.all(started))).toEqual(new Set(['new']))
  expect(await inbox.counts()).toMatchObject({ pending: count })
  const rows = await inbox.pending(NOW, count)
  expect(rows.map(({ webhookId }) => webhookId)).toEqual(started.map((_, i) => `evt_${i}`))
})

longTest('a settled row has its new fields, and is no longer pending', async () => {
  const inbox = await startInbox(scratch())
  await inbox.receive(delivery())
  await inbox.settle([{ id: 1, state: 'pending', attempts: 1, dueAt: NOW + 5000, reason: 'no' }])
  expect(await inbox.pending(NOW, 9)).toEqual([])
  const [row] = await inbox.pending(NOW + 5000, 9)
  expect(row).toMatchObject({ attempts: 1, reason: 'no', refreshedAt: null })
  expect(row?.body).toEqual(Buffer.alloc(0))
  await inbox.settle([
    { id: 1, state: 'done', refreshedAt: NOW + 6000, reason: null },
    { id: 99, state: 'done' },
  ])
  expect(await inbox.counts()).toEqual({
    pending: 0,
    dead: 0,
    done: 1,
    ignored: 0,
    oldestPendingAt: null,
  })
  expect(await inbox.call('read', 1)).toMatchObject({ refreshedAt: NOW + 6000, attempts: 1 })
})

test('rows that another process makes pending again are seen by the thread', async () => {
  const dir = scratch()
  const inbox = await startInbox(dir)
  await inbox.receive(delivery({ state: 'dead', reason: 'tried too often' }))
  const db = openInbox(dir)
  expect(createInbox(db).replay(1, NOW)).toBe(true)
  expect(createInbox(db).replay(1, NOW)).toBe(false)
  db.close()
  expect(await inbox.pending(NOW, 9)).toMatchObject([{ id: 1, state: 'pending', reason: null }])
})

test('a delivery without type and image is replayed like any other', async () => {
  const dir = scratch()
  const inbox = openInboxHere(dir)
  await inbox.receive(delivery({ state: 'dead', type: null }))
  await inbox.receive(delivery({ state: 'dead', webhookId: 'evt_2' }))
  const db = openInbox(dir)
  expect(createInbox(db).replay(1, NOW)).toBe(true)
  expect(createInbox(db).replay(1, NOW)).toBe(false)
  expect(createInbox(db).replayDead(NOW)).toBe(1)
  db.close()
  expect(await inbox.counts()).toMatchObject({ pending: 2, dead: 0 })
})

test('old rows are deleted, pending ones never', async () => {
  const inbox = openInboxHere(scratch())
  for (const state of ['pending', 'done', 'ignored', 'dead'] as const)
    await inbox.receive(delivery({ webhookId: state, state }))
  await inbox.receive(delivery({ webhookId: 'young', state: 'done', receivedAt: NOW + 1 }))
  expect(await inbox.prune(NOW + 600_000)).toBe(0)
  expect(await inbox.prune(NOW + 600_001)).toBe(3)
  expect(await inbox.counts()).toMatchObject({ pending: 1, done: 1, ignored: 0, dead: 0 })
  expect(await inbox.receive(delivery({ webhookId: 'done' }))).toBe('new')
})

test('an operation that fails does not affect the others of its transaction', async () => {
  const inbox = openInboxHere(scratch())
  const bad = inbox.receive(delivery({ state: 3 as unknown as 'done', endpoint: null as never }))
  const good = inbox.receive(delivery())
  await expect(bad).rejects.toThrow(/NOT NULL/)
  expect(await good).toBe('new')
  expect(await inbox.counts()).toMatchObject({ pending: 1 })
})

longTest('an inbox thread that dies is reported and replaced, and deliveries are refused meanwhile', async () => {
  const revived = Promise.withResolvers<undefined>()
  const inbox = await startInbox(scratch(), {
    restartMs: 50,
    onRevived: () => revived.resolve(undefined),
  })
  await inbox.receive(delivery())
  const lost = crash(inbox)
  await expect(lost).rejects.toMatchObject({ code: 'storage' })
  expect(inbox.alive).toBe(false)
  await expect(inbox.receive(delivery())).rejects.toMatchObject({ code: 'storage' })
  await revived.promise
  expect(inbox.failures).toHaveLength(1)
  expect(await inbox.receive(delivery())).toBe('duplicate')
})

longTest('an inbox database that cannot be opened is reported, and opened as soon as possible', async () => {
  const dir = scratch()
  writeFileSync(join(dir, 'webhooks.db'), 'this is not a database, whatever its name says'.repeat(50))
  const revived = Promise.withResolvers<undefined>()
  const inbox = await startInbox(dir, {
    restartMs: 50,
    onRevived: () => revived.resolve(undefined),
  })
  expect(inbox.failures[0]).toContain('webhooks.db is damaged')
  expect(inbox.failures[0]).toContain('"patchmirror doctor --data --repair": it moves the file aside')
  await expect(inbox.receive(delivery())).rejects.toMatchObject({ code: 'storage' })
  writeFileSync(join(dir, 'webhooks.db'), '')
  await revived.promise
  expect(await inbox.receive(delivery())).toBe('new')
})

longTest('operations requested before the inbox closes are done before it closes', async () => {
  const dir = scratch()
  const inbox = await startInbox(dir)
  const asked = Array.from({ length: 100 }, (_, i) => inbox.receive(delivery({ webhookId: `${i}` })))
  await inbox.close()
  expect(new Set(await Promise.all(asked))).toEqual(new Set(['new']))
  await expect(inbox.receive(delivery())).rejects.toMatchObject({ code: 'storage' })
})

longTest('the log grows where the disk has room for more, and does not fill a small one', async (context) => {
  if (!mayMount()) return context.skip('no file system can be mounted')
  const small = smallDisk('12m')
  const large = scratch()
  const logOf = (dir: string): number => statSync(join(dir, 'webhooks.db-wal')).size
  const inbox = await startInbox(small)
  await startInbox(large)
  await expect.poll(() => logOf(large)).toBeGreaterThan(INBOX_LOG_BYTES)
  await inbox.receive(delivery())
  expect(logOf(small)).toBeLessThan(2 ** 20)
})
