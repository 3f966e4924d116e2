import { setTimeout as delay } from 'node:timers/promises'
import type { Status } from '../../../src/base/reports/status.ts'
import { SANDBOX_KEYS } from '../../sandbox/service/credentials.ts'
import { catalogSettings } from '../catalog/sync.ts'
import type { Options } from '../report/group.ts'
import { startDaemon } from '../world/daemon.ts'
import { type SandboxProcess, startSandbox } from '../world/processes.ts'

/** More than the pause of webhooks (`config/fixed.ts`). */
const QUIET_MS = 2500
const PATIENCE_MS = 60_000
const SECRET = 'whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8='
/** Tags that are announced, one after the other. */
export const EVENTS = 10
/** What the catalog has before; the stand-in cannot add ten tags to a much smaller one. */
const SIZE = { tags: 5000, packages: 2000 }
const LEAST = 500

/** Returns the number of tags that the catalog has before. */
export function tagsOf({ size }: Pick<Options, 'size'>): number {
  return Math.max(LEAST, size(SIZE.tags))
}

/**
 * New tags that the stand-in service announces one after the other: from the receipt of the event to the time at which
 * the tag and its documents can be read, milliseconds, the median at the default settings. Each is the first after quiet.
 */
export async function announce(options: Options): Promise<number> {
  const sizes = { tags: tagsOf(options), packages: options.size(SIZE.packages) }
  const args = Object.entries(sizes).flatMap(([name, value]) => [`--${name}`, String(value)])
  const sandbox = await startSandbox(1000, [...args, '--webhook-secret', SECRET])
  const settings = { ...catalogSettings(sandbox), PATCHMIRROR_WEBHOOKS_SECRETS: SECRET }
  const daemon = await startDaemon(sandbox.url, undefined, settings)
  try {
    for (const source of ['osv', 'feeds', 'catalog'] as const) await daemon.run(source)
    await subscribe(sandbox, `${daemon.url}/-/webhooks`)
    await daemon.idle()
    for (let at = 1; at <= EVENTS; at++) {
      await sandbox.command('add-tag', 1)
      await until(async () => (await webhooksOf(daemon.url)).counts?.done === at)
      await delay(QUIET_MS)
    }
    return await visible(daemon.url, EVENTS)
  } finally {
    await daemon.stop()
    await sandbox.stop()
  }
}

async function subscribe({ url }: SandboxProcess, endpoint: string): Promise<void> {
  const credential = Buffer.from(`${SANDBOX_KEYS.admin}:`).toString('base64')
  const answer = await fetch(`${url}/v3/settings/webhooks`, {
    method: 'POST',
    headers: { authorization: `Basic ${credential}`, 'content-type': 'application/json' },
    body: JSON.stringify({ url: endpoint, event_types: ['io.service.cr.image.created.v1'] }),
  })
  if (answer.status !== 201) throw new Error(`the subscription was answered ${answer.status}`)
}

async function webhooksOf(url: string): Promise<NonNullable<Status['webhooks']>> {
  const { webhooks } = (await (await fetch(`${url}/-/status`)).json()) as Status
  if (webhooks === undefined) throw new Error('the status has nothing on webhooks')
  return webhooks
}

/** The median of so many events, milliseconds; waits until the status has them all. */
async function visible(url: string, events: number): Promise<number> {
  const taken: number[] = []
  await until(async () => {
    const { latency } = (await webhooksOf(url)).refresh
    if (latency?.events === events && latency.visible !== null) taken.push(latency.visible.median)
    return taken.length > 0
  })
  return taken[0] ?? Number.NaN
}

/** Looks seldom: what is measured is in the status, and reading that takes processor time from what it measures. */
async function until(met: () => Promise<boolean>): Promise<void> {
  for (const ends = performance.now() + PATIENCE_MS; performance.now() < ends; await delay(250)) if (await met()) return
  throw new Error('the events were not worked on within a minute')
}
