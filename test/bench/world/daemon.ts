import { fork } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Run } from '../../../src/store/runs/runs.ts'
import { ALLOCATOR } from './allocator.ts'
import { plainScript } from './plain.ts'
import { ROOT, ended, messageFrom } from './processes.ts'
import { type Usage, readUsage, settled } from './usage.ts'

export interface Ended {
  peak: number
  cpuMs: number
}

interface Started {
  url: string
  /** Milliseconds of loading the program. */
  loadedMs: number
  /** When it was loaded, Unix milliseconds. */
  startedAt: number
  /** Milliseconds from then until all its threads ran. */
  startMs: number
}

export interface DaemonProcess extends Started {
  dir: string
  pid: number
  /** What it uses now; null where the system cannot say. */
  usage(): Usage | null
  /** Waits until it has nothing to do, and `thenSeconds` more; null where the system cannot say. */
  idle(thenSeconds?: number): Promise<Usage | null>
  run(source: 'osv' | 'feeds' | 'catalog', kind?: 'sync' | 'reconcile'): Promise<Run>
  /** Ends it; peak memory in bytes, processor time in milliseconds. The folder stays when it was given. */
  stop(): Promise<Ended>
}

/** The built daemon in a process of its own, doing nothing until it is asked. */
export async function startDaemon(
  upstream: string,
  folder?: string,
  settings: Record<string, string> = {},
): Promise<DaemonProcess> {
  const dir = folder ?? mkdtempSync(join(tmpdir(), 'patchmirror-bench-'))
  const child = fork(plainScript('daemon'), [], {
    cwd: ROOT,
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    env: {
      PATH: process.env['PATH'],
      ...ALLOCATOR.env,
      PATCHMIRROR_UPSTREAM_API_ROOT: upstream,
      PATCHMIRROR_DATA_DIR: dir,
      PATCHMIRROR_SERVER_LISTEN: '127.0.0.1:0',
      LIMIT_SYNC_CATCH_UP: 'false',
      PATCHMIRROR_OSV_SCHEDULE: '0 0 1 1 *',
      PATCHMIRROR_OSV_RECONCILE_SCHEDULE: '0 0 1 1 *',
      PATCHMIRROR_CATALOG_SCHEDULE: '0 0 1 1 *',
      ...settings,
    },
  })
  const started = await messageFrom<Started>(child, (message) => 'url' in message)
  const { pid = 0 } = child
  return {
    ...started,
    dir,
    pid,
    usage: () => readUsage(pid),
    idle: (thenSeconds = 0) => settled(pid, thenSeconds),
    async run(source, kind = 'sync') {
      const done = messageFrom<{ report: Run }>(child, (message) => 'report' in message)
      child.send({ run: source, kind })
      const { report } = await done
      if (report.state !== 'complete') throw new Error(`${source} ${kind}: ${report.message}`)
      return report
    },
    async stop() {
      if (!child.connected) return { peak: 0, cpuMs: 0 } // stopped before
      const told = messageFrom<Ended>(child, (message) => 'peak' in message)
      child.send({ stop: true })
      const { peak, cpuMs } = await told
      await ended(child)
      if (folder === undefined) rmSync(dir, { recursive: true, force: true })
      return { peak, cpuMs }
    },
  }
}

/** How long a run took, milliseconds. */
export function took({ startedAt, endedAt }: Run): number {
  return (endedAt ?? startedAt) - startedAt
}
