import { MirrorError } from '../../core/errors.ts'
import { isPresent } from '../../core/files.ts'
import { INBOX_MIGRATIONS } from './migrations/webhooks.ts'
import { MIGRATIONS } from './migrations/mirror.ts'
import { databasePath, guarded, inboxPath } from './open.ts'
import { userVersion } from './migrate.ts'
import { refuseForeignSchema } from './own-schema.ts'
import { type Db, openAnyVersion } from './sqlite.ts'

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
    { path: databasePath(dataDir), steps: MIGRATIONS },
    { path: inboxPath(dataDir), steps: INBOX_MIGRATIONS },
  ]
  return files
    .filter(({ path }) => guarded(dataDir, () => isPresent(path), path))
    .map(({ path, steps }) => ({
      path,
      known: steps.length,
      ...inspect(dataDir, path, quick ? steps : null),
    }))
}

function inspect(
  dataDir: string,
  path: string,
  steps: readonly string[] | null,
): { version: number; faults: string[] } {
  try {
    return guarded(
      dataDir,
      () => {
        const db = openAnyVersion(path)
        try {
          const version = userVersion(db)
          return { version, faults: steps === null ? [] : faultsOf(db, steps) }
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

/** What is wrong with the pages of a database; with its schema, where that is not its own: what checks the pages would run it. */
function faultsOf(db: Db, steps: readonly string[]): string[] {
  try {
    if (userVersion(db) <= steps.length) refuseForeignSchema(db, steps)
  } catch (error) {
    if (error instanceof MirrorError) return [error.message]
    throw error
  }
  const rows = db.pragma('quick_check(20)') as { quick_check: string }[]
  return rows.map(({ quick_check }) => quick_check).filter((line) => line !== 'ok')
}
