import { suiteFolder } from './fast-folder.ts'
import { makeFolder } from './make-folder.ts'

/** Longest time of the whole suite, milliseconds: on two quiet cores it takes a tenth of this. */
const SUITE_HANGS_AFTER_MS = 40 * 60_000

/**
 * Makes the folder of this run and removes it at the end. Ends a suite that hangs where no test's own timeout reaches: a
 * worker that does not answer, a hook that blocks.
 */
export function setup(): () => void {
  const remove = makeFolder(suiteFolder())
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
