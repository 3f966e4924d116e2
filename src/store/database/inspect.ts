import { MirrorError, messageOf } from '../../core/errors.ts'
import { isPresent } from '../../core/files.ts'
import { INBOX_MIGRATIONS } from './migrations/webhooks.ts'
import { MIGRATIONS } from './migrations/mirror.ts'
import { isUnreadable } from './faults.ts'
import { databasePath, guarded, inboxPath } from './open.ts'
import { findingsPath } from '../findings/database.ts'
import { migrate, userVersion } from './migrate.ts'
import { Database, type Db, openAnyVersion } from './sqlite.ts'

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
    .map(({ path, steps }) => {
      const found = inspect(dataDir, path, quick, steps)
      return { path, known: steps.length, ...found }
    })
}

/** Examines the databases beside mirror.db, as far as they exist: webhooks.db and the findings of tags. */
export function inspectOthers(dataDir: string): InspectedDatabase[] {
  const [inbox] = inspectDatabases(dataDir, { quick: true }).filter(
    ({ path }) => path === inboxPath(dataDir),
  )
  const path = findingsPath(dataDir)
  const findings = guarded(dataDir, () => isPresent(path), path)
    ? [{ path, known: 0, ...inspect(dataDir, path, true) }]
    : []
  return [...(inbox === undefined ? [] : [inbox]), ...findings]
}

/** Returns what a database of this program's schema lacks of it, as SQLite would say it; nothing for another schema. */
export function missingParts(db: Db, steps: readonly string[]): string[] {
  if (userVersion(db) !== steps.length) return []
  const parts = db.prepare<[], { type: string; name: string }>(
    "SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'",
  )
  const found = new Set(parts.all().map(({ name }) => name))
  const missing = expectedParts(steps).filter(({ name }) => !found.has(name))
  const tables = missing.filter(({ type }) => type === 'table') // whose indexes and triggers are missing too
  return (tables.length > 0 ? tables : missing).map(({ type, name }) => `no such ${type}: ${name}`)
}

function expectedParts(steps: readonly string[]): { type: string; name: string }[] {
  const db = new Database(':memory:')
  try {
    db.function('random_bytes', (length) => Buffer.alloc(Number(length)))
    migrate(db, steps)
    const parts = db.prepare("SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'")
    return parts.all() as { type: string; name: string }[]
  } finally {
    db.close()
  }
}

function inspect(
  dataDir: string,
  path: string,
  quick: boolean,
  steps: readonly string[] = [],
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
          const faults = lines.filter((line) => line !== 'ok')
          return { version, faults: [...faults, ...missingParts(db, steps)] }
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
