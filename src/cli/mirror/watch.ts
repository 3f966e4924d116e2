import { setTimeout as sleep } from 'node:timers/promises'
import { MirrorError } from '../../base/errors.ts'
import { movesCursor } from '../../base/terminal.ts'
import { print, stoppable } from '../context.ts'

/** Pause between two views, milliseconds: longer than the daemon needs to notice a commit. */
const PAUSE_MS = 2_000
/** Moves the cursor of a terminal to the top left and clears the screen. */
const CLEAR = '\u001b[H\u001b[2J'

/**
 * Calls `show` again and again until a signal, or until its reader is gone; returns exit code 0. A terminal is cleared before each view;
 * a file or pipe gets one view after the other. An error of the mirror, such as a missing database, is shown as a view.
 */
export function watch(
  show: () => Promise<unknown>,
  { clears = movesCursor(process.stdout), pauseMs = PAUSE_MS } = {},
): Promise<number> {
  return stoppable(async (stopped) => {
    const gone = new AbortController()
    const abort = (): void => gone.abort()
    const signal = AbortSignal.any([stopped, gone.signal])
    process.stdout.once('error', abort)
    try {
      while (!signal.aborted) {
        if (clears) process.stdout.write(CLEAR)
        await show().catch(printFailure)
        await sleep(pauseMs, undefined, { signal }).catch(() => undefined) // ended
      }
      return 0
    } finally {
      process.stdout.off('error', abort)
    }
  })
}

function printFailure(error: unknown): void {
  if (!(error instanceof MirrorError)) throw error
  print(error.message)
}
