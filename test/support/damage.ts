import { closeSync, openSync, rmSync, statSync, symlinkSync, truncateSync, writeSync } from 'node:fs'
import Database from 'better-sqlite3'

/** Size of a page of the databases, bytes. */
const PAGE = 4096

/** Copies the write-ahead log into a database that nobody uses, so that all of it lies in one file. */
export function settle(path: string): void {
  const db = new Database(path)
  db.pragma('wal_checkpoint(TRUNCATE)')
  db.close()
}

/** Ways in which a file of a database is damaged, by what is seen of it. */
export const DAMAGES = {
  /** Everything but the first page, as by a disk that wrote something else there. */
  pages: (path: string): void => overwrite(path, PAGE, statSync(path).size - PAGE),
  /** One page; the first has the number 1. */
  page: (path: string, number: number): void => overwrite(path, PAGE * (number - 1), PAGE),
  header: (path: string): void => overwrite(path, 0, 16),
  schema: (path: string): void => overwrite(path, 100, PAGE - 100),
  cut: (path: string): void => truncateSync(path, Math.floor(statSync(path).size / 2 / PAGE) * PAGE),
  gone: (path: string): void => rmSync(path),
  /** Every read fails with EIO, as on a disk that fails. */
  unreadable(path: string): void {
    rmSync(path)
    symlinkSync('/proc/self/mem', path)
  },
} as const

/** Removes a table from a database. */
export function dropTable(path: string, table: string): void {
  const db = new Database(path)
  db.pragma('foreign_keys = OFF')
  db.exec(`DROP TABLE ${table}`)
  db.close()
}

/** Writes bytes that no database has over a part of a file. */
function overwrite(path: string, from: number, bytes: number): void {
  const fd = openSync(path, 'r+')
  try {
    writeSync(fd, Buffer.alloc(bytes, 0xa7), 0, bytes, from)
  } finally {
    closeSync(fd)
  }
}

/** Overwrites the first page of a table in a database that nobody uses. */
export function overwriteTable(path: string, table: string): void {
  settle(path)
  const db = new Database(path)
  const root = db.prepare('SELECT rootpage FROM sqlite_master WHERE name = ?').pluck().get(table)
  db.close()
  overwrite(path, PAGE * (Number(root) - 1), PAGE)
}
