import { copyFileSync, existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { createKeyFiles } from '../../../src/features/bundles/format/keys.ts'
import type { Status } from '../../../src/server/status/report.ts'
import { target } from '../../features/relay/targets.ts'
import { openWorld } from '../../support/daemons.ts'

const HAS_PROC = existsSync('/proc/self/task')
const threads = (pid: number): number => readdirSync(`/proc/${pid}/task`).length

const settledIn = ({ boxes }: Status): number =>
  (boxes?.inbox?.refused ?? 0) + (boxes?.inbox?.superseded ?? 0) + (boxes?.inbox?.imported ?? 0)

/**
 * Longer than it takes until all threads rest that have nothing to do, milliseconds: a scheduled run, every two minutes, may have
 * just started the thread of syncs again.
 */
const REST_MS = 100_000

/** The thread of syncs, that of the relay and that of the bundle folders. */
const RESTING = 3

test.skipIf(!HAS_PROC)(
  'threads that have nothing to do end, each kind of work starts its thread again, and what they counted is kept',
  async () => {
    const to = await target((response) => void response.writeHead(204).end())
    const world = await openWorld({ records: 40, service: false })
    onTestFinished(() => world.close())
    const inbox = join(world.dir, 'inbox')
    const outbox = join(world.dir, 'outbox')
    const { line } = createKeyFiles(join(world.dir, 'key'))
    const daemon = await world.serve({
      PATCHMIRROR_RELAY_TARGETS: to.url,
      PATCHMIRROR_BUNDLE_SIGNING_KEYS: join(world.dir, 'key'),
      PATCHMIRROR_BUNDLE_TRUSTED_KEYS: line,
      PATCHMIRROR_BUNDLE_INBOX: inbox,
      PATCHMIRROR_BUNDLE_OUTBOX: outbox,
      PATCHMIRROR_BUNDLE_POLL_SECONDS: '1',
      PATCHMIRROR_OSV_SCHEDULE: '*/2 * * * *',
      PATCHMIRROR_SYNC_JITTER_SECONDS: '0',
    })
    const pid = daemon.child.pid ?? 0
    const status = async () => (await (await fetch(`${daemon.url}/-/status`)).json()) as Status
    const bundles = () => readdirSync(outbox).filter((name) => name.endsWith('.zip'))
    await expect.poll(() => to.got.length).toBeGreaterThan(0)
    await expect.poll(() => bundles().length).toBeGreaterThan(0)
    const busy = threads(pid)
    const mostRest = () =>
      expect.poll(() => threads(pid), { timeout: REST_MS, interval: 500 }).toBeLessThanOrEqual(busy - RESTING)
    await mostRest()
    const delivered = to.got.length
    const exported = bundles()

    // A bundle of its own: it settles it, and imports nothing.
    copyFileSync(join(outbox, bundles()[0] ?? ''), join(inbox, 'own.bundle.zip'))
    await expect.poll(async () => settledIn(await status())).toBe(1)
    const settled = (await status()).boxes?.inbox
    expect(to.got).toHaveLength(delivered)
    await mostRest()
    expect((await status()).boxes).toMatchObject({
      inbox: settled,
      outbox: { problem: null },
    })

    world.sandbox.feed.change(3) // the schedule's next run finds it
    await expect.poll(() => to.got.length).toBeGreaterThan(delivered)
    await expect.poll(() => bundles().some((name) => !exported.includes(name))).toBe(true)
    await mostRest()
    const { sources, boxes } = await status()
    expect(sources.find(({ name }) => name === 'osv')).toMatchObject({ state: 'complete' })
    expect(boxes).toMatchObject({ inbox: settled, outbox: { problem: null } })
  },
)
