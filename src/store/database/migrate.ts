import { MirrorError } from '../../base/errors.ts'
import { newerAdvice } from './migration-copy.ts'

/** What migrating needs of a connection. */
interface Connection {
  readonly name: string
  pragma(text: string, options?: { simple?: boolean }): unknown
  exec(sql: string): unknown
  transaction(work: () => void): { immediate(): void }
}

/**
 * Takes a database to the newest schema by the steps that it lacks, all of them or none. `before` is called with the schema of a database that is not new,
 * while no process can write to it; when it throws, nothing is changed. Throws `schema` for one of a newer program.
 */
export function migrate(
  db: Connection,
  steps: readonly string[],
  before: (version: number) => void = () => undefined,
): void {
  checkVersion(db, steps)
  const isOlder = (): boolean => userVersion(db) > 0 && userVersion(db) < steps.length
  const prepare = db.transaction(() => {
    if (isOlder()) before(userVersion(db))
  })
  if (isOlder()) prepare.immediate()
  const apply = db.transaction(() => {
    const version = userVersion(db) // read under the lock: another process may migrate at the same time
    if (version >= steps.length) return
    for (const step of steps.slice(version)) db.exec(step)
    db.pragma(`user_version = ${steps.length}`)
  })
  if (userVersion(db) < steps.length) apply.immediate()
}

/** Returns the schema of a database; 0 for a new one. */
export function userVersion(db: Connection): number {
  return Number(db.pragma('user_version', { simple: true }))
}

/** Throws `schema` for a database that a newer program wrote. */
export function checkVersion(db: Connection, { length: known }: readonly string[]): void {
  const version = userVersion(db)
  if (version <= known) return
  throw new MirrorError(
    'schema',
    `${db.name} has schema ${version}, this program knows up to ${known}: ` +
      `it was written by a newer Patchmirror. ${newerAdvice(db.name, known)}`,
  )
}
