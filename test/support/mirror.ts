import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadQuick } from './limits.ts'
import type { Config } from '../../src/config/schema.ts'
import { type Sandbox, type SandboxOptions, createSandbox } from '../sandbox/server.ts'
import { contentOf } from '../../src/store/database/gzip.ts'
import { type Writes, openWrites } from '../../src/store/writes.ts'
import type { Progress, RunLimits, RunRequest } from '../../src/sync/context.ts'
import type { Run } from '../../src/store/runs/runs.ts'
import { createRunner } from '../../src/sync/runner.ts'
import { createUpstream } from '../../src/upstream/surfaces.ts'

/** Settings that make a test quick: short pauses, short deadlines. Dotted keys as environment variables. */
export const QUICK = {
  LIMIT_UPSTREAM_RETRIES: '2',
  LIMIT_UPSTREAM_RETRY_MAX_MS: '5',
  LIMIT_UPSTREAM_REQUEST_TIMEOUT_MS: '60000',
  LIMIT_UPSTREAM_LOW_SPEED_SECONDS: '60',
}

export interface Bench {
  sandbox: Sandbox
  config: Config
  dir: string
  store: Writes
  /** One run of a source, as the daemon and the command line do it. */
  run(source: RunRequest['source'], more?: Partial<RunRequest>): Promise<Run>
  /** The same with other settings for this run alone: a short deadline must not be met by chance in any other. */
  runWith(env: Record<string, string>, source: RunRequest['source'], more?: Partial<RunRequest>): Promise<Run>
  /** What the mirror would serve for an id, inflated; null when it is not stored. */
  content: (id: string) => Buffer | null
  /** The index that the mirror would serve. */
  index: () => Buffer | null
  /** Ends the runs in flight, as a signal does. */
  abort(): void
  close(): Promise<void>
}

export interface BenchOptions {
  sandbox?: SandboxOptions
  env?: Record<string, string>
  /** Settings that depend on where the sandbox is. */
  envOf?: (sandbox: Sandbox) => Record<string, string>
  dir?: string
  now?: () => number
  /** Limits of the runs that are others than usual. */
  limits?: RunLimits
  /** Deadline of one document, milliseconds, if another than usual. */
  artifactTimeoutMs?: number
  onProgress?: (progress: Progress) => void
}

/**
 * A sandbox and a store with a runner between them: the real thing, in a temporary folder. The sandbox has the public feeds
 * alone unless a `service` is given.
 */
export async function createBench(options: BenchOptions = {}): Promise<Bench> {
  const sandbox = await createSandbox({ records: 120, service: false, ...options.sandbox })
  const dir = options.dir ?? mkdtempSync(join(tmpdir(), 'patchmirror-'))
  const env = {
    ...QUICK,
    PATCHMIRROR_UPSTREAM_API_ROOT: sandbox.url,
    PATCHMIRROR_DATA_DIR: dir,
    ...options.env,
    ...options.envOf?.(sandbox),
  }
  const { config } = loadQuick({ env, cwd: dir, requireUpstream: true })
  const now = options.now ?? Date.now
  const stop = new AbortController()
  const store = openWrites(dir)
  const onProgress = options.onProgress ?? ((): void => undefined)
  const connect = (config: Config) => {
    const { limits = {}, artifactTimeoutMs: timeoutMs } = options
    const artifacts = {
      ...(limits.artifactBytes !== undefined && { maxBytes: limits.artifactBytes }),
      ...(timeoutMs !== undefined && { timeoutMs }),
    }
    const upstream = createUpstream({ config, version: 'test', now, artifacts })
    const runner = createRunner({
      config,
      store,
      upstream: () => upstream,
      now,
      signal: stop.signal,
      limits,
      onProgress,
    })
    return { upstream, runner }
  }
  const { upstream, runner } = connect(config)
  return {
    sandbox,
    config,
    dir,
    store,
    run: (source, more = {}) => runner.run({ source, kind: 'sync', trigger: 'command', ...more }),
    async runWith(more, source, request = {}) {
      const other = loadQuick({ env: { ...env, ...more }, cwd: dir, requireUpstream: true })
      const connected = connect(other.config)
      try {
        const asked = { source, kind: 'sync', trigger: 'command', ...request } as const
        return await connected.runner.run(asked)
      } finally {
        await connected.upstream.close()
      }
    },
    content(id) {
      const record = store.osv.readRecord(id)
      return record === null ? null : contentOf(record.body, record.size)
    },
    index() {
      const document = store.feeds.readDocument('/external/osv/all.json')
      return document === null || document.body === null ? null : contentOf(document.body, document.size)
    },
    abort: () => stop.abort(),
    async close() {
      await upstream.close()
      store.close()
      await sandbox.close()
      if (options.dir === undefined) rmSync(dir, { recursive: true, force: true })
    },
  }
}

/** Every record of the sandbox's feed is stored byte for byte, no other is, and the index is upstream's own. */
export function differences({ sandbox, store, content, index }: Bench): string[] {
  const found: string[] = []
  const ids = sandbox.feed.ids()
  for (const id of ids) if (content(id)?.equals(sandbox.feed.record(id)) !== true) found.push(id)
  if (store.osv.countRecords() !== ids.length) found.push(`holds ${store.osv.countRecords()} of ${ids.length}`)
  if (index()?.equals(sandbox.feed.index()) !== true) found.push('the index differs')
  return found
}
