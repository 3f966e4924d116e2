import { readFileSync } from 'node:fs'
import { getEnvironmentData, isMainThread, setEnvironmentData } from 'node:worker_threads'

const keyOf = (path: string): string => `patchmirror.file ${path}`

/**
 * Keeps what files have now for the threads that are started from now on: a thread that rests and runs again uses what the daemon was
 * started with. A file that cannot be read is left to its reader. To be called on the main thread.
 */
export function keepFiles(paths: readonly string[]): void {
  for (const path of paths) setEnvironmentData(keyOf(path), contentOf(path))
}

function contentOf(path: string): Buffer | undefined {
  try {
    return readFileSync(path)
  } catch {
    return undefined
  }
}

/** Reads a file; in a thread of a daemon, what was kept of it. Throws the system's error. */
export function readKeptFile(path: string): Buffer {
  const kept = isMainThread ? undefined : getEnvironmentData(keyOf(path))
  return kept instanceof Uint8Array ? Buffer.from(kept) : readFileSync(path)
}
