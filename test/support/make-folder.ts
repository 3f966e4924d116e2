import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { messageOf } from '../../src/base/errors.ts'

/** Makes the folder of a run of a suite; returns what removes it. Removes those of runs that were killed. */
export function makeFolder(folder: string): () => void {
  removeLeftovers(dirname(folder))
  mkdirSync(folder, { recursive: true, mode: 0o755 }) // some tests run as another user
  return () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
}

/** The folder of a killed run has the id of a process that has ended. One that cannot be removed is named and left. */
function removeLeftovers(parent: string): void {
  for (const name of readdirSync(parent)) {
    const pid = /^patchmirror-suite-(\d+)$/.exec(name)?.[1]
    if (pid === undefined || isRunning(Number(pid))) continue
    const leftover = join(parent, name)
    try {
      for (const dir of mountsBelow(leftover)) spawnSync('umount', ['-l', dir], { stdio: 'ignore' })
      rmSync(leftover, { recursive: true, force: true })
    } catch (error) {
      process.stderr.write(`The folder ${leftover} of an earlier run stays: ${messageOf(error)}\n`)
    }
  }
}

/** The file systems that tests of a killed run left mounted below a folder; none where the system does not list them. */
function mountsBelow(folder: string): string[] {
  try {
    const lines = readFileSync('/proc/mounts', 'utf8').split('\n')
    return lines.map((line) => line.split(' ')[1] ?? '').filter((dir) => dir.startsWith(`${folder}/`))
  } catch {
    return []
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
