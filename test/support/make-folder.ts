import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** Makes the folder of a run of a suite; returns what removes it. Removes those of runs that were killed. */
export function makeFolder(folder: string): () => void {
  removeLeftovers(dirname(folder))
  mkdirSync(folder, { recursive: true, mode: 0o755 }) // some tests run as another user
  return () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
}

/** The folder of a killed run has the id of a process that has ended. */
function removeLeftovers(parent: string): void {
  for (const name of readdirSync(parent)) {
    const pid = /^patchmirror-suite-(\d+)$/.exec(name)?.[1]
    if (pid !== undefined && !isRunning(Number(pid))) rmSync(join(parent, name), { recursive: true, force: true })
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM' // of another user
  }
}
