import type { CatalogEntry } from './catalog.ts'
import type { Db } from './database.ts'

/** How many fields of an item a list can be narrowed and ordered by. */
export const FACETS = 8

/** A field's number (0 to FACETS - 1, as the resource declares it) and the values it may have. */
export interface Where {
  facet: number
  values: readonly string[]
}

/** A place in an ordered list: behind the entry with this value of the ordering field and this ordinal. */
export interface Place {
  value: string | null
  ordinal: number
}

/** Which entries of a list, in which order; `facet` null is upstream's own order. */
export interface EntryQuery {
  list: number
  where: readonly Where[]
  order: { facet: number | null; descending: boolean }
  after: Place | null
  limit: number
}

/** An entry and the value of the field it was ordered by. */
export type OrderedEntry = CatalogEntry & { value: string | null }

/**
 * Filtered, ordered pages of a list by SQL. Statements are kept by their text, of which there are few: one for each
 * set of filters, order and direction.
 */
export function createCatalogQuery(db: Db) {
  const statements = new Map<string, ReturnType<typeof db.prepare<unknown[], unknown>>>()
  const prepared = (sql: string): ReturnType<typeof db.prepare<unknown[], unknown>> => {
    const known = statements.get(sql)
    if (known !== undefined) return known
    const made = db.prepare<unknown[], unknown>(sql)
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
      return Number(
        prepared(`SELECT count(*) FROM catalog_entry WHERE ${text}`)
          .pluck()
          .get(...values),
      )
    },
  }
}

function conditionsOf(list: number, where: readonly Where[]): { text: string; values: unknown[] } {
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
  const key = order.facet === null ? 'ordinal' : column(order.facet)
  const direction = order.descending ? 'DESC' : 'ASC'
  const beyond = order.descending ? '<' : '>'
  const parts = [text]
  if (after !== null && order.facet === null) {
    parts.push(`ordinal ${beyond} ?`)
    values.push(after.ordinal)
  } else if (after !== null && after.value === null) {
    // Entries without the field come first in ascending order, last in descending order.
    parts.push(
      order.descending ? `${key} IS NULL AND ordinal > ?` : `(${key} IS NOT NULL OR ordinal > ?)`,
    )
    values.push(after.ordinal)
  } else if (after !== null) {
    const rest = `(${key} ${beyond} ? OR (${key} = ? AND ordinal > ?)`
    parts.push(order.descending ? `${rest} OR ${key} IS NULL)` : `${rest})`)
    values.push(after.value, after.value, after.ordinal)
  }
  const by = order.facet === null ? `ordinal ${direction}` : `${key} ${direction}, ordinal ASC`
  const value = order.facet === null ? 'NULL' : key
  const sql = `SELECT ordinal, id, body, sha, ${value} AS value FROM catalog_entry
    WHERE ${parts.join(' AND ')} ORDER BY ${by} LIMIT ?`
  return { sql, values: [...values, limit] }
}

/** A facet's column; its number comes from a declaration, never from a request. */
export function column(facet: number): string {
  return `facet${facet + 1}`
}
