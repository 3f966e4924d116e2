import type { CatalogEntry } from './lists.ts'
import type { Db } from '../database/open.ts'

/** Number of fields of an item by which a list can be filtered. */
export const FACETS = 8

/** A field's number (0 to FACETS - 1, as declared by the resource) and the accepted values. */
export interface Where {
  facet: number
  values: readonly string[]
}

/**
 * Order by a facet, by another field of the item, or, with both null, in upstream's own order. A field is the names that
 * lead to it (no quote, no backslash).
 */
export interface ListOrder {
  facet: number | null
  field: readonly string[] | null
  descending: boolean
}

/** A position in an ordered list: after the entry with this value of the ordering field and this ordinal. */
export interface ListPosition {
  value: string | number | null
  ordinal: number
}

/** Selects entries of a list and their order. */
export interface EntryQuery {
  list: number
  where: readonly Where[]
  order: ListOrder
  after: ListPosition | null
  limit: number
  /** Reading stops after the row with which the bodies exceed this, bytes; unlimited if absent. */
  maxBytes?: number
  /** Maximum number of rows that match: few rows are cheaper to sort than to find in the list's order. */
  matches?: number
  /** Table with the list's order by this field, created by `createOrderings`. */
  ordering?: string
}

/** An entry and the value of its ordering field. */
export type OrderedEntry = CatalogEntry & { value: string | number | null }

/**
 * Creates reads of filtered, ordered pages of a list by SQL. Statements are cached by their text: one per set of
 * filters, order and direction.
 */
export function createCatalogQuery(db: Db) {
  const statements = new Map<string, ReturnType<typeof db.prepare<unknown[], unknown>>>()
  const prepared = (sql: string): ReturnType<typeof db.prepare<unknown[], unknown>> => {
    const known = statements.get(sql)
    if (known !== undefined) return known
    const created = db.prepare(sql)
    if (statements.size >= 500) statements.clear()
    statements.set(sql, created)
    return created
  }
  /** Appends the rows of a segment; returns false when the query's limit is reached. */
  const listSome = (query: EntryQuery, segment: Condition, rows: OrderedEntry[]): boolean => {
    const { sql, values } = selectOf(query, segment, query.limit - rows.length)
    let bytes = rows.reduce((sum, { body }) => sum + body.length, 0)
    for (const row of prepared(sql).iterate(...values)) {
      const entry = row as OrderedEntry // the columns named in the statement
      rows.push(entry)
      bytes += entry.body.length
      if (bytes > (query.maxBytes ?? Number.POSITIVE_INFINITY)) return false
    }
    return rows.length < query.limit
  }
  return {
    listEntries(query: EntryQuery): OrderedEntry[] {
      const rows: OrderedEntry[] = []
      for (const segment of segmentsOf(query)) if (!listSome(query, segment, rows)) break
      return rows
    },
    /** Returns the position behind the first `count` entries of a query; null when there are no more. */
    positionAfter(query: EntryQuery, count: number): ListPosition | null {
      const { list, where, order } = query
      if (order.facet !== null || order.field !== null) {
        const rows = this.listEntries({ ...query, after: null, limit: count })
        return rows.length < count ? null : (rows.at(-1) ?? null)
      }
      const { text, values } = conditionsOf(list, where)
      const sql = `SELECT ordinal FROM catalog_entry WHERE ${text} ORDER BY ordinal LIMIT 1 OFFSET ?`
      const row = prepared(sql).get(...values, count - 1) as { ordinal: number } | undefined
      return row === undefined ? null : { value: null, ordinal: row.ordinal }
    },
    /** Returns an entry by its id, with its value in an order; null if there is none. */
    readOrderedEntry(list: number, id: string, order: ListOrder): OrderedEntry | null {
      const sql = `SELECT ${columnsOf(order)} FROM catalog_entry WHERE list = ? AND id = ?`
      return (prepared(sql).get(list, id) as OrderedEntry | undefined) ?? null
    },
    /** Whether any item of a list has a value for a facet; given values, whether any item has one of these. */
    hasFacet(list: number, facet: number, values?: readonly string[]): boolean {
      const key = column(facet)
      const marks = values?.map(() => '?').join(', ')
      const test = marks === undefined ? `${key} IS NOT NULL` : `${key} IN (${marks})`
      const sql = `SELECT 1 FROM catalog_entry WHERE list = ? AND ${test} LIMIT 1`
      return prepared(sql).get(list, ...(values ?? [])) !== undefined
    },
    countEntries(list: number, where: readonly Where[]): number {
      const { text, values } = conditionsOf(list, where)
      const sql = `SELECT count(*) AS count FROM catalog_entry WHERE ${text}`
      return (prepared(sql).get(...values) as { count: number }).count
    },
  }
}

/** Orders kept at the same time; each uses about 40 bytes of disk per entry. */
const KEPT_ORDERINGS = 8

/**
 * Creates orders of lists by fields without an index, in temporary tables: sorting a list is slow, and is done once for
 * all of its pages. An order is valid for one state of its list (`version`).
 */
