import { chmodSync, copyFileSync, existsSync, readdirSync, rmSync, statSync, statfsSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { reserveFor, shownBytes } from '../../base/disk-space.ts'
import { MirrorError } from '../../base/errors.ts'
import { PRIVATE_FILE, makeFolder, publishFile } from '../../base/files.ts'
import { type Schema, newestOf } from './schema/schema.ts'

/** Copies of one database that stay; older ones are removed. */
const KEPT = 2

/** Called with a sentence that says where the copy of a database is; null: no copy is made. */
export type ReportCopy = ((text: string) => void) | null

/** Prints the sentence on standard error, for commands. */
export const printCopy: ReportCopy = (text) => void process.stderr.write(`patchmirror: ${text}\n`)

/**
 * Copies a database to the folder `backups` beside it, before it is migrated from schema `version`, and reports where.
 * The caller has the write lock, so that the file and its write-ahead log belong together. `settle` opens the copy,
 * checks it, and makes it one file. Throws `storage` when the disk has no room for it.
 */
export function copyBeforeMigration(
  path: string,
  version: number,
  settle: (copy: string) => void,
  report: ReportCopy,
): void {
  if (report === null) return
  const folder = join(dirname(path), 'backups')
  const prefix = `${basename(path, '.db')}-schema-`
  const copy = join(folder, `${prefix}${version}.db`)
  const draft = `${copy}.partial`
  makeFolder(folder)
  try {
    refuseNoRoom(path, folder)
    for (const end of ['', '-wal']) {
      rmSync(draft + end, { force: true })
      if (!existsSync(path + end)) continue
      copyFileSync(path + end, draft + end)
      chmodSync(draft + end, PRIVATE_FILE)
    }
    settle(draft)
    publishFile(draft, copy)
  } finally {
    for (const end of ['', '-wal', '-shm']) rmSync(draft + end, { force: true })
  }
  prune(folder, prefix, basename(copy))
  report(
    `${basename(path)} is migrated from schema ${version}; a copy from before is ${copy}. To go back: stop this program, ` +
      `move ${path}* away, copy that file to ${path}, and start the earlier version`,
  )
}

/** What happens with a database that is derived from mirror.db. */
const MADE_AGAIN = 'It is made again from what is mirrored.'

/** Returns what to do about a database of a version that this program does not open. */
export function unknownAdvice(path: string, schema: Schema): string {
  const name = basename(path)
  if (name !== 'mirror.db' && name !== 'webhooks.db') return MADE_AGAIN
  const copy = copyOf(path, schema)
  const away = `stop the daemon, move ${path}, ${path}-wal and ${path}-shm away`
  if (copy !== null)
    return `Start that version. Or go on with this one: ${away}, copy ${copy} to ${path}, and start the daemon. What was stored since is not in the copy.`
  if (name !== 'webhooks.db') return 'Start that version, or use another data folder (data.dir).'
  return `Start that version. Or go on with this one: ${away}, and start the daemon, which makes a new one. ${LOST_WITH_INBOX}`
}

/** What is lost with a webhooks.db. */
export const LOST_WITH_INBOX =
  'The next syncs find what waiting deliveries announced; events that waited for the relay are lost.'

/** Returns the newest copy of a database that this program opens; null: there is none. */
function copyOf(path: string, schema: Schema): string | null {
  const folder = join(dirname(path), 'backups')
  const prefix = `${basename(path, '.db')}-schema-`
  for (let version = newestOf(schema); version >= schema.first; version--) {
    const copy = join(folder, `${prefix}${version}.db`)
    if (existsSync(copy)) return copy
  }
  return null
}

function refuseNoRoom(path: string, folder: string): void {
  const sizes = [path, `${path}-wal`].map((one) => statSync(one, { throwIfNoEntry: false })?.size)
  const bytes = sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0)
  const needed = bytes + reserveFor(bytes, 2 ** 20, 2 ** 30)
  const { bavail, bsize } = statfsSync(folder)
  if (bavail * bsize >= needed) return
  throw new MirrorError(
    'storage',
    `${path} is of an earlier version and is copied before it is migrated: about ${shownBytes(needed)} are needed in ` +
      `${folder}, and ${shownBytes(bavail * bsize)} are free. Nothing was changed: free some space and start again`,
  )
}

/** Removes the oldest copies of one database; never the newest. */
function prune(folder: string, prefix: string, newest: string): void {
  const schemaOf = (name: string): number => Number(name.slice(prefix.length, -'.db'.length))
  const names = readdirSync(folder).filter((name) => name !== newest && name.startsWith(prefix) && name.endsWith('.db'))
  const old = names.sort((one, other) => schemaOf(other) - schemaOf(one)).slice(KEPT - 1)
  for (const name of old) rmSync(join(folder, name), { force: true })
}
