import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { MirrorError } from '../../core/errors.ts'

/** Returns the folder that exists within a data folder while a backup is restored into it. */
export function restoringDir(dataDir: string): string {
  return join(dataDir, '.restoring')
}

/** Throws `not_ready` for a data folder into which a backup was not completely restored: nothing of it may be served. */
export function refuseUnfinished(dataDir: string): void {
  if (!existsSync(restoringDir(dataDir))) return
  throw new MirrorError(
    'not_ready',
    `a backup was not completely restored into ${dataDir}: if no restore is running, run "patchmirror restore FILE" again, ` +
      'or remove the folder',
  )
}
