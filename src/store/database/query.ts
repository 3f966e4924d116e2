import type { Db } from './sqlite.ts'

/** What is bound to a statement: a list for `?`, an object for names such as `@id`. */
type Bound = unknown[] | object
type Arguments<Values extends Bound> = Values extends unknown[] ? Values : [values: Values]

/** A statement as a function. It binds all that it is given: for `filter` or `map`, write `(id) => has(id)`. */
type Query<Values extends Bound, Result> = (...values: Arguments<Values>) => Result

/** Creates one-line queries of a connection. Each statement is prepared once, and becomes the function that runs it. */
export function queries(db: Db) {
  const prepare = <Row>(sql: string) => db.prepare<unknown[], Row>(sql)
  return {
    /** Returns the first row; null where there is none. */
    one: <Values extends Bound, Row>(sql: string): Query<Values, Row | null> => {
      const statement = prepare<Row>(sql)
      return (...values) => statement.get(...values) ?? null
    },
    /** Returns all rows. */
    all: <Values extends Bound, Row>(sql: string): Query<Values, Row[]> => {
      const statement = prepare<Row>(sql)
      return (...values) => statement.all(...values)
    },
    /** Returns the first column of all rows. */
    list: <Values extends Bound, Value>(sql: string): Query<Values, Value[]> => {
      const statement = prepare<Value>(sql).pluck()
      return (...values) => statement.all(...values)
    },
    /** Returns the first column of the first row; null where there is no row, or the column is null. */
    value: <Values extends Bound, Value>(sql: string): Query<Values, Value | null> => {
      const statement = prepare<Value>(sql).pluck()
      return (...values) => statement.get(...values) ?? null
    },
    /** Returns the number in the first column of the first row; 0 where there is none. */
    count: <Values extends Bound>(sql: string): Query<Values, number> => {
      const statement = prepare<number | null>(sql).pluck()
      return (...values) => statement.get(...values) ?? 0
    },
    /** Reports whether there is a row. */
    exists: <Values extends Bound>(sql: string): Query<Values, boolean> => {
      const statement = prepare(sql)
      return (...values) => statement.get(...values) !== undefined
    },
    /** Writes; returns how many rows changed. */
    run: <Values extends Bound>(sql: string): Query<Values, number> => {
      const statement = prepare(sql)
      return (...values) => statement.run(...values).changes
    },
  }
}
