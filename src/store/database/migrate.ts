import { MirrorError } from '../../base/errors.ts'
import { unknownAdvice } from './migration-copy.ts'
import { type Schema, isKnown, newestOf, stepsUpTo, whyUnknown } from './schema/schema.ts'

/** What migrating needs of a connection. */
interface Connection {
  readonly name: string
  pragma(text: string, options?: { simple?: boolean }): unknown
  exec(sql: string): unknown
  transaction(work: () => void): { immediate(): void }
}

/**
 * Takes a database to the newest schema by the steps that it lacks, all of them or none. `before` is called with its schema, 0 for a new one,
 * while no process can write to it; when it throws, nothing is changed. Throws `schema` as `checkVersion`.
 */
export function migrate(db: Connection, schema: Schema, before: (version: number) => void = () => undefined): void {
  checkVersion(db, schema)
  const newest = newestOf(schema)
  const isOlder = (): boolean => userVersion(db) > 0 && userVersion(db) < newest
  const prepare = db.transaction(() => {
    if (isOlder()) before(userVersion(db))
  })
  if (isOlder()) prepare.immediate()
  const apply = db.transaction(() => {
    const version = userVersion(db) // read under the lock: another process may migrate at the same time
    if (version >= newest) return
    if (version === 0) before(version)
    const done = stepsUpTo(version, schema).length
    for (const step of schema.steps.slice(done)) db.exec(step)
    db.pragma(`user_version = ${newest}`)
  })
  if (userVersion(db) < newest) apply.immediate()
}

/** Returns the schema of a database; 0 for a new one. */
export function userVersion(db: Connection): number {
  return Number(db.pragma('user_version', { simple: true }))
}

/** Throws `schema` for a database of a version that this program does not open. */
export function checkVersion(db: Connection, schema: Schema): void {
  const version = userVersion(db)
  if (isKnown(version, schema)) return
  const why = `${db.name} ${whyUnknown(version, schema)}. Nothing in it was changed`
  throw new MirrorError('schema', `${why}. ${unknownAdvice(db.name, schema)}`)
}
