import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { createKeyFiles } from '../../../src/features/bundles/format/keys.ts'
import { SANDBOX_KEYS } from '../../sandbox/service/credentials.ts'
import { catalogSettings } from '../catalog/sync.ts'
import { count } from '../report/figures.ts'
import { type Options, atMost, defineGroup, neverOver } from '../report/group.ts'
import { startDaemon } from '../world/daemon.ts'
import { type SandboxProcess, startSandbox } from '../world/processes.ts'
import type { Usage } from '../world/usage.ts'

const RECORDS = 15_000
/** Length of the measurement, seconds. */
const SPAN = 60
const SECRET = 'whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8='

/** What the daemon uses in the end, and the share of a processor that it used until then. */
interface Run {
  readonly usage: Usage | null
  readonly share: number
}

/** The service, and the target of the relay. */
interface World {
  readonly sandbox: SandboxProcess
  readonly target: string
  close(): Promise<void>
}

/** A daemon that has synced everything and waits, with every feature in use. */
export const idle = defineGroup<World, Run>({
  name: 'idle',
  about: ({ size }) => `A daemon with all features on and ${count(size(RECORDS))} records.`,
  async prepare({ size }) {
    const sandbox = await startSandbox(size(RECORDS))
    // Takes what the relay sends: a target that refuses it keeps the relay busy.
    const target = createServer((request, response) => {
      request.resume().on('end', () => response.writeHead(204).end())
    })
    await once(target.listen(0, '127.0.0.1'), 'listening')
    const { port } = target.address() as AddressInfo
    return {
      sandbox,
      target: `http://127.0.0.1:${port}/`,
      async close() {
        target.close()
        await sandbox.stop()
      },
    }
  },
  run: (world, { seconds }) => rest(world, seconds),
  lines: () => {
    return [
      {
        work: 'memory',
        unit: 'MB',
        goal: neverOver(140e6),
        measure: ({ usage }) => usage && usage.resident,
      },
      {
        work: 'threads',
        unit: 'count',
        measure: ({ usage }) => usage && usage.threads,
      },
      {
        work: 'share of a processor',
        unit: '%',
        goal: atMost(0.002),
        measure: ({ usage, share }) => usage && share,
      },
    ]
  },
})

/** Syncs every source, restarts the daemon as an operator would find it on any day, and watches it do nothing. */
async function rest({ sandbox, target }: World, seconds: Options['seconds']): Promise<Run> {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-idle-'))
  try {
    const settings = everything(sandbox, target, dir)
    const data = join(dir, 'data')
    const first = await startDaemon(sandbox.url, data, settings)
    for (const source of ['feeds', 'osv', 'catalog'] as const) await first.run(source)
    await first.idle()
    await first.stop()
    const daemon = await startDaemon(sandbox.url, data, settings)
    try {
      // Each thread collects its heap once after the start: not part of what an idle daemon does.
      const before = await daemon.idle(seconds(40))
      const started = performance.now()
      await delay(seconds(SPAN) * 1000)
      const usage = daemon.usage()
      const used = (usage?.cpuMs ?? 0) - (before?.cpuMs ?? 0)
      return { usage, share: used / (performance.now() - started) }
    } finally {
      await daemon.stop()
    }
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

/** Settings that use every feature of one mirror; a fleet has lines of its own. */
function everything(sandbox: SandboxProcess, target: string, dir: string): Record<string, string> {
  const { line } = createKeyFiles(join(dir, 'key'))
  return {
    ...catalogSettings(sandbox),
    PATCHMIRROR_CATALOG_PERSONAL_DATA: 'apiKeys,users',
    PATCHMIRROR_IDENTITY_API_URL: sandbox.identityUrl,
    PATCHMIRROR_IDENTITY_API_KEY: SANDBOX_KEYS.readonly,
    PATCHMIRROR_WEBHOOKS_SECRETS: SECRET,
    PATCHMIRROR_RELAY_TARGETS: target,
    PATCHMIRROR_EDGE_MAX_AGE_SECONDS: '60',
    PATCHMIRROR_BUNDLE_SIGNING_KEYS: join(dir, 'key'),
    PATCHMIRROR_BUNDLE_TRUSTED_KEYS: line,
    PATCHMIRROR_BUNDLE_OUTBOX: join(dir, 'outbox'),
    PATCHMIRROR_BUNDLE_INBOX: join(dir, 'inbox'),
  }
}
