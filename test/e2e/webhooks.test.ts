import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openInbox } from '../../src/store/database/open.ts'
import { createInboxReads } from '../../src/store/webhooks/inbox.ts'
import {
  type Receiving,
  PATIENT,
  SECRET,
  isServed,
  open,
  send,
  serve,
  synced,
  webhooksOf,
} from './receiving.ts'

async function kill({ child, finished }: Receiving): Promise<void> {
  child.kill('SIGKILL')
  await finished
}

describe('an event of the service', () => {
  test.each(['standard', 'vendor'] as const)(
    'makes the tag and its SBOM readable in the mirror, signed as %s, tried again until the mirror is there',
    async (dialect) => {
      const world = await open({ dialect, retryDelaysMs: Array.from({ length: 300 }, () => 200) })
      const first = await serve(world)
      await synced(first)
      const made = await world.patchmirror('webhooks', 'register', '--url', first.hook)
      expect(made.code, made.err).toBe(0)
      expect(made.err).toContain('a test event was delivered') // about a tag that is mirrored
      await kill(first)
      const tag = world.sandbox.service.addTag()
      const records = world.sandbox.service.deliveries.records
      await expect.poll(() => records.length, PATIENT).toBeGreaterThan(1)
      const second = await serve(world, { PATCHMIRROR_SYNC_CATCH_UP: 'false' })
      await expect.poll(() => isServed(second, tag), PATIENT).toBe(200)
      await expect.poll(() => isServed(second, tag, '/sbom'), PATIENT).toBe(200)
      await expect.poll(async () => (await webhooksOf(second)).counts?.done, PATIENT).toBe(2)
      const inbox = await world.patchmirror('webhooks', 'inbox', '--json')
      expect(JSON.parse(inbox.out)).toMatchObject([
        { state: 'done', dialect, secret: expect.any(String) as string, reason: null },
        { state: 'done' },
      ])
      expect(inbox.out).not.toContain('"visibleAt": null')
      const shown = await world.patchmirror('status')
      expect(shown.out).toMatch(/received to visible: median \d/)
      expect(await (await fetch(`${second.url}/-/metrics`)).text()).toMatch(
        /patchmirror_webhook_latency_seconds\{stage="visible",percentile="99"\} [\d.]+/,
      )
    },
    180_000,
  )

  test('that comes before its tag is listed is looked for again', async () => {
    const world = await open()
    const served = await serve(world)
    await synced(served)
    const made = await world.patchmirror('webhooks', 'register', '--url', served.hook)
    expect(made.code, made.err).toBe(0)
    await expect.poll(async () => (await webhooksOf(served)).counts?.done, PATIENT).toBe(1)
    world.sandbox.service.deliveries.faults.set({ kind: 'early' })
    const tag = world.sandbox.service.addTag()
    const note = async (): Promise<string> =>
      (await world.patchmirror('webhooks', 'inbox', '--state', 'pending')).out
    await expect.poll(note, PATIENT).toMatch(/not yet: the tag is not listed; next try/)
    world.sandbox.service.deliveries.reveal()
    await expect.poll(() => isServed(served, tag), PATIENT).toBe(200)
    await expect.poll(async () => (await webhooksOf(served)).counts?.done, PATIENT).toBe(2)
  })

  test('that is replayed by a command is refreshed for by the daemon that runs', async () => {
    const world = await open()
    world.env['PATCHMIRROR_WEBHOOKS_SECRETS'] = SECRET
    const served = await serve(world)
    await synced(served)
    const [tag = '', other = ''] = world.sandbox.service.ids('tags')
    const answers = [tag, other].map((one) => send(world, served.hook, one))
    expect(await Promise.all(answers)).toEqual([202, 202])
    const counts = async () => (await webhooksOf(served)).counts
    const refreshes = async (): Promise<number> => (await webhooksOf(served)).refresh.refreshes
    await expect.poll(counts, PATIENT).toMatchObject({ pending: 0, done: 2 })
    const before = await refreshes()
    const replayed = await world.patchmirror('webhooks', 'replay', '1')
    expect([replayed.code, replayed.out]).toEqual([0, expect.stringContaining('within a second')])
    await expect.poll(refreshes, PATIENT).toBe(before + 1)
    await expect.poll(counts, PATIENT).toMatchObject({ pending: 0, done: 2 })
    await kill(served)
    const offline = await world.patchmirror('status')
    expect(offline.out).toContain('webhooks: 1 secret, 0 pending, 0 dead, 2 done')
    expect(offline.out).toMatch(/received to visible: median \d/) // of the one that was not replayed
  })
})

describe('a daemon that is killed', () => {
  test('right after it has acknowledged an event refreshes for it when it is started again', async () => {
    const world = await open()
    world.env['PATCHMIRROR_WEBHOOKS_SECRETS'] = SECRET
    const first = await serve(world, { PATCHMIRROR_WEBHOOKS_DEBOUNCE_MS: '60000' })
    await synced(first)
    const tag = world.sandbox.service.addTag()
    expect(await send(world, first.hook, tag)).toBe(202)
    await kill(first)
    const second = await serve(world, { PATCHMIRROR_SYNC_CATCH_UP: 'false' })
    await expect.poll(() => isServed(second, tag), PATIENT).toBe(200)
    await expect
      .poll(async () => (await webhooksOf(second)).counts, PATIENT)
      .toMatchObject({
        pending: 0,
        done: 1,
      })
  })

  test('between commit and answer has each event once, when its sender tries again', async () => {
    const world = await open()
    world.env['PATCHMIRROR_WEBHOOKS_SECRETS'] = SECRET
    const first = await serve(world, { PATCHMIRROR_WEBHOOKS_DEBOUNCE_MS: '60000' })
    await synced(first)
    const tag = world.sandbox.service.addTag()
    const ids = Array.from({ length: 200 }, () => randomUUID())
    const db = openInbox(join(world.dir, 'data'))
    const inbox = createInboxReads(db)
    const outcomes = Promise.allSettled(ids.map((id) => send(world, first.hook, tag, id)))
    await expect.poll(() => inbox.counts().pending, { interval: 1 }).not.toBe(0)
    await kill(first)
    const answered = (await outcomes).filter(({ status }) => status === 'fulfilled')
    const stored = inbox.counts().pending
    expect(stored).toBeGreaterThanOrEqual(answered.length) // none acknowledged that is not stored
    const second = await serve(world, { PATCHMIRROR_SYNC_CATCH_UP: 'false' })
    const again = await Promise.all(ids.map((id) => send(world, second.hook, tag, id)))
    expect(again.filter((status) => status === 200)).toHaveLength(stored)
    expect(again.filter((status) => status === 202)).toHaveLength(ids.length - stored)
    await expect.poll(() => inbox.counts(), PATIENT).toMatchObject({ pending: 0, done: ids.length })
    expect(await isServed(second, tag)).toBe(200)
    db.close()
  })
})
