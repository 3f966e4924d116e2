import { MirrorError, messageOf } from '../../base/errors.ts'
import { isPresent } from '../../base/files.ts'
import { INBOX_MIGRATIONS } from './migrations/webhooks.ts'
import { MIGRATIONS } from './migrations/mirror.ts'
import { isUnreadable } from './faults.ts'
import { databasePath, guarded, inboxPath } from './open.ts'
import { findingsPath } from '../findings/database.ts'
import { userVersion } from './migrate.ts'
import { refuseForeignSchema } from './own-schema.ts'
import { type Db, openAnyVersion } from './sqlite.ts'

/** A database of a data folder, examined without any write. */
export interface InspectedDatabase {
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
export function inspectDatabases(dataDir: string, { quick }: { quick: boolean }): InspectedDatabase[] {
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

/** Examines the databases beside mirror.db, as far as they exist: webhooks.db and the findings of tags. */
export function inspectOthers(dataDir: string): InspectedDatabase[] {
  const [inbox] = inspectDatabases(dataDir, { quick: true }).filter(({ path }) => path === inboxPath(dataDir))
  const path = findingsPath(dataDir)
  const findings = guarded(dataDir, () => isPresent(path), path)
    ? [{ path, known: 0, ...inspect(dataDir, path, []) }]
    : []
  return [...(inbox === undefined ? [] : [inbox]), ...findings]
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
    if (!isUnreadable(error)) throw error
    const inner = error instanceof MirrorError ? (error.cause ?? error) : error
    return { version: 0, faults: [messageOf(inner)] } // what to do is said once, by the caller
  }
}

/** What is wrong with the pages of a database; with its schema, where that is not its own: what checks the pages would run it. */
function faultsOf(db: Db, steps: readonly string[]): string[] {
  try {
    if (userVersion(db) <= steps.length) refuseForeignSchema(db, steps)
  } catch (error) {
    if (error instanceof MirrorError) return [messageOf(error.cause ?? error)]
    throw error
  }
  const rows = db.pragma('quick_check(20)') as { quick_check: string }[]
  return rows.map(({ quick_check }) => quick_check).filter((line) => line !== 'ok')
}
