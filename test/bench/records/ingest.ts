import { join } from 'node:path'
import { type DaemonProcess, startDaemon, took } from '../world/daemon.ts'
import { ROOT, type SandboxProcess, download, timed } from '../world/processes.ts'

/** A first sync: milliseconds; memory in bytes, null where the system does not say it. */
export interface Cold {
  readonly ms: number
  /** Highest until the run ended; and until nothing was left to do, views included. */
  readonly peak: number
  readonly peakWithViews: number
  /** Of the daemon that synced, idle again; and of one that was started over the same folder. */
  readonly idle: number
  readonly restarted: number
}

/** A daemon that has synced everything, restarted, and how its first sync went. */
export interface Ingested {
  readonly cold: Cold
  readonly daemon: DaemonProcess
}

/** Download, check, store, archive, proof, commit by the built daemon; then its memory when it is idle again, and restarted. */
export async function ingest(upstream: string, dir: string, idleSeconds: number): Promise<Ingested> {
  const first = await startDaemon(upstream, dir)
  const ms = took(await first.run('osv'))
  const peak = first.usage()?.peak ?? 0
  await first.run('feeds')
  const after = await first.idle(idleSeconds)
  await first.stop()
  const daemon = await startDaemon(upstream, dir)
  const again = await daemon.idle(idleSeconds)
  const idle = { idle: after?.resident ?? Number.NaN, restarted: again?.resident ?? Number.NaN }
  return { cold: { ms, peak, peakWithViews: after?.peak ?? 0, ...idle }, daemon }
}

/** How a loop of somebody else stored the same archive: milliseconds, bytes. */
interface Loop {
  readonly ms: number
  readonly peak: number
}

/** Null: it cannot run here. */
export type Loops = Readonly<Record<'bare' | 'python' | 'admzip', Loop | null>>

/** Stores the archive of the stand-in by the loops, each in a process of its own, in a folder that keeps their databases. */
export async function runLoops(sandbox: SandboxProcess, dir: string): Promise<Loops> {
  const archive = join(dir, 'all.zip')
  await download(`${sandbox.url}/external/osv/all.zip`, archive)
  const loop = (command: string, script: string): Promise<Loop | null> => {
    const args = [`${ROOT}test/bench/records/loops/${script}`, archive, join(dir, `${script}.db`)]
    return attempt(command, args)
  }
  return {
    bare: await loop(process.execPath, BARE),
    python: await loop('python3', 'python.py'),
    admzip: await loop(process.execPath, 'admzip.ts'),
  }
}

/** Where the bare loop has its records. */
export function bareDatabase(dir: string): string {
  return join(dir, `${BARE}.db`)
}

const BARE = 'bare.ts'

async function attempt(command: string, args: string[]): Promise<Loop | null> {
  try {
    return await timed(command, args)
  } catch (error) {
    process.stderr.write(`skipped: ${String(error)}\n`)
    return null
  }
}
