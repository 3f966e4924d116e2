import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { suiteFolder } from './fast-folder.ts'

/** Longest time of the whole suite, milliseconds: on two quiet cores it takes a tenth of this. */
const SUITE_HANGS_AFTER_MS = 40 * 60_000

/**
 * Makes the folder of this run and removes it at the end. Ends a suite that hangs where no test's own timeout reaches: a
 * worker that does not answer, a hook that blocks.
 */
export function setup(): () => void {
  const folder = suiteFolder()
  removeLeftovers(dirname(folder))
  mkdirSync(folder, { recursive: true, mode: 0o755 }) // some tests run as another user
  const remove = (): void => rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  const watchdog = setTimeout(() => {
    process.stderr.write(`the suite did not end within ${SUITE_HANGS_AFTER_MS / 60_000} minutes\n`)
    remove()
    process.exit(1)
  }, SUITE_HANGS_AFTER_MS)
  watchdog.unref()
  return () => {
    clearTimeout(watchdog)
    remove()
  }
}

/** Removes what suites left that were killed: such a folder has the id of a process that has ended. */
function removeLeftovers(parent: string): void {
  for (const name of readdirSync(parent)) {
    const pid = /^patchmirror-suite-(\d+)$/.exec(name)?.[1]
    if (pid !== undefined && !isRunning(Number(pid)))
      rmSync(join(parent, name), { recursive: true, force: true })
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
