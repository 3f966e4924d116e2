import { copyFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { expect, onTestFinished } from 'vitest'
import { createSnapshotLog, createWebhookLog, isContinuous } from '../../../src/server/followers/event-log.ts'
import { restoreBackup } from '../../../src/features/backup/restore.ts'
import { writeBackup } from '../../../src/features/backup/write.ts'
import { DAY_MS } from '../../../src/base/time.ts'
import { databaseNote } from '../../../src/store/database/daemon-settings.ts'
import { inboxPath, openInbox, openInboxReader, openReader, openWriter } from '../../../src/store/database/open.ts'
import { openFindings, readFindings } from '../../../src/store/findings/database.ts'
import { noteVerification, readLastVerification } from '../../../src/store/notes.ts'
import { createReads } from '../../../src/store/reads.ts'
import { lossOfInbox, noteNumbers, settleCopies } from '../../../src/store/given-numbers.ts'
import { createInboxReads } from '../../../src/store/webhooks/inbox.ts'
import { createOutboxReads } from '../../../src/store/webhooks/outbox.ts'
import { type RelayBench, bench, target } from '../relay/targets.ts'
import { longTest, test } from '../../support/tables.ts'
import { NOW, scratch } from '../../store/fixtures.ts'

const LATER = NOW + 100 * DAY_MS
const MAX_DAYS = 4

/** Backs a folder up now, and restores it at another time. */
async function restoredAt(dataDir: string, now: number) {
  const path = join(scratch(), 'backup.zip')
  const options = { dataDir, path, force: false, isPrivate: false, program: 'patchmirror/test' }
  await writeBackup({ ...options, secretFile: join(dataDir, 'none'), now: () => NOW })
  const dir = join(scratch(), 'data')
  const times = { now: () => now }
  const { dropped } = await restoreBackup({ path, dataDir: dir, newIdentity: false, ...times })
  return { dir, dropped }
}

/** The places in both logs of a folder, and whether they are continuous from others on. */
function logsOf(dir: string) {
  const mirror = openReader(dir)
  const inbox = openInboxReader(dir)
  if (mirror === null || inbox === null) throw new Error('no database')
  onTestFinished(() => [mirror, inbox].forEach((db) => db.close()))
  const snapshots = createSnapshotLog(createReads(mirror))
  const events = createWebhookLog(createOutboxReads(inbox))
  return {
    places: (): [number, number] => [snapshots.last(), events.last()],
    isKnown: ([snapshot, event]: readonly [number, number]): [boolean, boolean] => [
      isContinuous(snapshots, snapshot),
      isContinuous(events, event),
    ],
  }
}

/** The earliest Last-Modified that a folder serves, Unix seconds; null: that of what is stored. */
function floorOf(dir: string): number | null {
  const db = openReader(dir) ?? expect.fail('no database')
  onTestFinished(() => void db.close())
  return createReads(db).feeds.readDateFloor()
}

/** A mirror with two targets of which none takes anything: a snapshot and two deliveries wait. */
async function waiting() {
  const to = [await target(503), await target(503)] as const
  const [standard, chat] = to
  const settings = { targets: [standard.url], chatTargets: [chat.url] }
  const made = bench(settings)
  await made.round()
  await made.publish('a', ['R-1'])
  made.deliver('msg_done')
  made.deliver('msg_pending', { state: 'pending' })
  await made.round()
  for (const one of to) {
    one.got.length = 0
    one.manner = 204
  }
  const again = async (dir: string, at: number): Promise<RelayBench> => {
    const restored = bench(settings, dir, at)
    for (let rounds = 0; rounds < 4; rounds++) {
      restored.pass(DAY_MS / 4) // every pause is over
      await restored.round()
    }
    return restored
  }
  return { made, to, again }
}

longTest(
  'a mirror that is restored after months relays nothing that waited, and then what is new under new ids',
  async () => {
    const { made, to, again } = await waiting()
    await made.publish('b', ['R-1', 'R-2'])
    const { dir, dropped } = await restoredAt(made.dir, LATER)
    expect(dropped).toEqual({ relayed: 6, received: 1 })
    expect([floorOf(made.dir), floorOf(dir)]).toEqual([null, LATER / 1000 + 1])
    const restored = await again(dir, LATER)
    expect(to.flatMap(({ got }) => got)).toEqual([])
    expect(restored.outbox.listTargets().map(({ givenUp, pending }) => [givenUp, pending])).toEqual([
      [3, 0],
      [3, 0],
    ])
    await restored.publish('c', ['R-1', 'R-2', 'R-3'])
    await restored.round()
    expect(to.map(({ got }) => got.length)).toEqual([1, 1])
    await made.publish('after the backup', ['R-1', 'R-9'])
    const ids = new Set(logIds(made))
    expect(ids.size).toBe(4)
    expect(ids.has(to[0].got[0]?.id ?? '')).toBe(false)
  },
)

/** Copies both databases of a folder into another one, as an operator does by hand. */
function copied(from: string): string {
  const dir = scratch()
  for (const name of ['mirror.db', 'webhooks.db']) {
    const db = new Database(join(from, name))
    db.exec(`VACUUM INTO '${join(dir, name)}'`)
    db.close()
  }
  return dir
}

test('databases from months ago that are put back by hand announce nothing old, and followers are notified', async () => {
  const { made, to, again } = await waiting()
  const dir = copied(made.dir)
  await made.publish('after the copy', ['R-1', 'R-9'])
  made.deliver('msg_after')
  await made.round()
  noteNumbers(made.dir)
  const at = { now: LATER, before: LATER - MAX_DAYS * DAY_MS }
  expect(settleCopies(made.dir, at)).toEqual([])
  copyFileSync(join(made.dir, 'serve.settings'), join(dir, 'serve.settings')) // it stayed where it was
  expect(settleCopies(dir, at)).toMatchObject([
    expect.stringMatching(/^mirror\.db is a copy from before: .* followers are notified/),
    expect.stringMatching(/^webhooks\.db is a copy from before: 4 relayed events and 1 deliveries/),
  ])
  expect(floorOf(dir)).toBeGreaterThan(LATER / 1000)
  to.forEach(({ got }) => got.splice(0))
  const restored = await again(dir, LATER)
  expect(to.flatMap(({ got }) => got)).toEqual([])
  await restored.publish('c', ['R-1', 'R-2', 'R-3'])
  expect(logsOf(dir).isKnown(logsOf(made.dir).places())).toEqual([false, false])
  noteNumbers(dir)
  expect(settleCopies(dir, at)).toEqual([])
})

test('a new database where another one was is not called a copy, and names the way back', async () => {
  const { made } = await waiting()
  noteNumbers(made.dir)
  const dir = scratch()
  copyFileSync(join(made.dir, 'serve.settings'), join(dir, 'serve.settings'))
  openWriter(dir).close()
  expect(settleCopies(dir, { now: LATER, before: LATER })).toEqual([
    expect.stringMatching(
      /^mirror\.db is new, and another one was here: .* followers .*patchmirror restore FILE.* relay.* webhooks\.db is new/,
    ),
  ])
  expect(databaseNote(dir).replacedAt).toBe(new Date(LATER).toISOString())
  expect(settleCopies(dir, { now: LATER, before: LATER })).toEqual([])
})

test('a lost webhooks.db is named, and the new one goes on with numbers that were never given', async () => {
  const { made } = await waiting()
  noteNumbers(made.dir)
  const given = logsOf(made.dir).places()
  const dir = scratch()
  copyFileSync(join(copied(made.dir), 'mirror.db'), join(dir, 'mirror.db'))
  copyFileSync(join(made.dir, 'serve.settings'), join(dir, 'serve.settings'))
  const at = { now: LATER, before: LATER }
  expect(settleCopies(dir, at)).toEqual([
    expect.stringMatching(
      /^webhooks\.db is new, and another one was here\. .*events that waited for the relay are lost/,
    ),
  ])
  expect(logsOf(dir).isKnown(given)).toEqual([true, false])
  expect(settleCopies(dir, at)).toEqual([])
})

test('a lost webhooks.db is named although nothing was given in it when it was noted', () => {
  const dir = scratch()
  const at = { now: LATER, before: LATER }
  openWriter(dir).close()
  expect(settleCopies(dir, at)).toEqual([])
  openInbox(dir).close()
  noteNumbers(dir)
  expect(settleCopies(dir, at)).toEqual([])
  for (const end of ['', '-wal', '-shm']) rmSync(`${inboxPath(dir)}${end}`, { force: true })
  const isLost = lossOfInbox(dir) !== null
  openInbox(dir).close()
  expect(settleCopies(dir, at, isLost)).toEqual([expect.stringContaining('another one was here')])
  expect(settleCopies(dir, at)).toEqual([])
})

test.each([
  ['new', (dir: string) => openWriter(dir).close()],
  [
    'from another mirror',
    (dir: string) => copyFileSync(join(copied(bench().dir), 'mirror.db'), join(dir, 'mirror.db')),
  ],
])('what was made from a database that was lost is not taken for that of one that is %s', async (_, replace) => {
  const { made } = await waiting()
  const dir = copied(made.dir)
  noteNumbers(dir)
  const verified = { endedAt: new Date(NOW).toISOString(), damaged: [], damagedCount: 0, healed: null }
  noteVerification(dir, { ...verified, since: verified.endedAt })
  openFindings(dir, () => undefined).close()
  for (const end of ['', '-wal', '-shm']) rmSync(join(dir, `mirror.db${end}`), { force: true })
  replace(dir)
  settleCopies(dir, { now: LATER, before: LATER })
  expect(readLastVerification(dir)).toBeNull()
  expect(readFindings(dir, () => true)).toBeNull()
})

/** The ids under which messages were relayed. */
function logIds({ outbox }: RelayBench): string[] {
  return outbox.listEvents(0, 100).map(({ webhookId }) => webhookId)
}

longTest('a mirror that is moved by a backup relays what waited, under the same ids', async () => {
  const { made, to, again } = await waiting()
  const { dir, dropped } = await restoredAt(made.dir, NOW + DAY_MS)
  expect(dropped).toEqual({ relayed: 0, received: 0 })
  const restored = await again(dir, NOW + DAY_MS)
  expect(new Set(to[0].got.map(({ id }) => id))).toEqual(new Set(logIds(made)))
  expect(to.map(({ got }) => got.length)).toEqual([2, 2])
  expect(restored.outbox.listTargets().map(({ pending }) => pending)).toEqual([0, 0])
})

longTest('a delivery that was received months before a restore requests no refresh', async () => {
  const { made } = await waiting()
  const { dir } = await restoredAt(made.dir, LATER)
  const db = openInboxReader(dir)
  if (db === null) throw new Error('no database')
  onTestFinished(() => void db.close())
  const inbox = createInboxReads(db)
  expect(inbox.listPending(LATER, 10)).toEqual([])
  expect(inbox.listRows('ignored', 10)).toMatchObject([
    {
      webhookId: 'msg_pending',
      reason: expect.stringContaining('restored from a backup') as string,
    },
  ])
})

longTest(
  'a follower whose place was given after the backup is told so, also when the log has grown beyond it',
  async () => {
    const { made, again } = await waiting()
    const { dir } = await restoredAt(made.dir, LATER)
    for (const id of ['b', 'c', 'd']) await made.publish(id, ['R-1', id])
    const given = logsOf(made.dir).places()
    const logs = logsOf(dir)
    expect(logs.isKnown(given)).toEqual([false, false])
    const restored = await again(dir, LATER)
    for (const id of ['e', 'f', 'g', 'h']) {
      await restored.publish(id, ['R-1', id])
      await restored.round()
      expect(logs.isKnown(given)).toEqual([false, false])
      expect(logs.isKnown(logs.places())).toEqual([true, true])
    }
    const other = await restoredAt(made.dir, LATER + DAY_MS)
    const last = logs.places()
    expect(logsOf(other.dir).isKnown(last)).toEqual([false, false])
  },
)
