import type { Db } from './database/open.ts'
import { openAnyVersion } from './database/sqlite.ts'

/** What a repair kept of a damaged mirror.db, and what it could not read. */
export interface Salvage {
  /** Number of local keys; null: they or their secret cannot be read, so no key works any more. */
  readonly keys: number | null
  readonly secret: boolean
  /** This mirror's identity in bundles, and the numbers of those that it exported and imported. */
  readonly identity: boolean
  /** `part`: of some records they could not be read, whose dates begin again. */
  readonly dates: 'whole' | 'part' | 'none'
  readonly changes: boolean
}

/** Rows by the names of their columns. */
type Row = Readonly<Record<string, unknown>>

/**
 * Copies into a new database what no upstream brings back: the secret, local keys, identity, ledgers, dates and the change
 * log, each as far as the damaged file gives it. Nothing of a group of which a part is missing is kept, but for the dates,
 * of which each row says something by itself.
 */
export function salvageInto(to: Db, damaged: string): Salvage {
  const from = openOrNull(damaged)
  if (from === null)
    return { keys: null, secret: false, identity: false, dates: 'none', changes: false }
  try {
    const source = createSource(from, to)
    return to.transaction(() => copyGroups(to, source))()
  } finally {
    from.close()
  }
}

function copyGroups(to: Db, source: Source): Salvage {
  const whole = (tables: readonly string[]): boolean => copyWhole(to, source, tables)
  const secret = whole(['secret'])
  const keys = secret && whole(['local_key'])
  const identity = whole(['mirror_identity', 'bundle_export', 'bundle_import'])
  const changes = whole(['change_log', 'change_name'])
  const dates = copyDates(to, source)
  copyNumbers(to, source)
  const count = to.prepare<[], number>('SELECT count(*) FROM local_key').pluck()
  return { keys: keys ? (count.get() ?? 0) : null, secret, identity, dates, changes }
}

/** Copies all rows of some tables, or none of any of them. */
function copyWhole(to: Db, source: Source, tables: readonly string[]): boolean {
  return attempt(to, () => {
    for (const table of tables) {
      to.exec(`DELETE FROM ${table}`)
      const put = source.putInto(table)
      for (const row of source.rows(table, '')) put(row)
    }
  })
}

/** Copies the dates from both ends: what lies between two damaged pages is lost. */
function copyDates(to: Db, source: Source): Salvage['dates'] {
  if (copyWhole(to, source, ['osv_dates'])) return 'whole'
  const put = source.putInto('osv_dates')
  let kept = 0
  for (const order of ['ORDER BY id', 'ORDER BY id DESC'])
    try {
      for (const row of source.rows('osv_dates', order)) {
        put(row)
        kept++
      }
    } catch {
      continue // the other end may be sound
    }
  return kept > 0 ? 'part' : 'none'
}

/** Numbers that are never given twice go on from where they were. */
function copyNumbers(to: Db, source: Source): void {
  const known = to.prepare<[string], number>('SELECT 1 FROM sqlite_sequence WHERE name = ?').pluck()
  const add = to.prepare('INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)')
  const raise = to.prepare('UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?')
  attempt(to, () => {
    for (const { name, seq } of source.rows('sqlite_sequence', '')) {
      if (known.get(String(name)) === undefined) add.run(name, seq)
      else raise.run(seq, name)
    }
  })
}

/** Does the work, or nothing of it when it fails. Returns whether it was done. */
function attempt(to: Db, work: () => void): boolean {
  try {
    to.transaction(work)()
    return true
  } catch {
    return false // the caller says that this is lost
  }
}

type Source = ReturnType<typeof createSource>

/** Reads of the damaged database by the columns of the new one. */
function createSource(from: Db, to: Db) {
  const columnsOf = (table: string): string[] =>
    (to.pragma(`table_info(${table})`) as { name: string }[]).map(({ name }) => name)
  return {
    rows(table: string, order: string): IterableIterator<Row> {
      const columns = columnsOf(table).join(', ')
      return from.prepare<[], Row>(`SELECT ${columns} FROM ${table} ${order}`).iterate()
    },
    putInto(table: string): (row: Row) => void {
      const columns = columnsOf(table)
      const places = columns.map((name) => `@${name}`).join(', ')
      const put = to.prepare<[Row]>(
        `INSERT OR REPLACE INTO ${table} (${columns.join(', ')}) VALUES (${places})`,
      )
      return (row) => void put.run(row)
    },
  }
}

function openOrNull(path: string): Db | null {
  try {
    return openAnyVersion(path)
  } catch {
    return null
  }
}

/** Marks the dates that a repair could not keep, and that begin at it, as upper bounds. */
export function markBegunDates(db: Db, since: number): void {
  db.prepare('UPDATE osv_dates SET flags = flags | 7 WHERE first_seen >= ?').run(since)
}
