import { setPriority } from 'node:os'

/** Returns the URL of a file named relative to the module at `url`: `.ts` when that runs from source, `.js` when built. */
export function workerFile(name: string, url: string): URL {
  return new URL(`./${name}${url.endsWith('.ts') ? '.ts' : '.js'}`, url)
}

/**
 * Lowers the priority of the calling thread to the nice value `nice` (0 to 19). Linux only: a priority belongs to the
 * thread that sets it there, elsewhere to the whole process.
 */
export function lowerPriority(nice: number): void {
  if (process.platform !== 'linux') return
  try {
    setPriority(0, nice)
  } catch {
    // Some sandboxes do not permit it; the thread then competes with the serving thread for the CPU.
  }
}
