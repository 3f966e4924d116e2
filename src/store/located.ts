import { MirrorError, systemCode } from '../base/errors.ts'

/** What a statement of a database is about, for the message about its error: noted where the connection is made. */
interface Located {
  readonly database?: string
}

/** Notes the database in an error of SQLite, which names none itself, and throws it. */
export function throwLocated(error: unknown, database: string): never {
  const isOwn = systemCode(error)?.startsWith('SQLITE_') === true
  if (isOwn && databaseOf(error) === null) Object.assign(error as object, { database })
  throw error
}

/** Returns the database that an error of SQLite is about; null: it is not known. */
export function databaseOf(error: unknown): string | null {
  if (typeof error !== 'object' || error === null) return null
  const { database, cause } = error as Located & { readonly cause?: unknown }
  if (typeof database === 'string') return database
  return error instanceof MirrorError ? databaseOf(cause) : null
}