export function createOrderings(db: Db) {
  const created = new Map<string, string>()
  let count = 0
  const drop = (key: string, table: string): void => {
    db.exec(`DROP TABLE IF EXISTS temp.${table}`)
    created.delete(key)
  }
  return {
    /** Drops all orders, as after a transaction whose rollback may have removed some of them. */
    forget(): void {
      for (const [key, table] of created) drop(key, table)
    },
    /** Returns the table of an order; creates it if it does not exist. */
    orderingOf(version: string, list: number, order: ListOrder): string {
      const field = keyOf({ ...order, descending: false }) ?? 'NULL'
      const key = `${version} ${list} ${field}`
      const known = created.get(key)
      if (known !== undefined) return known
      for (const [old, table] of created)
        if (created.size >= KEPT_ORDERINGS || !old.startsWith(`${version} `)) drop(old, table)
      const table = `ordering_${++count}`
      db.exec(`CREATE TABLE temp.${table} (value, place INTEGER)`)
      db.prepare(`INSERT INTO temp.${table} SELECT ${field}, ordinal FROM catalog_entry WHERE list = ?`).run(list)
      db.exec(`CREATE INDEX temp.${table}_up ON ${table} (value, place);
        CREATE INDEX temp.${table}_down ON ${table} (value DESC, place)`)
      created.set(key, table)
      return table
    },
  }
}

interface Condition {
  text: string
  values: unknown[]
}

function conditionsOf(list: number, where: readonly Where[]): Condition {
  const parts = ['list = ?']
  const values: unknown[] = [list]
  for (const { facet, values: wanted } of where) {
    const marks = wanted.map(() => '?').join(', ')
    parts.push(wanted.length === 1 ? `${column(facet)} = ?` : `${column(facet)} IN (${marks})`)
    values.push(...wanted)
  }
  return { text: parts.join(' AND '), values }
}

function columnsOf(order: ListOrder): string {
  return `ordinal, id, body, sha, ${keyOf(order) ?? 'NULL'} AS value`
}

/** Number of matches up to which they are sorted instead of being searched along the order. */
const FEW = 5000

function selectOf(
  { list, where, order, matches, ordering }: EntryQuery,
  segment: Condition,
  limit: number,
): { sql: string; values: unknown[] } {
  const { text, values } = conditionsOf(list, where)
  const way = order.descending ? 'DESC' : 'ASC'
  if (ordering !== undefined) {
    const sql = `SELECT e.ordinal, e.id, e.body, e.sha, o.value FROM temp.${ordering} o
      CROSS JOIN catalog_entry e ON e.list = ? AND e.ordinal = o.place
      WHERE ${segment.text} ORDER BY o.value ${way}, o.place LIMIT ?`
    return { sql, values: [list, ...segment.values, limit] }
  }
  const key = keyOf(order)
  // The unary + keeps SQLite from using an index for the order.
  const few = where.length > 0 && matches !== undefined && matches <= FEW ? '+' : ''
  const by = key === null ? 'ordinal' : `${few}value ${way}, ordinal`
  const sql = `SELECT ${columnsOf(order)} FROM catalog_entry
    WHERE ${text} AND ${segment.text} ORDER BY ${by} LIMIT ?`
  return { sql, values: [...values, ...segment.values, limit] }
}

/**
 * Returns the SQL of the ordering field; null for upstream's order. Items nested deeper than SQLite parses (1000) have
 * no value. The field's name is validated where the request is read, and here again because it becomes SQL.
 */
function keyOf({ facet, field }: ListOrder): string | null {
  if (facet !== null) return column(facet)
  if (field === null) return null
  if (field.some((name) => /["\\]/.test(name))) throw new Error(`not a field: ${field.join()}`)
  const path = field.map((name) => `."${name.replaceAll("'", "''")}"`).join('')
  const json = `(CAST(body AS TEXT), '$${path}')`
  // Numbers as the cursor represents them: JavaScript's, which would round a larger integer.
  const number = `CAST(json_extract${json} AS REAL)`
  return `iif(json_valid(CAST(body AS TEXT)), iif(json_type${json} = 'integer', ${number}, json_extract${json}), NULL)`
}

/**
 * Returns what follows a position, as segments that are read one after the other, each a single index range: entries
 * without the field come first in ascending order, last in descending order.
 */
function segmentsOf({ order, after, ordering }: EntryQuery): Condition[] {
  const key = ordering === undefined ? keyOf(order) : 'o.value'
  const ordinal = ordering === undefined ? 'ordinal' : 'o.place'
  const from = after?.ordinal ?? -1
  if (key === null) return [{ text: 'ordinal > ?', values: [from] }]
  const without: Condition = { text: `${key} IS NULL AND ${ordinal} > ?`, values: [-1] }
  const having: Condition = { text: `${key} IS NOT NULL`, values: [] }
  const value = after?.value ?? null
  if (after === null) return order.descending ? [having, without] : [without, having]
  if (value === null) {
    const rest = { ...without, values: [from] }
    return order.descending ? [rest] : [rest, having]
  }
  const sign = order.descending ? '<' : '>'
  const text = `${key} ${sign}= ? AND (${key} ${sign} ? OR ${ordinal} > ?)`
  const rest = { text, values: [value, value, from] }
  return order.descending ? [rest, without] : [rest]
}

/** Returns a facet's column; its number comes from a declaration, never from a request. */
function column(facet: number): string {
  return `facet${facet + 1}`
}
