import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { BoxesStatus } from '../../../src/base/reports/transfer.ts'
import { createKeyFiles } from '../../../src/features/bundles/format/keys.ts'
import { target } from '../../features/relay/targets.ts'
import { openWorld } from '../../support/daemons.ts'
import { longTest } from '../../support/tables.ts'

const boxesOf = async (url: string): Promise<BoxesStatus | undefined> => {
  const status = (await (await fetch(`${url}/-/status`)).json()) as { boxes?: BoxesStatus }
  return status.boxes
}

/** A daemon that publishes to an outbox, what a daemon needs that reads from there, and the folder of the two. */
async function outbox() {
  const world = await openWorld({ records: 10, service: false })
  onTestFinished(() => world.close())
  const folder = (name: string): string => join(world.dir, name)
  const box = folder('box')
  const { line } = createKeyFiles(folder('key'))
  const { url: above } = await world.host({
    LIMIT_SYNC_JITTER_SECONDS: '0',
    PATCHMIRROR_BUNDLE_OUTBOX: box,
    PATCHMIRROR_BUNDLE_SIGNING_KEYS: folder('key'),
  })
  const outboxOf = async () => (await boxesOf(above))?.outbox
  await expect.poll(async () => (await outboxOf())?.last?.kind ?? null).not.toBeNull()
  const inbox = {
    PATCHMIRROR_UPSTREAM_API_ROOT: '',
    LIMIT_BUNDLE_POLL_SECONDS: '1',
    PATCHMIRROR_BUNDLE_TRUSTED_KEYS: line,
  }
  return { world, folder, box, above, inbox }
}

test('a daemon without an upstream imports what another daemon exports, and both report it', async () => {
  const { world, folder, box, above, inbox } = await outbox()
  const own = { PATCHMIRROR_DATA_DIR: folder('below'), PATCHMIRROR_BUNDLE_INBOX: box }
  const { url: below } = await world.host({ ...inbox, ...own }, true)
  const [id = ''] = world.sandbox.feed.ids()
  const path = `/external/osv/${id}.json`
  await expect.poll(async () => (await fetch(below + path)).status).toBe(200)
  const bytes = async (url: string) => Buffer.from(await (await fetch(url + path)).arrayBuffer())
  expect((await bytes(below)).equals(await bytes(above))).toBe(true)
  await expect.poll(() => readdirSync(join(box, 'done')).length).toBeGreaterThan(0)
  await expect.poll(() => readdirSync(box).filter((name) => name.endsWith('.need'))).toHaveLength(1)
  const metrics = await (await fetch(`${below}/-/metrics`)).text()
  expect(metrics).toMatch(/patchmirror_inbox_bundles_total\{outcome="imported"\} [1-9]/)
  expect(await (await fetch(`${above}/-/metrics`)).text()).toMatch(/patchmirror_outbox_sequence \d/)
})

longTest('a daemon that imports from an inbox notifies its relay targets', async () => {
  const { world, folder, box, inbox } = await outbox()
  const told = await target()
  await world.host({
    ...inbox,
    PATCHMIRROR_DATA_DIR: folder('third'),
    PATCHMIRROR_BUNDLE_INBOX: box,
    PATCHMIRROR_RELAY_TARGETS: told.url,
  })
  const sources = () =>
    told.got.map(({ body }) => (JSON.parse(body.toString()) as { data: { source: string } }).data.source)
  await expect.poll(sources).toContain('osv')
})
