import { accessSync, constants, statSync } from 'node:fs'
import { join } from 'node:path'
import { derivedDir } from '../store/database/open.ts'
import type { Reads } from '../store/reads.ts'

/**
 * Reports whether the sync thread repairs something before it is ready: until then the archive cannot be served, or a run that was
 * killed seems to be running.
 */
export function needsRepair({ osv, runs }: Pick<Reads, 'osv' | 'runs'>, dataDir: string): boolean {
  const info = osv.readArchive()
  return runs.hasOpenRun() || (info !== null && isLost(join(derivedDir(dataDir), info.file), info.size))
}

/** Reports whether a published archive's file is missing, or has another size than this. */
export function isLost(path: string, size: number): boolean {
  return sizeOf(path) !== size
}

/** Returns the size of a file that this user may read; -1 for any other: a command that ran as root may have made it. */
function sizeOf(path: string): number {
  try {
    accessSync(path, constants.R_OK)
    return statSync(path).size
  } catch {
    return -1
  }
}
