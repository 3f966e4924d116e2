import { setTimeout as delay } from 'node:timers/promises'
import type { Status } from '../../src/api/status/report.ts'
import { SANDBOX_KEYS } from '../../src/sandbox/service/credentials.ts'
import { catalogSettings } from './catalog/sync.ts'
import { startDaemon } from './daemon.ts'
import { type SandboxProcess, startSandbox } from './processes.ts'
import { type Line, seconds } from './table.ts'

const SECRET = 'whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8='
const EVENTS = 10
/** More than `webhooks.debounceMs`. */
const QUIET_MS = 2_500
const SIZE = { tags: 5000, packages: 2000 }

/**
 * New tags that the stand-in service announces one after the other: from the receipt of the event to the moment in which
 * the tag and its documents can be read, at the settings as they come. Each event is the first after a quiet time.
 */
export async function benchVisible(): Promise<Line> {
  const args = Object.entries(SIZE).flatMap(([name, value]) => [`--${name}`, String(value)])
  const sandbox = await startSandbox(1000, [...args, '--webhook-secret', SECRET])
  const settings = { ...catalogSettings(sandbox), PATCHMIRROR_WEBHOOKS_SECRETS: SECRET }
  const daemon = await startDaemon(sandbox.url, undefined, settings)
  try {
    for (const source of ['osv', 'feeds', 'catalog'] as const) await daemon.run(source)
    await subscribe(sandbox, `${daemon.url}/-/webhooks`)
    for (let at = 1; at <= EVENTS; at++) {
      await sandbox.command('add-tag', 1)
      await until(async () => (await webhooksOf(daemon.url)).counts?.done === at)
      await delay(QUIET_MS)
    }
    await until(async () => (await visible(daemon.url)) !== null)
    const median = (await visible(daemon.url)) ?? Number.NaN
    return {
      work: `an announced tag, from received to visible, in a catalog of ${SIZE.tags} tags, median of ${EVENTS}`,
      against: '',
      figure: seconds(median),
      goal: 'figure',
      met: null,
    }
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
  if (webhooks === undefined) throw new Error('the status tells nothing of webhooks')
  return webhooks
}

/** Milliseconds; null before the figures were taken that hold all events. */
async function visible(url: string): Promise<number | null> {
  const latency = (await webhooksOf(url)).refresh.latency
  return latency?.events === EVENTS ? (latency.visible?.median ?? null) : null
}

async function until(met: () => Promise<boolean>): Promise<void> {
  for (const ends = performance.now() + 60_000; performance.now() < ends; await delay(200))
    if (await met()) return
  throw new Error('the events were not worked on within a minute')
}
