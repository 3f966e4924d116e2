import { readFileSync, readdirSync, lstatSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

/** What a process uses, as the system counts it: memory in bytes, processor time in milliseconds. */
export interface Usage {
  readonly resident: number
  readonly peak: number
  readonly threads: number
  readonly cpuMs: number
}

const TICK_MS = 10 // Linux reports processor time in hundredths of a second
const WINDOW_MS = 2000
/** Share of a processor below which a process counts as idle. */
const IDLE = 0.03
const PATIENCE_MS = 300_000

/** Reads what a process uses; null where there is no /proc. */
export function readUsage(pid: number): Usage | null {
  let status: string
  let stat: string
  try {
    status = readFileSync(`/proc/${pid}/status`, 'utf8')
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  } catch {
    return null
  }
  const field = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1])
  const [, , , , , , , , , , , user = '', system = ''] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return {
    resident: field('VmRSS') * 1024,
    peak: field('VmHWM') * 1024,
    threads: field('Threads'),
    cpuMs: (Number(user) + Number(system)) * TICK_MS,
  }
}

/** Waits until a process has nothing to do, and then some seconds more for what it releases when idle. */
export async function settled(pid: number, thenSeconds: number): Promise<Usage | null> {
  const ends = performance.now() + PATIENCE_MS
  for (let before = readUsage(pid)?.cpuMs ?? 0; performance.now() < ends;) {
    await delay(WINDOW_MS)
    const now = readUsage(pid)?.cpuMs ?? 0
    if (now - before <= WINDOW_MS * IDLE) break
    before = now
  }
  await delay(thenSeconds * 1000)
  return readUsage(pid)
}

/** Returns the bytes that a folder takes on the disk; a file with several names counts once. */
export function diskUsage(dir: string): number {
  const seen = new Set<number>()
  let bytes = 0
  for (const name of ['', ...readdirSync(dir, { recursive: true, encoding: 'utf8' })]) {
    const stat = lstatSync(join(dir, name), { throwIfNoEntry: false })
    if (stat === undefined || seen.has(stat.ino)) continue
    seen.add(stat.ino)
    bytes += stat.blocks * 512
  }
  return bytes
}
