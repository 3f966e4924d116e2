import { accessSync, constants, statSync } from 'node:fs'
import { join } from 'node:path'
import { derivedDir } from '../store/database/open.ts'
import type { OsvReader } from '../store/osv/reads.ts'
import type { Reads } from '../store/reads.ts'

/** Reports whether the file of the published archive is missing or has another size. */
export function isArchiveLost(store: Pick<OsvReader, 'readArchive'>, dataDir: string): boolean {
  const info = store.readArchive()
  return info !== null && sizeOf(join(derivedDir(dataDir), info.file)) !== info.size
}

/**
 * Reports whether the sync thread repairs something before it is ready: until then the archive cannot be served, or a run that was
 * killed seems to be running.
 */
export function needsRepair({ osv, runs }: Pick<Reads, 'osv' | 'runs'>, dataDir: string): boolean {
  return runs.hasOpenRun() || isArchiveLost(osv, dataDir)
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
