import { randomUUID } from 'node:crypto'
import { expect, onTestFinished, test } from 'vitest'
import { openInbox } from '../../../src/store/database/open.ts'
import { createInboxReads } from '../../../src/store/webhooks/inbox.ts'
import { commandHost } from '../../support/hosted.ts'
import {
  PATIENT,
  SECRET,
  becomesReadable,
  isServed,
  open,
  send,
  serve,
  synced,
  webhooksOf,
} from '../../e2e/receiving.ts'

const command = commandHost()

/** The inbox of a data folder, read beside its daemon. */
function inboxOf(dataDir: string) {
  const db = openInbox(dataDir)
  onTestFinished(() => void db.close())
  return createInboxReads(db)
}

test('a tag announced while the mirror was stopped is readable with its SBOM after its start, and a command replays a delivery', async () => {
  const world = await open({ retryDelaysMs: Array.from({ length: 300 }, () => 200) }, command)
  const daemon = await becomesReadable(world, 'standard')
  const counts = async () => (await webhooksOf(daemon)).counts
  const refreshes = async (): Promise<number> => (await webhooksOf(daemon)).refresh.refreshes
  const before = await refreshes()
  const replayed = await world.patchmirror('webhooks', 'resolve', '--replay', '1')
  expect([replayed.code, replayed.out]).toEqual([0, expect.stringContaining('within two seconds')])
  await expect.poll(refreshes, PATIENT).toBe(before + 1)
  await expect.poll(counts, PATIENT).toMatchObject({ pending: 0, done: 2 })

  await daemon.close()
  const offline = await world.patchmirror('status')
  expect(offline.out).toContain('webhooks: 1 secret, 0 pending, 0 dead, 2 done')
  expect(offline.out).toMatch(/received to visible: median \d/) // of the one that was not replayed
})

test('an event that comes before its tag is listed stays pending with the reason, and is done once the tag is listed and it is replayed', async () => {
  const world = await open({}, command)
  const daemon = await serve(world)
  await synced(daemon)
  const made = await world.patchmirror('webhooks', 'register', '--url', daemon.hook)
  expect(made.code, made.err).toBe(0)
  const { deliveries } = world.sandbox.service
  deliveries.faults.set({ kind: 'early' })
  const tag = world.sandbox.service.addTag()
  const inbox = inboxOf(world.data)
  await expect.poll(() => inbox.listRows('pending', 1)[0]?.reason, PATIENT).toContain('not yet')
  const listed = await world.patchmirror('webhooks', 'inbox', '--state', 'pending')
  expect(listed.out).toMatch(/not yet: the stored list of tags does not have it; next try/)
  deliveries.reveal()
  expect((await world.patchmirror('webhooks', 'resolve', '--replay', '2')).code).toBe(0)
  await expect.poll(() => isServed(daemon, tag), PATIENT).toBe(200)
  const counts = async () => (await webhooksOf(daemon)).counts
  await expect.poll(counts, PATIENT).toMatchObject({ pending: 0, done: 2 })
})

test('a daemon that is killed stores each event once, and refreshes for acknowledged events after its restart', async () => {
  const world = await open({}, command)
  world.env['PATCHMIRROR_WEBHOOKS_SECRETS'] = SECRET
  const first = await world.serve({ LIMIT_WEBHOOKS_DEBOUNCE_MS: '30000' })
  world.env['PATCHMIRROR_SERVER_LISTEN'] = new URL(first.url).host
  await synced(first)
  const hook = `${first.url}/-/webhooks`
  const inbox = inboxOf(world.data)
  expect(await send(world, hook, world.sandbox.service.addTag())).toBe(202) // refreshed at once; what follows waits
  await expect.poll(() => inbox.counts(), PATIENT).toMatchObject({ pending: 0, done: 1 })
  const acknowledged = world.sandbox.service.addTag()
  const tag = world.sandbox.service.addTag()
  const ids = Array.from({ length: 200 }, () => randomUUID())
  expect(await send(world, hook, acknowledged)).toBe(202)
  const outcomes = Promise.allSettled(ids.map((id) => send(world, hook, tag, id)))
  await expect.poll(() => inbox.counts().pending, { interval: 1 }).toBeGreaterThan(1)
  first.child.kill('SIGKILL')
  await first.finished
  const answered = (await outcomes).filter(({ status }) => status === 'fulfilled')
  const stored = inbox.counts().pending - 1
  expect(stored).toBeGreaterThanOrEqual(answered.length) // none acknowledged that is not stored

  const second = await serve(world, { LIMIT_SYNC_CATCH_UP: 'false' })
  await expect.poll(() => isServed(second, acknowledged), PATIENT).toBe(200) // nobody sent it again
  const again = await Promise.all(ids.map((id) => send(world, second.hook, tag, id)))
  expect(again.filter((status) => status === 200)).toHaveLength(stored)
  expect(again.filter((status) => status === 202)).toHaveLength(ids.length - stored)
  const done = ids.length + 2
  await expect.poll(() => inbox.counts(), PATIENT).toMatchObject({ pending: 0, done })
  expect(await isServed(second, tag)).toBe(200)
})
