import type { Db } from '../database/open.ts'
import { queries } from '../database/query.ts'

/** A target as the settings have it. */
export interface TargetSetting {
  /** Null: it has none, and its URL alone identifies it. */
  readonly name: string | null
  readonly url: string
}

/** A target that the settings do not have. */
export interface UnsetTarget {
  readonly id: number
  readonly name: string | null
  /** Deliveries that are pending. */
  readonly pending: number
  /** Deliveries that were given up. */
  readonly givenUp: number
}

type Row = UnsetTarget & Pick<TargetSetting, 'url'> & { readonly state: string }

/**
 * Creates what brings the stored targets to the settings; call it in a transaction. A target is found by its name, else by its URL: a
 * corrected URL keeps what waits. One that the settings do not have is paused while something waits for it.
 */
export function createTargetSettings(db: Db) {
  const sql = prepare(db)
  /** Takes over a target under its setting. Another URL, or the end of a pause, is a new beginning: what waits is due. */
  const take = (row: Row, { name, url }: TargetSetting): void => {
    sql.set.run({ id: row.id, name, url })
    if (row.url === url && row.state !== PAUSED) return
    sql.begin.run(row.id)
    sql.hasten.run(row.id)
  }
  const drop = ({ id }: Row): void => {
    sql.dropDeliveries.run(id)
    sql.drop.run(id)
  }
  /** Has one target deliver what waits for another of its URL. */
  const merge = (from: Row, to: Row): void => {
    sql.move.run(to.id, from.id)
    sql.addGivenUp.run(from.givenUp, to.id)
    drop(from)
  }
  return {
    /** Returns the paused targets for which something waits. `now`: Unix milliseconds. */
    replace(settings: readonly TargetSetting[], now: number): UnsetTarget[] {
      const rows = sql.list()
      const found = matched(rows, settings)
      const taken = new Set(found.values())
      const unset = rows.filter((row) => !taken.has(row))
      for (const row of unset) {
        const same = [...found].find(([{ url }]) => url === row.url)?.[1]
        if (same !== undefined) merge(row, same)
        else if (row.pending === 0 && row.state !== PAUSED) drop(row)
        else sql.pause.run({ id: row.id, now })
      }
      for (const [{ url }, row] of found) if (row.url !== url) sql.clear.run(row.id) // two may have changed places
      for (const [setting, row] of found) take(row, setting)
      for (const setting of settings) if (!found.has(setting)) sql.add.run(setting)
      return sql.listPaused().filter(({ pending }) => pending > 0)
    },
    /** Deletes targets for which nothing waits and that are paused since before a time, Unix milliseconds. */
    forget(before: number): UnsetTarget[] {
      const forgotten = sql.forgettable(before)
      for (const { id } of forgotten) sql.drop.run(id)
      return forgotten
    },
  }
}

const PAUSED = 'paused'

/** Returns the stored target of each setting that has one. */
function matched(rows: readonly Row[], settings: readonly TargetSetting[]): Map<TargetSetting, Row> {
  const found = new Map<TargetSetting, Row>()
  const isFree = (row: Row): boolean => ![...found.values()].includes(row)
  for (const one of settings) {
    const row = rows.find(({ name }) => name !== null && name === one.name)
    if (row !== undefined) found.set(one, row)
  }
  for (const one of settings) {
    const row = found.has(one) ? undefined : rows.find((row) => row.url === one.url && isFree(row))
    if (row !== undefined) found.set(one, row)
  }
  return found
}

const TARGET = `id, name, url, state, given_up AS givenUp,
  (SELECT count(*) FROM relay_delivery WHERE target = relay_target.id) AS pending`

function prepare(db: Db) {
  const { all } = queries(db)
  return {
    list: all<[], Row>(`SELECT ${TARGET} FROM relay_target ORDER BY id`),
    listPaused: all<[], UnsetTarget>(`SELECT ${TARGET} FROM relay_target WHERE state = 'paused' ORDER BY id`),
    forgettable: all<[since: number], UnsetTarget>(
      `SELECT ${TARGET} FROM relay_target WHERE state = 'paused' AND since < ?
         AND id NOT IN (SELECT target FROM relay_delivery)`,
    ),
    add: db.prepare(
      "INSERT INTO relay_target (name, url, state, failures, due_at, given_up) VALUES (@name, @url, 'ok', 0, 0, 0)",
    ),
    clear: db.prepare("UPDATE relay_target SET url = 'none:' || id WHERE id = ?"),
    set: db.prepare('UPDATE relay_target SET name = @name, url = @url WHERE id = @id'),
    begin: db.prepare("UPDATE relay_target SET state = 'ok', since = NULL, failures = 0, due_at = 0 WHERE id = ?"),
    hasten: db.prepare('UPDATE relay_delivery SET due_at = 0 WHERE target = ?'),
    pause: db.prepare("UPDATE relay_target SET state = 'paused', since = @now WHERE id = @id AND state <> 'paused'"),
    move: db.prepare('UPDATE OR IGNORE relay_delivery SET target = ? WHERE target = ?'),
    addGivenUp: db.prepare('UPDATE relay_target SET given_up = given_up + ? WHERE id = ?'),
    dropDeliveries: db.prepare('DELETE FROM relay_delivery WHERE target = ?'),
    drop: db.prepare('DELETE FROM relay_target WHERE id = ?'),
  }
}
