import { pino } from 'pino'
import { expect, onTestFinished } from 'vitest'
import { loadQuick } from '../../support/limits.ts'
import { createLog } from '../../../src/base/log.ts'
import type { Parts } from '../../../src/daemon/feature.ts'
import { createInboxView } from '../../../src/daemon/inbox-view.ts'
import { startRelay } from '../../../src/features/relay/start.ts'
import { createSignals } from '../../../src/daemon/signals.ts'
import { openInbox, openReader } from '../../../src/store/database/open.ts'
import { createRelayOutbox } from '../../../src/store/webhooks/outbox.ts'
import { createReads } from '../../../src/store/reads.ts'
import { openWrites } from '../../../src/store/writes.ts'
import { createInbox } from '../../../src/store/webhooks/inbox.ts'
import { scratch } from '../../store/fixtures.ts'
import { delivery } from '../../webhooks/inbox/inboxes.ts'
import { target } from './targets.ts'
import { longTest, test } from '../../support/tables.ts'

/** Starts the relay of a mirror that leads; every fault is its own. */
function relayOf({ config, log }: Pick<Parts, 'config' | 'log'>) {
  const isExplained = (): boolean => false
  const inbox = createInboxView({ config, log, isExplained, onFound: () => undefined })
  const leads = (): boolean => true
  const running = startRelay({ config, version: 'test', log, isExplained, inbox, leads, signals: createSignals() })
  return {
    placed: running.placed,
    async close() {
      await running.close?.()
      inbox.close()
    },
  }
}

longTest('a daemon without relay targets removes earlier ones for which nothing waits', async () => {
  const dir = scratch()
  openWrites(dir).close()
  const db = openInbox(dir)
  onTestFinished(() => void db.close())
  const outbox = createRelayOutbox(db)
  outbox.replaceTargets([{ name: null, url: 'http://127.0.0.1:9/hook' }], 0)
  const { config } = loadQuick({ env: { PATCHMIRROR_DATA_DIR: dir }, cwd: dir })
  const log = createLog({ level: 'error', format: 'json' })
  const passing = relayOf({ config, log })
  await expect.poll(() => outbox.listTargets()).toEqual([])
  await passing.close()
})

longTest('the log says what waits for a target that relay.targets does not have, by its name', async () => {
  const dir = scratch()
  openWrites(dir).close()
  const db = openInbox(dir)
  onTestFinished(() => void db.close())
  const outbox = createRelayOutbox(db)
  outbox.replaceTargets([{ name: 'ci', url: 'http://127.0.0.1:9/private' }], 0)
  const inbox = createInbox(db)
  inbox.receive({ ...delivery({ webhookId: 'msg_1' }), type: 'io.service.cr.image.created.v1' })
  inbox.settle([{ id: 1, state: 'done' }])
  outbox.passOn(outbox.listReady(1), true, 0)
  const { config } = loadQuick({ env: { PATCHMIRROR_DATA_DIR: dir }, cwd: dir })
  const lines: string[] = []
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) })
  const passing = relayOf({ config, log })
  await expect.poll(() => lines).toHaveLength(1)
  await passing.close()
  const said = 'relay: target ci is paused, as relay.targets does not have it; 1 event waits 4 days for it to come back'
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ level: 40, target: 1, pending: 1, msg: said })
})

longTest('the log names a disabled target by its number and name, never by its URL', async () => {
  const dir = scratch()
  openWrites(dir).close()
  const to = await target(410)
  const db = openInbox(dir)
  onTestFinished(() => void db.close())
  const env = { PATCHMIRROR_DATA_DIR: dir, PATCHMIRROR_RELAY_TARGETS: `ci=${to.url}` }
  const { config } = loadQuick({ env, cwd: dir })
  const lines: string[] = []
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) })
  const passing = relayOf({ config, log })
  const inbox = createInbox(db)
  inbox.receive({ ...delivery({ webhookId: 'msg_1' }), type: 'io.service.cr.image.created.v1' })
  inbox.settle([{ id: 1, state: 'done' }])
  await expect.poll(() => lines).toHaveLength(1)
  await passing.close()
  const told = JSON.parse(lines[0] ?? '') as unknown
  expect(told).toMatchObject({ level: 40, target: 1, state: 'disabled', reason: 'it answered 410' })
  expect(lines[0]).toContain('patchmirror relay --enable ci')
  expect(lines[0]).not.toContain('127.0.0.1')
  expect(lines[0]).not.toContain('private')
})

test('a relay has its first position before the daemon starts to sync, so that no first snapshot is skipped', async () => {
  const dir = scratch()
  openWrites(dir).close()
  const mirror = openReader(dir)
  if (mirror === null) throw new Error('the database is not there')
  onTestFinished(() => void mirror.close())
  const instance = createReads(mirror).secrets.readInstance()
  const db = openInbox(dir)
  onTestFinished(() => void db.close())
  const env = { PATCHMIRROR_DATA_DIR: dir, PATCHMIRROR_RELAY_TARGETS: 'http://127.0.0.1:9/hook' }
  const { config } = loadQuick({ env, cwd: dir })
  const passing = relayOf({ config, log: createLog({ level: 'error', format: 'json' }) })
  await passing.placed
  expect(createRelayOutbox(db).cursors.snapshot.read(instance)).toBe(0)
  await passing.close()
})
