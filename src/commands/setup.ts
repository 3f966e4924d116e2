import { type LoadedConfig, loadConfig } from '../config/load.ts'
import { MirrorError } from '../errors.ts'
import { acquireLock } from '../store/lock.ts'
import { type SourceName, SOURCES } from '../store/runs.ts'
import { type Writes, openWrites } from '../store/writes.ts'
import type { Progress } from '../sync/context.ts'
import { type Runner, createRunner } from '../sync/runner.ts'
import { isCronExpression } from '../sync/schedule.ts'
import { createUpstream } from '../upstream/surfaces.ts'
import { VERSION } from '../version.ts'

/** Options that every command takes. */
export interface GlobalOptions {
  config?: string
}

/** Writes a line to standard output. */
export function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

/** Settings for a command; `upstream` true when it talks to the service. Warnings go to standard error. */
export function settings(options: GlobalOptions, upstream: boolean): LoadedConfig {
  const loaded = loadConfig({
    ...(options.config === undefined ? {} : { file: options.config }),
    env: process.env,
    cwd: process.cwd(),
    requireUpstream: upstream,
    validateCron: isCronExpression,
  })
  for (const warning of loaded.warnings) process.stderr.write(`patchmirror: warning: ${warning}\n`)
  return loaded
}

/** Whether a daemon holds this data folder just now. */
export function isServed(dataDir: string): boolean {
  try {
    acquireLock(dataDir, 'serve').release()
    return false
  } catch (error) {
    if (error instanceof MirrorError && error.code === 'locked') return true
    throw error
  }
}

/** Checks source names given on the command line; none means all. Throws `usage`. */
export function sourcesOf(names: readonly string[]): SourceName[] {
  const unknown = names.filter((name) => !SOURCES.some((source) => source === name))
  if (unknown.length > 0) {
    const known = SOURCES.join(', ')
    throw new MirrorError(
      'usage',
      `unknown source ${unknown.join(', ')}; the sources are: ${known}`,
    )
  }
  return names.length === 0 ? [...SOURCES] : SOURCES.filter((source) => names.includes(source))
}

/**
 * Calls `work` with a runner of this process, stopped by SIGINT and SIGTERM: a run in flight then ends with nothing
 * committed, and its row says so.
 */
export async function withRunner<T>(
  { config }: LoadedConfig,
  onProgress: (progress: Progress) => void,
  work: (runner: Runner, store: Writes) => Promise<T>,
): Promise<T> {
  const stop = new AbortController()
  const abort = (): void => stop.abort()
  process.once('SIGINT', abort).once('SIGTERM', abort)
  const store = openWrites(config.data.dir)
  const upstream = createUpstream({ config, version: VERSION, now: Date.now })
  try {
    const client = upstream.client('public')
    const deps = { config, store, client, now: Date.now, signal: stop.signal, onProgress }
    return await work(createRunner(deps), store)
  } finally {
    process.off('SIGINT', abort).off('SIGTERM', abort)
    await upstream.close()
    store.close()
  }
}
