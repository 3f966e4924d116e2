import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { createInboxView } from '../../src/daemon/inbox-view.ts'
import { openInbox } from '../../src/store/database/open.ts'
import { createRelayOutbox } from '../../src/store/webhooks/outbox.ts'

test('webhooks.db is read once it is there, and what any connection writes to it is noticed', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-view-'))
  onTestFinished(() => rmSync(dir, { recursive: true }))
  const view = createInboxView(dir, (work) => work())
  onTestFinished(() => view.close())
  let noticed = 0
  view.onWritten(() => (noticed += 1))
  expect(view.reads()).toBeNull()
  const db = openInbox(dir)
  onTestFinished(() => void db.close())
  await expect.poll(() => noticed).toBe(1)
  expect(view.reads()?.listTargets()).toEqual([])
  createRelayOutbox(db).replaceTargets(['https://chat.example.com/a'])
  await expect.poll(() => noticed).toBe(2)
  expect(view.reads()?.listTargets()).toHaveLength(1)
})

test('a fault of the database is left to the caller, and no listener is called', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-view-'))
  onTestFinished(() => rmSync(dir, { recursive: true }))
  openInbox(dir).close()
  let faults = 0
  const view = createInboxView(dir, (_work, otherwise) => {
    faults += 1
    return otherwise()
  })
  onTestFinished(() => view.close())
  view.onWritten(() => expect.unreachable())
  await expect.poll(() => faults).toBeGreaterThan(1)
})
