import { statSync } from 'node:fs'
import { basename } from 'node:path'
import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads'
import { MirrorError } from '../../base/errors.ts'
import { nameStorageError } from './faults.ts'
import { checkVersion, userVersion } from './migrate.ts'
import { type Schema, stepsUpTo } from './schema/schema.ts'
import { type Db, connect } from './sqlite.ts'
import { closing } from '../../base/closing.ts'

/** An entry of `sqlite_schema`: type, name, table, SQL text; without text what SQLite makes by itself. */
type Entry = readonly [type: string, name: string, table: string, sql: string | null]

const ENTRIES = 'SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name'

/**
 * Throws `schema` as `checkVersion`, and where a database has anything but what the steps up to its own schema make: a trigger or view of somebody else would run with every statement. Call it first: it reads `sqlite_schema` alone.
 */
export function refuseForeignSchema(db: Db, schema: Schema): void {
  checkVersion(db, schema)
  const { version, found } = db
    .transaction(() => ({
      version: userVersion(db),
      found: db.prepare<[], Entry>(ENTRIES).raw().all(),
    }))
    .deferred()
  const own = ownSchema(schema, version)
  if (JSON.stringify(found) === own) return
  const expected = JSON.parse(own) as Entry[]
  const foreign = firstForeign(found, expected)
  if (foreign !== null)
    throw new MirrorError(
      'schema',
      `${db.name} is not a database as Patchmirror makes it: ${foreign}. Nothing of it was used: restore a backup that you ` +
        'wrote yourself, or take a copy of the database from before it was changed. Without either, stop the daemon, move ' +
        `the file away and start the daemon, which makes a new one${logAdvice(db.name)}`,
    )
  const missing = firstMissing(found, expected)
  if (missing !== null) throw damageOf(db, missing)
}

/** Reports whether a write-ahead log with content lies beside a database. */
export function hasLogged(path: string): boolean {
  return (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0
}

/** Says what to do first where the log beside a database may be what is foreign. */
function logAdvice(path: string): string {
  const name = basename(path)
  return hasLogged(path)
    ? `. Before all that, stop the daemon and move ${name}-wal and ${name}-shm to another folder: if that log is of another database, nothing else is wrong`
    : ''
}

/** Returns a sentence on a part of its own schema that a database lacks; null: it has all. */
export function missingPart(db: Db, schema: Schema): string | null {
  const found = db.prepare<[], Entry>(ENTRIES).raw().all()
  return firstMissing(found, JSON.parse(ownSchema(schema, userVersion(db))) as Entry[])
}

/** Returns the error for a database that lacks a part of itself, as that of a page that cannot be read. */
function damageOf(db: Db, why: string): unknown {
  const cause = Object.assign(new Error(why), { code: 'SQLITE_CORRUPT', database: db.name })
  return nameStorageError(cause, null)
}

/** Returns as JSON what the steps up to `version` make in an empty database. One thread makes it, and those that it starts have it. */
function ownSchema(schema: Schema, version: number): string {
  const steps = stepsUpTo(version, schema)
  const key = `own schema ${version} ${steps.at(-1) ?? ''}`
  const known = getEnvironmentData(key)
  if (typeof known === 'string') return known
  const empty = connect(':memory:')
  return closing(empty, () => {
    empty.function('random_bytes', (length) => Buffer.alloc(Number(length)))
    for (const step of steps) empty.exec(step)
    const made = JSON.stringify(empty.prepare(ENTRIES).raw().all())
    setEnvironmentData(key, made)
    return made
  })
}

/** Returns a sentence on the first entry that is too many, or of another meaning; null: there is none. */
function firstForeign(found: readonly Entry[], own: readonly Entry[]): string | null {
  const expected = new Map(own.map((entry) => [entry[1], entry]))
  for (const entry of found) {
    const [type, name, table] = entry
    const like = expected.get(name)
    if (like === undefined) return `it has ${type} ${shown(name)} on ${shown(table)}`
    if (meaningOf(like) !== meaningOf(entry)) return `its ${type} ${shown(name)} is another one`
  }
  return null
}

/** Returns a sentence on the first entry that is not there, a table first; null: all are. */
function firstMissing(found: readonly Entry[], own: readonly Entry[]): string | null {
  const names = new Set(found.map(([, name]) => name))
  const lost = own.filter(([, name]) => !names.has(name))
  const missing = lost.find(([type]) => type === 'table') ?? lost[0]
  return missing === undefined ? null : `it has no ${missing[0]} ${missing[1]}`
}

/** Texts of SQL, names and comments of it, spaces, and anything else. */
const TOKEN = /'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\]|--[^\n]*|\/\*[\s\S]*?\*\/|\s+|\w+|./g

/** Returns an entry without what changes nothing of its meaning: comments and spaces. */
function meaningOf([type, name, table, sql]: Entry): string {
  const tokens = (sql ?? '').match(TOKEN) ?? []
  const kept = tokens.filter((token) => !/^(?:--|\/\*|\s)/.test(token))
  return JSON.stringify([type, name, table, kept])
}

/** A name of a stranger in a message. */
function shown(name: string): string {
  return JSON.stringify(name.slice(0, 60))
}
