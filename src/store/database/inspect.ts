import { basename } from 'node:path'
import { MirrorError, messageOf } from '../../base/errors.ts'
import { isPresent } from '../../base/files.ts'
import { isUnreadable, namingFaults } from './faults.ts'
import { databasePath, hasLostLog, inboxPath } from './open.ts'
import { FINDINGS_SCHEMA, findingsPath } from '../findings/database.ts'
import { faultOfSeal } from '../findings/seal.ts'
import { userVersion } from './migrate.ts'
import { refuseForeignSchema } from './own-schema.ts'
import { MIRROR_SCHEMA } from './schema/mirror.ts'
import { type Schema, isKnown } from './schema/schema.ts'
import { WEBHOOKS_SCHEMA } from './schema/webhooks.ts'
import { type Db, openAnyVersion } from './sqlite.ts'
import { closing } from '../../base/closing.ts'

/** A database of a data folder, examined without any write. */
export interface InspectedDatabase {
  readonly path: string
  /** The number of its schema; 0 where it has none, or cannot be read. */
  readonly version: number
  /** The schema that this program makes it with. */
  readonly schema: Schema
  /** What is damaged, at most 20 lines; empty when nothing is. */
  readonly faults: readonly string[]
}

/** Says what is damaged of a database. */
export function describeDamage({ path, faults }: InspectedDatabase): string {
  return `${basename(path)}: ${faults.join('; ')}`
}

/**
 * Examines mirror.db and webhooks.db as far as they exist, whatever their schema: `quick` reads every page of them. Throws
 * `storage` for a file that cannot be read at all.
 */
export function inspectDatabases(dataDir: string, { quick }: { quick: boolean }): InspectedDatabase[] {
  const files = [
    { path: databasePath(dataDir), schema: MIRROR_SCHEMA },
    { path: inboxPath(dataDir), schema: WEBHOOKS_SCHEMA },
  ]
  return files
    .filter(({ path }) => namingFaults(dataDir, () => isPresent(path), path))
    .map(({ path, schema }) => ({
      path,
      schema,
      ...inspect(dataDir, path, quick ? (db) => faultsOf(db, schema) : () => []),
    }))
}

/** Examines the databases beside mirror.db, as far as they exist: webhooks.db and the findings of tags. */
export function inspectOthers(dataDir: string): InspectedDatabase[] {
  const [inbox] = inspectDatabases(dataDir, { quick: true }).filter(({ path }) => path === inboxPath(dataDir))
  const path = findingsPath(dataDir)
  const findings = namingFaults(dataDir, () => isPresent(path), path)
    ? [{ path, schema: FINDINGS_SCHEMA, ...inspect(dataDir, path, faultsOfFindings) }]
    : []
  return [...(inbox === undefined ? [] : [inbox]), ...findings]
}

function inspect(dataDir: string, path: string, look: (db: Db) => string[]): { version: number; faults: string[] } {
  try {
    return namingFaults(
      dataDir,
      () => {
        if (hasLostLog(path)) return { version: 0, faults: [] }
        const db = openAnyVersion(path)
        return closing(db, () => ({ version: userVersion(db), faults: look(db) }))
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
function faultsOf(db: Db, schema: Schema): string[] {
  try {
    if (isKnown(userVersion(db), schema)) refuseForeignSchema(db, schema)
  } catch (error) {
    if (error instanceof MirrorError) return [messageOf(error.cause ?? error)]
    throw error
  }
  return faultyPages(db)
}

function faultsOfFindings(db: Db): string[] {
  const faults = faultyPages(db)
  const fault = faults.length === 0 ? faultOfSeal(db) : null
  return fault === null ? faults : [fault]
}

function faultyPages(db: Db): string[] {
  const rows = db.pragma('quick_check(20)') as { quick_check: string }[]
  return rows.map(({ quick_check }) => quick_check).filter((line) => line !== 'ok')
}
