import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'

/**
 * Loaded before the program (`node --import`): kills the process -9 before the first renaming of a file whose path ends so, as a power cut
 * between two steps would.
 */
const { KILL_AT: end } = process.env
if (end !== undefined) {
  const rename = fs.renameSync
  fs.renameSync = (from, to) => {
    if (String(from).endsWith(end)) process.kill(process.pid, 'SIGKILL')
    rename(from, to)
  }
  syncBuiltinESMExports()
}
