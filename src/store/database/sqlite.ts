import Database from 'better-sqlite3'
import { loadCompiled } from '../../threads/load-lock.ts'

/** A connection. */
export type Db = Database.Database

// The library loads its compiled part with the first connection of a thread.
loadCompiled(() => new Database(':memory:').close())

export { Database }
