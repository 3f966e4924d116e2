import { randomBytes } from 'node:crypto'
import { vi } from 'vitest'
import { loadQuick } from './limits.ts'
import type { Config } from '../../src/config/schema.ts'
import { SOURCES } from '../../src/base/domain/sources.ts'
import type { Sandbox } from '../sandbox/server.ts'
import { catalogEnv } from './catalog/mirror.ts'
import { openWorld } from './daemons.ts'
import { TEST_KEY, bearer } from './keys.ts'

type Asked = Omit<RequestInit, 'headers'> & { headers?: Readonly<Record<string, string>> }

/** A daemon that mirrors everything that the stand-in has: feeds, records, catalog, users, views. */
export interface WholeMirror {
  readonly sandbox: Sandbox
  readonly url: string
  readonly config: Config
  /** Asks with the key of the settings. */
  get(path: string, init?: Asked): Promise<Response>
  /** Requests a sync of the records. */
  sync(): void
  close(): Promise<void>
}

const SERVICE = { images: 2, tags: 4, packages: 3, tickets: 6, users: 2, avrs: 2, subscriptions: 1 }
const PATIENCE = { interval: 50, timeout: 110_000 }

/** Starts the stand-in and a daemon in this process, and resolves when everything is mirrored and the views are made. */
export async function openWholeMirror(more: Record<string, string> = {}): Promise<WholeMirror> {
  const world = await openWorld({ records: 30, service: SERVICE }, (sandbox) => ({
    ...catalogEnv(sandbox),
    PATCHMIRROR_CATALOG_PERSONAL_DATA: 'apiKeys,users',
    PATCHMIRROR_CATALOG_SCOPE: 'all',
    PATCHMIRROR_SERVER_KEYS: TEST_KEY,
    PATCHMIRROR_WEBHOOKS_SECRETS: `whsec_${randomBytes(24).toString('base64')}`,
    ...more,
  }))
  const daemon = await world.host()
  const { url } = daemon
  for (const source of SOURCES) await daemon.said(new RegExp(`"${source} sync: complete`))
  const get: WholeMirror['get'] = (path, init = {}) =>
    fetch(url + path, { ...init, headers: { ...bearer(), ...init.headers } })
  for (const path of ['/osv/ecosystems.txt', '/.well-known/vex-repository.json', '/-/tags/findings'])
    await vi.waitUntil(async () => (await get(path, { method: 'HEAD' })).status === 200, PATIENCE)
  const { config } = loadQuick({ env: world.env, cwd: world.dir })
  return {
    sandbox: world.sandbox,
    url,
    config,
    get,
    sync: () => daemon.agent.requestSync('osv', 'sync'),
    close: () => world.close(),
  }
}
