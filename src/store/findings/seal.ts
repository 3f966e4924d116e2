import { closeSync, openSync, readSync } from 'node:fs'
import { crc32 } from 'node:zlib'
import { isPresent } from '../../base/files.ts'
import type { Db } from '../database/sqlite.ts'

/*
 * A database that was closed after writing has the CRC-32 of its pages as its `application_id`: SQLite's own checks miss bytes of
 * columns without an index. 0: it is being written, or what wrote it was killed.
 */

/** SQLite's header, with the mark itself: it changes when no page does. */
const HEADER = 100
const PIECE = 1 << 20

/** Marks a database that has no write-ahead log as closed after writing. */
export function seal(db: Db): void {
  db.pragma(`application_id = ${sumOf(db.name)}`)
}

/** Takes the mark away, before anything is written. */
export function breakSeal(db: Db): void {
  db.pragma('application_id = 0')
}

/** Returns what is wrong with the bytes of a database; null: nothing, or it has no mark. */
export function faultOfSeal(db: Db): string | null {
  const compare = db.transaction(() => {
    const sum = db.pragma('application_id', { simple: true }) // no process writes until the transaction ends
    const isSealed = sum !== 0 && !isPresent(`${db.name}-wal`)
    return isSealed && sum !== sumOf(db.name) ? 'its bytes are not those that were written' : null
  })
  return compare.deferred()
}

/** Returns the CRC-32 of a file without its header, as SQLite stores numbers of 32 bits. */
function sumOf(path: string): number {
  const fd = openSync(path, 'r')
  try {
    const buffer = Buffer.allocUnsafe(PIECE)
    let sum = 0
    for (let at = HEADER; ;) {
      const read = readSync(fd, buffer, 0, PIECE, at)
      if (read === 0) return sum | 0
      sum = crc32(buffer.subarray(0, read), sum)
      at += read
    }
  } finally {
    closeSync(fd)
  }
}
