import Database from 'better-sqlite3'
import { type EntryQuery, createCatalogQuery } from '../../../src/store/catalog/list-query.ts'

/** One page to read from the database file itself. */
export type Reading = EntryQuery

/** How long it took, milliseconds. */
export interface Read {
  ms: number
  rows: number
}

const [file = ''] = process.argv.slice(2)
const db = new Database(file, { readonly: true })
db.pragma('cache_size = -16384') // as the serving side has it
const query = createCatalogQuery(db)

process.on('disconnect', () => process.exit(0))
process.on('message', (asked: Reading) => {
  const started = performance.now()
  const { length } = query.listEntries(asked)
  process.send?.({ ms: performance.now() - started, rows: length } satisfies Read)
})
process.send?.('ready')
