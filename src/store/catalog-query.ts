import type { CatalogEntry } from './catalog.ts'
import type { Db } from './database.ts'

/** How many fields of an item a list can be narrowed by. */
export const FACETS = 8

/** A field's number (0 to FACETS - 1, as the resource declares it) and the values it may have. */
export interface Where {
  facet: number
  values: readonly string[]
}

/** By a facet, by another field of the item (letters, digits and _), or, with both null, in upstream's own order. */
export interface Order {
  facet: number | null
  field: string | null
  descending: boolean
}

/** A place in an ordered list: behind the entry with this value of the ordering field and this ordinal. */
export interface Place {
  value: string | number | null
  ordinal: number
}

/** Which entries of a list, in which order. */
export interface EntryQuery {
  list: number
  where: readonly Where[]
  order: Order
  after: Place | null
  limit: number
}

/** An entry and the value of the field it was ordered by. */
export type OrderedEntry = CatalogEntry & { value: string | number | null }

/**
 * Filtered, ordered pages of a list by SQL. Statements are kept by their text, of which there are few: one for each
 * set of filters, order and direction.
 */
export function createCatalogQuery(db: Db) {
  const statements = new Map<string, ReturnType<typeof db.prepare<unknown[], unknown>>>()
  const prepared = (sql: string): ReturnType<typeof db.prepare<unknown[], unknown>> => {
    const known = statements.get(sql)
    if (known !== undefined) return known
    const made = db.prepare(sql)
    if (statements.size >= 500) statements.clear()
    statements.set(sql, made)
    return made
  }
  return {
    listCatalogEntries(query: EntryQuery): OrderedEntry[] {
      const { sql, values } = selectOf(query)
      return prepared(sql).all(...values) as OrderedEntry[] // the columns named in the statement
    },
    countCatalogEntries(list: number, where: readonly Where[]): number {
      const { text, values } = conditionsOf(list, where)
      const sql = `SELECT count(*) AS count FROM catalog_entry WHERE ${text}`
      return (prepared(sql).get(...values) as { count: number }).count
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

function selectOf({ list, where, order, after, limit }: EntryQuery): {
  sql: string
  values: unknown[]
} {
  const { text, values } = conditionsOf(list, where)
  const key = keyOf(order)
  const direction = order.descending ? 'DESC' : 'ASC'
  const beyond = after === null ? null : behind(after, key, order.descending)
  const by = key === null ? 'ordinal' : `${key} ${direction}, ordinal`
  const sql = `SELECT ordinal, id, body, sha, ${key ?? 'NULL'} AS value FROM catalog_entry
    WHERE ${beyond === null ? text : `${text} AND ${beyond.text}`} ORDER BY ${by} LIMIT ?`
  return { sql, values: [...values, ...(beyond?.values ?? []), limit] }
}

/** Upstream's order when null. A field's name is checked where the request is read; here once more, for it is SQL. */
function keyOf({ facet, field }: Order): string | null {
  if (facet !== null) return column(facet)
  if (field === null) return null
  if (!/^\w+$/.test(field)) throw new Error(`not a field: ${field}`)
  return `json_extract(CAST(body AS TEXT), '$.${field}')`
}

/** The entries behind a place. Those without the field come first in ascending order, last in descending order. */
function behind({ value, ordinal }: Place, key: string | null, descending: boolean): Condition {
  if (key === null) return { text: 'ordinal > ?', values: [ordinal] }
  if (value === null) {
    const text = descending
      ? `(${key} IS NULL AND ordinal > ?)`
      : `(${key} IS NOT NULL OR ordinal > ?)`
    return { text, values: [ordinal] }
  }
  const further = `${key} ${descending ? '<' : '>'} ?`
  const nulls = descending ? ` OR ${key} IS NULL` : ''
  return {
    text: `(${further} OR (${key} = ? AND ordinal > ?)${nulls})`,
    values: [value, value, ordinal],
  }
}

/** A facet's column; its number comes from a declaration, never from a request. */
function column(facet: number): string {
  return `facet${facet + 1}`
}
