import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads'
import { MirrorError } from '../../core/errors.ts'
import { checkVersion, migrate, userVersion } from './migrate.ts'
import { type Db, connect } from './sqlite.ts'

/** An entry of `sqlite_schema`: type, name, table, SQL text; without text what SQLite makes by itself. */
type Entry = readonly [type: string, name: string, table: string, sql: string | null]

const ENTRIES = 'SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name'

/**
 * Throws `schema` for a database of a newer program, and where one has anything but what the first `user_version` of these steps
 * make: a trigger or view of somebody else would run with every statement. Call it first: it reads `sqlite_schema` alone.
 */
export function refuseForeignSchema(db: Db, steps: readonly string[]): void {
  checkVersion(db, steps)
  const { version, found } = db
    .transaction(() => ({
      version: userVersion(db),
      found: db.prepare<[], Entry>(ENTRIES).raw().all(),
    }))
    .deferred()
  const own = ownSchema(steps, version)
  if (JSON.stringify(found) === own) return
  const difference = firstDifference(found, JSON.parse(own) as Entry[])
  if (difference === null) return
  throw new MirrorError(
    'schema',
    `${db.name} is not a database as Patchmirror makes it: ${difference}. Nothing of it was used: restore a backup that you ` +
      'wrote yourself, or take a copy of the database from before it was changed',
  )
}

/** Returns as JSON what the first `version` steps make in an empty database. One thread makes it, and those that it starts have it. */
function ownSchema(steps: readonly string[], version: number): string {
  const key = `own schema ${version} ${steps[version - 1] ?? ''}`
  const known = getEnvironmentData(key)
  if (typeof known === 'string') return known
  const empty = connect(':memory:')
  try {
    empty.function('random_bytes', (length) => Buffer.alloc(Number(length)))
    migrate(empty, steps.slice(0, Math.max(0, version)))
    const made = JSON.stringify(empty.prepare(ENTRIES).raw().all())
    setEnvironmentData(key, made)
    return made
  } finally {
    empty.close()
  }
}

/** Returns a sentence on the first entry that is too many, missing, or of another meaning; null: there is none. */
function firstDifference(found: readonly Entry[], own: readonly Entry[]): string | null {
  const expected = new Map(own.map((entry) => [entry[1], entry]))
  for (const entry of found) {
    const [type, name, table] = entry
    const like = expected.get(name)
    expected.delete(name)
    if (like === undefined) return `it has ${type} ${shown(name)} on ${shown(table)}`
    if (meaningOf(like) !== meaningOf(entry)) return `its ${type} ${shown(name)} is another one`
  }
  const [missing] = expected.values()
  return missing === undefined ? null : `it has no ${missing[0]} ${missing[1]}`
}

/** Texts of SQL, names and comments of it, spaces, and anything else. */
const TOKEN =
  /'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\]|--[^\n]*|\/\*[\s\S]*?\*\/|\s+|\w+|./g

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
