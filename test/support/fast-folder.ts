import { accessSync, constants, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const MEMORY = '/dev/shm'
/** More than the suite ever holds at a time, by far. */
const ENOUGH_BYTES = 2 ** 31

/**
 * Where tests put their folders: in memory where the system has a place for that with room enough, for they make hundreds
 * of databases and would wait for the disk at each. The long suite stays on the disk.
 */
function fastFolder(): string {
  try {
    accessSync(MEMORY, constants.W_OK)
    const { bavail, bsize } = statfsSync(MEMORY)
    return bavail * bsize >= ENOUGH_BYTES ? MEMORY : tmpdir()
  } catch {
    return tmpdir() // not on this system
  }
}

const NAME = `patchmirror-suite-${process.pid}`

/** The folder of one run of the fast suite: everything that its tests leave behind is removed with it. */
export function suiteFolder(): string {
  return join(fastFolder(), NAME)
}

/** The same for the long suite. */
export function longSuiteFolder(): string {
  return join(tmpdir(), NAME)
}
