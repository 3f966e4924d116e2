import { createRequire } from 'node:module'
import Sqlite from 'better-sqlite3'
import { loadCompiled } from '../../base/threads/load-lock.ts'
import { throwLocated } from '../located.ts'

/** A statement, as far as this program uses one. */
type Statement<Values extends unknown[], Row> = Pick<
  Sqlite.Statement<Values, Row>,
  'run' | 'get' | 'all' | 'iterate'
> & {
  /** Its rows are the values of their first column, from now on. */
  pluck(): Statement<Values, Row>
  /** Its rows are arrays, from now on. */
  raw(): Statement<Values, Row>
}

/** A connection. */
export type Db = Omit<Sqlite.Database, 'prepare'> & {
  prepare<Values extends unknown[] | object = unknown[], Row = unknown>(
    sql: string,
  ): Statement<Values extends unknown[] ? Values : [Values], Row>
}

// The library loads its compiled part with the first connection of a thread.
loadCompiled(() => new Sqlite(':memory:').close())

/** A connection whose errors name its file: SQLite's own do not. */
export class Database extends Sqlite {
  constructor(path: string, options?: Sqlite.Options) {
    try {
      super(path, options)
    } catch (error) {
      throwLocated(error, path)
    }
  }
  override pragma(source: string, options?: Sqlite.PragmaOptions): unknown {
    return located(this.name, () => super.pragma(source, options))
  }
  override exec(source: string): this {
    return located(this.name, () => super.exec(source))
  }
}

function located<T>(path: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    throwLocated(error, path)
  }
}

/**
 * Makes a connection compile each statement at its first use: the reads and writes of all tables are several hundred, of
 * which a command or a thread uses a few. That the schema can be read is known before: `userVersion` reads it.
 */
export function compileWhenUsed(db: Sqlite.Database): Db {
  const compile = db.prepare.bind(db)
  return Object.assign(db, { prepare: (sql: string) => whenUsed(() => compile(sql), db.name) })
}

function whenUsed(compile: () => Sqlite.Statement, path: string): Statement<unknown[], unknown> {
  let compiled: Sqlite.Statement | null = null
  let form: 'pluck' | 'raw' | null = null
  const use = (): Sqlite.Statement => {
    if (compiled !== null) return compiled
    compiled = compile()
    return form === null ? compiled : compiled[form]()
  }
  const statement: Statement<unknown[], unknown> = {
    run: (...values) => located(path, () => use().run(...values)),
    get: (...values) => located(path, () => use().get(...values)),
    all: (...values) => located(path, () => use().all(...values)),
    iterate: (...values) =>
      locatedRows(
        path,
        located(path, () => use().iterate(...values)),
      ),
    pluck: () => as('pluck'),
    raw: () => as('raw'),
  }
  const as = (wanted: 'pluck' | 'raw'): Statement<unknown[], unknown> => {
    form = wanted
    compiled?.[wanted]()
    return statement
  }
  return statement
}

/** Passes rows on; an error on the way names the file. */
function locatedRows(path: string, rows: IterableIterator<unknown>): IterableIterator<unknown, undefined> {
  const own: IterableIterator<unknown, undefined> = {
    next: () => located(path, () => rows.next() as IteratorResult<unknown, undefined>),
    return() {
      rows.return?.()
      return { done: true, value: undefined }
    },
    [Symbol.iterator]: () => own,
  }
  return own
}

/** Path of the library, for another process. */
export const SQLITE_MODULE = createRequire(import.meta.url).resolve('better-sqlite3')

/**
 * Opens a connection to a database that may come from elsewhere: functions and virtual tables that could do harm are not called
 * from its schema. The library's default forbids statements that damage a database (SQLITE_DBCONFIG_DEFENSIVE).
 */
export function connect(path: string, options: Sqlite.Options = {}): Database {
  const db = new Database(path, options)
  db.pragma('trusted_schema = OFF')
  return db
}

/** Opens a database read-only, whatever its schema, to examine it. */
export function openAnyVersion(path: string): Db {
  const db = connect(path, { readonly: true, timeout: 5_000 })
  db.pragma('mmap_size = 0')
  return db
}

/**
 * Opens a damaged database read-only, to read what it still has. One that is shorter than its header says, SQLite refuses as a
 * whole otherwise.
 */
export function openDamaged(path: string): Db {
  const db = openAnyVersion(path)
  db.unsafeMode(true) // the next line has an effect only so; nothing can be written
  db.pragma('writable_schema = ON')
  return db
}
