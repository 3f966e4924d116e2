import { beforeAll, onTestFinished } from 'vitest'
import { catalogRoutes } from '../../../src/server/catalog/routes.ts'
import { type MirrorServer, createServer } from '../../../src/server/server.ts'
import { SANDBOX_KEYS } from '../../sandbox/service/credentials.ts'
import type { ServiceOptions } from '../../sandbox/service/options.ts'
import type { SandboxOptions } from '../../sandbox/server.ts'
import { createWeb } from '../../../src/features/pages/web.ts'
import { openPinnedReads } from '../../../src/store/reads.ts'
import { TEST_KEY, bearer as ownKey } from '../keys.ts'
import { getUrl } from '../loopback.ts'
import { copyFilledFolder } from '../filled-folder.ts'
import { type Bench, type BenchOptions, createBench } from '../mirror.ts'
import { readHere } from '../read-here.ts'
import { scannerRoutes } from '../../../src/features/scanners/routes/public-paths.ts'

/** Settings that mirror the sandbox's whole service. */
export function catalogEnv(sandbox: Bench['sandbox']): Record<string, string> {
  return {
    PATCHMIRROR_UPSTREAM_CATALOG_URL: sandbox.catalogUrl,
    PATCHMIRROR_UPSTREAM_API_KEY: SANDBOX_KEYS.admin,
    PATCHMIRROR_IDENTITY_API_URL: sandbox.identityUrl,
    PATCHMIRROR_IDENTITY_API_KEY: SANDBOX_KEYS.admin,
    PATCHMIRROR_NETWORK_TRUSTED: '127.0.0.0/8,localhost',
  }
}

/** The sandbox's service, a mirror of it, and the mirror's own server. */
export interface CatalogBench extends Bench {
  /** Asks the mirror for a path, with a key. */
  ask: (path: string, init?: Omit<RequestInit, 'headers'>) => Promise<Response>
  /** Asks the mirror for a path, without a key. */
  askOpen: (path: string) => Promise<Response>
  /** Asks the service itself for a path of the mirror's. */
  askUpstream: (path: string) => Promise<Response>
}

/** Has something done once a mirror is not used any more, the last one first. */
export type AtEnd = (end: () => Promise<void>) => void

/**
 * A mirror that all tests of a file share, none of which changes it or its service: made before the first of them, closed
 * after the last.
 */
export function sharedBench(make: (atEnd: AtEnd) => Promise<CatalogBench>): () => CatalogBench {
  let made: CatalogBench | null = null
  beforeAll(async () => {
    const ends: (() => Promise<void>)[] = []
    made = await make((end) => void ends.unshift(end))
    return async () => {
      for (const end of ends) await end()
    }
  })
  return () => {
    if (made === null) throw new Error('the mirror is made before the first test')
    return made
  }
}

/**
 * A sandbox with a small service, and a mirror of it that serves on loopback, until the test ends; `envOf`: credentials and
 * addresses.
 */
export async function catalogBench(
  service: Exclude<SandboxOptions['service'], false> = {},
  options: BenchOptions = {},
  envOf: (sandbox: Bench['sandbox']) => Record<string, string> = catalogEnv,
  atEnd: AtEnd = onTestFinished,
): Promise<CatalogBench> {
  const bench = await createBench({
    ...options,
    sandbox: { records: 5, ...options.sandbox, service },
    envOf: (sandbox) => ({ ...envOf(sandbox), ...options.env }),
  })
  atEnd(() => bench.close())
  const server = await serverOf(bench, atEnd, options.now)
  const headers = { authorization: `Basic ${btoa(`${SANDBOX_KEYS.admin}:`)}` }
  const bearer = { authorization: `Bearer ${SANDBOX_KEYS.admin}` }
  const { sandbox } = bench
  const urlOf = (path: string): string => {
    server.snapshotChanged()
    return `${server.address()?.url ?? ''}${path}`
  }
  return {
    ...bench,
    askOpen: (path) => getUrl(urlOf(path)),
    ask(path, init) {
      const url = urlOf(path)
      return init === undefined ? getUrl(url, ownKey()) : fetch(url, { ...init, headers: ownKey() })
    },
    askUpstream(path) {
      if (path.startsWith('/v1/users')) return getUrl(sandbox.identityUrl + path.slice(3), bearer)
      const root = path.startsWith('/packages/ecosystems') ? sandbox.catalogUrl : sandbox.url
      return getUrl(root + path, headers)
    },
  }
}

/**
 * A mirror that serves, whose first sync of the catalog with these settings is done: it gets a copy of the folder that such a
 * sync left earlier in this process. Nothing was requested of its sandbox yet. `more`: settings of the mirror alone.
 */
export async function filledCatalogBench(
  service: ServiceOptions,
  env: Record<string, string> = {},
  { env: more, ...options }: BenchOptions = {},
): Promise<CatalogBench> {
  const sandbox = { records: 5, service }
  const dir = await copyFilledFolder({ sandbox, env, envOf: catalogEnv }, ['catalog'])
  return catalogBench(service, { ...options, dir, env: { ...env, ...more } })
}

const OWN = { host: '127.0.0.1', port: 0, keys: [TEST_KEY] }

async function serverOf({ config, dir }: Bench, atEnd: AtEnd, now = Date.now): Promise<MirrorServer> {
  const reads = openPinnedReads(dir)
  if (reads === null) throw new Error('no database')
  const server = createServer({
    reads,
    dataDir: dir,
    config: { ...config, server: { ...config.server, ...OWN } },
    version: 'test',
    startedAt: now(),
    now,
    log: null,
    nextRunAt: () => null,
    plugins: [scannerRoutes(null), catalogRoutes],
    people: createWeb({ config, version: 'test' }),
    startReading: readHere,
  })
  await server.listen()
  atEnd(async () => {
    await server.close()
    reads.close()
  })
  return server
}
