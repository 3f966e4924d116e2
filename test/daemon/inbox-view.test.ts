import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { createInboxView } from '../../src/daemon/inbox-view.ts'
import { openInbox } from '../../src/store/database/open.ts'
import { createRelayOutbox } from '../../src/store/webhooks/outbox.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }))
afterEach(() => void vi.useRealTimers())

/** Until the next look at the file. */
const LOOK_MS = 1_000

test('webhooks.db is read once it is there, and what any connection writes to it is noticed', () => {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-view-'))
  onTestFinished(() => rmSync(dir, { recursive: true }))
  const view = createInboxView(dir, (work) => work())
  onTestFinished(() => view.close())
  let noticed = 0
  view.onWritten(() => (noticed += 1))
  expect(view.reads()).toBeNull()
  const db = openInbox(dir)
  onTestFinished(() => void db.close())
  vi.advanceTimersByTime(LOOK_MS)
  expect(noticed).toBe(1)
  vi.advanceTimersByTime(LOOK_MS)
  expect(noticed).toBe(1) // nothing was written since
  expect(view.reads()?.listTargets()).toEqual([])
  createRelayOutbox(db).replaceTargets(['https://chat.example.com/a'])
  vi.advanceTimersByTime(LOOK_MS)
  expect(noticed).toBe(2)
  expect(view.reads()?.listTargets()).toHaveLength(1)
})

test('a fault of the database is left to the caller, and no listener is called', () => {
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
  vi.advanceTimersByTime(2 * LOOK_MS)
  expect(faults).toBe(2)
})
