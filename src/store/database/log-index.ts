import { type Db, openAnyVersion } from './sqlite.ts'
import { isPresent } from '../../base/files.ts'

/**
 * Makes a connection that writes leave the index of the write-ahead log (`-shm`, 32 KB) in the folder, which SQLite removes
 * with the last such connection: on a full disk no database without it can be opened, not even to be read. A connection
 * that only reads creates it, and removes nothing.
 */
export function leaveIndex(db: Db): Db {
  const close = db.close.bind(db)
  const path = db.name
  return Object.assign(db, {
    close() {
      const closed = close()
      try {
        if (!isPresent(`${path}-shm`)) createIndex(path)
      } catch {
        // the database was moved away, or the disk is full
      }
      return closed
    },
  })
}

function createIndex(path: string): void {
  const reader = openAnyVersion(path)
  try {
    reader.pragma('user_version')
  } finally {
    reader.close()
  }
}
