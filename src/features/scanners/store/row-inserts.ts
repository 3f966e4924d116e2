import type { Db } from '../../../store/database/open.ts'

/** Rows of a statement that inserts many: what calling SQLite costs is then little beside what a row costs. */
const MANY = 50

/** Inserts rows of one table, each at once or many together. */
interface RowInserts {
  readonly add: (...values: unknown[]) => void
  /** Inserts the rows that wait. */
  readonly flush: () => void
}

/** Creates inserts by a statement up to its `VALUES`; `waits`: rows wait until there are many, and no read may expect them. */
export function createRowInserts(db: Db, insert: string, columns: number, waits: boolean): RowInserts {
  const row = `(${Array(columns).fill('?').join()})`
  const one = db.prepare(`${insert} VALUES ${row}`)
  if (!waits) return { add: (...values) => void one.run(...values), flush: () => undefined }
  const many = db.prepare(`${insert} VALUES ${Array(MANY).fill(row).join()}`)
  let waiting: unknown[] = []
  return {
    add(...values) {
      waiting.push(...values)
      if (waiting.length < MANY * columns) return
      many.run(waiting)
      waiting = []
    },
    flush() {
      for (let at = 0; at < waiting.length; at += columns) one.run(...waiting.slice(at, at + columns))
      waiting = []
    },
  }
}

/**
 * Creates inserts into a table whose rows come in another order than its key's: where they wait, all of them are kept in a
 * temporary table and inserted in order at the end, which takes less time and leaves no pages half empty.
 */
export function createSortedInserts(
  db: Db,
  insert: string,
  table: string,
  columns: readonly string[],
  waits: boolean,
): RowInserts {
  if (!waits) return createRowInserts(db, `${insert} ${table}`, columns.length, false)
  const names = columns.join()
  db.exec(`CREATE TEMP TABLE new_${table} (${names})`)
  const unsorted = createRowInserts(db, `INSERT INTO temp.new_${table}`, columns.length, true)
  return {
    add: unsorted.add,
    flush() {
      unsorted.flush()
      db.exec(`${insert} ${table} SELECT ${names} FROM temp.new_${table} ORDER BY ${names};
        DELETE FROM temp.new_${table}`)
    },
  }
}
