import { statSync } from 'node:fs'
import { join } from 'node:path'
import { MirrorError } from '../../base/errors.ts'
import { isPresent } from '../../base/files.ts'

/** Returns the folder that exists within a data folder while a backup is restored into it. */
export function restoringDir(dataDir: string): string {
  return join(dataDir, '.restoring')
}

/** Returns the folder in which a repair makes a new mirror.db. */
export function repairingDir(dataDir: string): string {
  return join(dataDir, '.repairing')
}

/** Returns the file that a repaired mirror.db is while it takes the place of the damaged one. */
export function repairedPath(dataDir: string): string {
  return join(repairingDir(dataDir), 'whole.db')
}

/**
 * Throws `not_ready` for a data folder into which a backup was not completely restored, or whose mirror.db is being replaced: nothing of
 * it may be served.
 */
export function refuseUnfinished(dataDir: string): void {
  if (isPresent(repairedPath(dataDir)))
    throw new MirrorError(
      'not_ready',
      `a repair did not end in ${dataDir}: if none is running, run "patchmirror doctor --data --repair" again, which goes on with it, or start the daemon`,
    )
  if (!isPresent(restoringDir(dataDir))) return
  throw new MirrorError(
    'not_ready',
    `a backup was not completely restored into ${dataDir}: if no restore is running, run "patchmirror restore FILE" again, ` +
      'or remove the folder',
  )
}

/**
 * Throws `storage` when root is about to write to a data folder of another user: that user's daemon could not use the files, and
 * links in the folder could lead root anywhere. Called before anything is created in a data folder.
 */
export function refuseForeignRoot(dataDir: string): void {
  if (process.geteuid?.() !== 0) return
  const folder = statSync(dataDir, { throwIfNoEntry: false })
  if (folder === undefined || folder.uid === 0) return
  const { uid, gid } = folder
  throw new MirrorError(
    'storage',
    `the data folder ${dataDir} belongs to user ${uid}, and this command runs as root: files that root creates there stop ` +
      `that user's daemon, so nothing was changed. Run it as that user: ` +
      `"setpriv --reuid=${uid} --regid=${gid} --clear-groups patchmirror ...", or "sudo -u '#${uid}' patchmirror ..."; ` +
      'docs/guides/systemd.md has the command for a service with a transient user',
  )
}

/** Throws where nothing may be written: see `refuseForeignRoot` and `refuseUnfinished`. */
export function refuseDataWrites(dataDir: string): void {
  refuseForeignRoot(dataDir)
  refuseUnfinished(dataDir)
}
