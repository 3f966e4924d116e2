import { readFileSync } from 'node:fs'

/**
 * This process's peak memory, bytes. On Linux from its own high-water mark: the resource usage that a process is
 * told also counts what its parent had at the fork.
 */
export function peakMemory(): number {
  try {
    const match = /VmHWM:\s+(\d+) kB/.exec(readFileSync('/proc/self/status', 'utf8'))
    if (match !== null) return Number(match[1]) * 1024
  } catch {
    // Not Linux.
  }
  return process.resourceUsage().maxRSS * 1024
}
