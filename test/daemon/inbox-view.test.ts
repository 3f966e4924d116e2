import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { loadQuick } from '../support/limits.ts'
import { type InboxView, createInboxView } from '../../src/daemon/inbox-view.ts'
import { inboxPath, openInbox } from '../../src/store/database/open.ts'
import { createRelayOutbox } from '../../src/store/webhooks/outbox.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }))
afterEach(() => void vi.useRealTimers())

/** Until the next look at the file. */
const LOOK_MS = 1_000

/** A view of a new folder, and the warnings about it. */
function opened() {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-view-'))
  onTestFinished(() => rmSync(dir, { recursive: true }))
  const { config } = loadQuick({ env: { PATCHMIRROR_DATA_DIR: dir }, cwd: dir })
  const warned: string[] = []
  const log = pino(
    { level: 'warn' },
    { write: (line: string) => void warned.push((JSON.parse(line) as { msg: string }).msg) },
  )
  const found = vi.fn()
  const view = createInboxView({ config, log, isExplained: () => false, onFound: found })
  onTestFinished(() => view.close())
  return { dir, view, warned, found }
}

const targetsIn = (view: InboxView): number =>
  view.read(
    (reads) => reads.listTargets().length,
    () => -1,
  )

test('webhooks.db is read once it is there, and what any connection writes to it is noticed', () => {
  const { dir, view } = opened()
  let noticed = 0
  view.onWritten(() => (noticed += 1))
  expect(targetsIn(view)).toBe(-1)
  const db = openInbox(dir)
  onTestFinished(() => void db.close())
  vi.advanceTimersByTime(LOOK_MS)
  expect(noticed).toBe(1)
  vi.advanceTimersByTime(LOOK_MS)
  expect(noticed).toBe(1) // nothing was written since
  expect(targetsIn(view)).toBe(0)
  createRelayOutbox(db).replaceTargets([{ name: null, url: 'https://chat.example.com/a' }], 0)
  vi.advanceTimersByTime(LOOK_MS)
  expect(noticed).toBe(2)
  expect(targetsIn(view)).toBe(1)
})

test('a database that cannot be read is warned of once, calls no listener, and what was seen last stays', () => {
  const { dir, view, warned } = opened()
  writeFileSync(inboxPath(dir), 'x'.repeat(8192))
  view.onWritten(() => expect.unreachable())
  vi.advanceTimersByTime(2 * LOOK_MS)
  expect(warned).toEqual([expect.stringMatching(/^what is passed on cannot be shown: .+webhooks\.db/)])
  expect([targetsIn(view), view.webhookLog.last(), view.webhookLog.count(0)]).toEqual([-1, 0, -1])
})

test('a database that was moved away is missed without any delivery, and found when it is put back', () => {
  const { dir, view, warned, found } = opened()
  const db = openInbox(dir)
  onTestFinished(() => void db.close())
  createRelayOutbox(db).replaceTargets([{ name: null, url: 'https://chat.example.com/a' }], 0)
  vi.advanceTimersByTime(LOOK_MS)
  renameSync(inboxPath(dir), join(dir, 'moved'))
  vi.advanceTimersByTime(2 * LOOK_MS)
  expect(warned).toEqual([expect.stringContaining('the file is not there any more')])
  expect([targetsIn(view), found.mock.calls.length]).toEqual([-1, 0])
  renameSync(join(dir, 'moved'), inboxPath(dir))
  vi.advanceTimersByTime(2 * LOOK_MS)
  expect([targetsIn(view), found.mock.calls.length]).toEqual([1, 1])
})
