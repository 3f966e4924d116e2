import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { createAgent } from '../../src/daemon/agent.ts'
import type { BoxesStatus } from '../../src/domain/status.ts'
import { createKeyFiles } from '../../src/bundle/format/keys.ts'
import { loadConfig } from '../../src/config/load.ts'
import { createSandbox } from '../../src/sandbox/server.ts'
import { target } from '../relay/targets.ts'
import { QUICK } from '../support/mirror.ts'

function folder(): string {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-diode-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

/** The daemon on a free port, until the test ends. */
async function daemon(env: Record<string, string>, offline: boolean): Promise<string> {
  const dir = folder()
  const fixed = { PATCHMIRROR_DATA_DIR: dir, PATCHMIRROR_SERVER_PORT: '0' }
  const { config } = loadConfig({ env: { ...QUICK, ...fixed, ...env }, cwd: dir })
  const agent = createAgent({ config, version: 'test', log: pino({ level: 'silent' }), offline })
  const { url } = await agent.start()
  onTestFinished(() => agent.close())
  return url
}

const boxesOf = async (url: string): Promise<BoxesStatus | undefined> => {
  const status = (await (await fetch(`${url}/-/status`)).json()) as { boxes?: BoxesStatus }
  return status.boxes
}

test('what one daemon publishes comes by outbox and inbox to others that have no upstream, and they tell of it', async () => {
  const sandbox = await createSandbox({ records: 10, service: false })
  onTestFinished(() => sandbox.close())
  const box = folder()
  const key = join(folder(), 'key')
  const { line } = createKeyFiles(key)
  const above = await daemon(
    {
      PATCHMIRROR_UPSTREAM_API_ROOT: sandbox.url,
      PATCHMIRROR_SYNC_JITTER_SECONDS: '0',
      PATCHMIRROR_BUNDLE_OUTBOX: box,
      PATCHMIRROR_BUNDLE_SIGNING_KEYS: key,
    },
    false,
  )
  await expect.poll(async () => (await boxesOf(above))?.outbox?.last?.kind ?? null).not.toBeNull()
  const below = await daemon(
    {
      PATCHMIRROR_BUNDLE_INBOX: box,
      PATCHMIRROR_BUNDLE_POLL_SECONDS: '1',
      PATCHMIRROR_BUNDLE_TRUSTED_KEYS: line,
    },
    true,
  )
  const [id = ''] = sandbox.feed.ids()
  const path = `/external/osv/${id}.json`
  await expect.poll(async () => (await fetch(below + path)).status).toBe(200)
  const bytes = async (url: string) => Buffer.from(await (await fetch(url + path)).arrayBuffer())
  expect((await bytes(below)).equals(await bytes(above))).toBe(true)
  await expect.poll(() => readdirSync(join(box, 'done')).length).toBeGreaterThan(0)
  const metrics = await (await fetch(`${below}/-/metrics`)).text()
  expect(metrics).toMatch(/patchmirror_inbox_bundles_total\{outcome="imported"\} [1-9]/)
  expect(await (await fetch(`${above}/-/metrics`)).text()).toMatch(/patchmirror_outbox_sequence \d/)

  const copied = folder()
  cpSync(join(box, 'done'), copied, { recursive: true })
  const told = await target()
  await daemon(
    {
      PATCHMIRROR_BUNDLE_INBOX: copied,
      PATCHMIRROR_BUNDLE_POLL_SECONDS: '1',
      PATCHMIRROR_BUNDLE_TRUSTED_KEYS: line,
      PATCHMIRROR_RELAY_TARGETS: told.url,
    },
    false,
  )
  const sources = () =>
    told.got.map(
      ({ body }) => (JSON.parse(body.toString()) as { data: { source: string } }).data.source,
    )
  await expect.poll(sources).toContain('osv')
})
