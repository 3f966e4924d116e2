import { MirrorError, messageOf, systemCode } from '../errors.ts'
import { nameStorageError } from '../store/database.ts'

/** A `storage` error that names the box for the file system's own, the data folder for SQLite's; anything else unchanged. */
export function nameBoxFault(
  error: unknown,
  box: 'inbox' | 'outbox',
  folder: string,
  dataDir: string,
): unknown {
  const code = systemCode(error)
  if (error instanceof MirrorError || code === undefined) return error
  if (code.startsWith('SQLITE_') || !/^E[A-Z]+$/.test(code)) return nameStorageError(error, dataDir)
  return new MirrorError(
    'storage',
    `the ${box} ${folder} cannot be read or written (${messageOf(error)})`,
    { cause: error },
  )
}

/** A message that anybody may read: what lies in a folder is named, and not where that is. */
export function stripPaths(
  message: string,
  folders: Readonly<Partial<Record<'inbox' | 'outbox' | 'data', string>>>,
): string {
  return Object.entries(folders)
    .sort(([, one], [, other]) => other.length - one.length)
    .reduce((text, [name, path]) => text.replaceAll(path, `[${name}]`), message)
}
