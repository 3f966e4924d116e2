import { MirrorError } from '../../core/errors.ts'
import { isPresent } from '../../core/files.ts'
import { INBOX_MIGRATIONS } from './migrations/webhooks.ts'
import { MIGRATIONS } from './migrations/mirror.ts'
import { databasePath, guarded, inboxPath } from './open.ts'
import { openAnyVersion } from './sqlite.ts'

/** A database of a data folder, examined without any write. */
interface InspectedDatabase {
  readonly path: string
  /** Its schema, and the newest one that this program knows. */
  readonly version: number
  readonly known: number
  /** What is damaged, at most 20 lines; empty when nothing is. */
  readonly faults: readonly string[]
}

/**
 * Examines mirror.db and webhooks.db as far as they exist, whatever their schema: `quick` reads every page of them. Throws
 * `storage` for a file that cannot be read at all.
 */
export function inspectDatabases(
  dataDir: string,
  { quick }: { quick: boolean },
): InspectedDatabase[] {
  const files = [
    { path: databasePath(dataDir), known: MIGRATIONS.length },
    { path: inboxPath(dataDir), known: INBOX_MIGRATIONS.length },
  ]
  return files
    .filter(({ path }) => guarded(dataDir, () => isPresent(path), path))
    .map(({ path, known }) => ({ path, known, ...inspect(dataDir, path, quick) }))
}

function inspect(
  dataDir: string,
  path: string,
  quick: boolean,
): { version: number; faults: string[] } {
  try {
    return guarded(
      dataDir,
      () => {
        const db = openAnyVersion(path)
        try {
          const version = Number(db.pragma('user_version', { simple: true }))
          const rows = quick ? (db.pragma('quick_check(20)') as { quick_check: string }[]) : []
          const lines = rows.map(({ quick_check }) => quick_check)
          return { version, faults: lines.filter((line) => line !== 'ok') }
        } finally {
          db.close()
        }
      },
      path,
    )
  } catch (error) {
    if (!(error instanceof MirrorError) || error.code !== 'corrupt') throw error
    return { version: 0, faults: [error.message] }
  }
}
