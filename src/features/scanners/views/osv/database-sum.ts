import { closeSync, openSync, readFileSync, readSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { systemCode } from '../../../../base/errors.ts'
import { PRIVATE_FILE, isPresent, writeAll } from '../../../../base/files.ts'
import { viewsPath } from '../../store/generations.ts'

/**
 * Has the CRC-32 of a generation's database as it was published, hex. The next build has it from the bytes that it copies;
 * `quick_check` takes five times as long and misses bytes of columns without an index.
 */
const SUM_FILE = 'views.db.crc32'
/** Endings of the files that SQLite leaves beside a database when a program that writes to it is killed. */
const LEFT_BESIDE = ['-wal', '-journal']
const PIECE = 1 << 20

/** Records the CRC-32 of a database that is complete and closed. The caller brings both files to the disk before it publishes them. */
export function writeDatabaseSum(folder: string): void {
  const sum = sumOf(viewsPath(folder))
  writeFileSync(join(folder, SUM_FILE), `${sum}\n`, { mode: PRIVATE_FILE })
}

/**
 * Copies the database of a generation. Returns whether it is as it was published: not if its sum is another or is lost, or if
 * another program wrote to it. Throws the system's errors.
 */
export function copyViewsDatabase(from: string, to: string): boolean {
  const fd = openSync(viewsPath(to), 'w', PRIVATE_FILE)
  try {
    const sum = sumOf(viewsPath(from), (piece) => writeAll(fd, piece))
    return isAsPublished(from, sum)
  } finally {
    closeSync(fd)
  }
}

/** Returns whether the database of a generation is as it was published: as `copyViewsDatabase`. */
export function isDatabaseSame(folder: string): boolean {
  return isAsPublished(folder, sumOf(viewsPath(folder)))
}

function isAsPublished(folder: string, sum: string): boolean {
  const path = viewsPath(folder)
  if (LEFT_BESIDE.some((ending) => isPresent(path + ending))) return false
  try {
    return readFileSync(join(folder, SUM_FILE), 'latin1') === `${sum}\n`
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return false
    throw error
  }
}

/** Reads a file to its end; `use` gets each piece, which is valid during the call. Returns its CRC-32, 8 hex digits. */
function sumOf(path: string, use: (piece: Buffer) => void = () => undefined): string {
  const fd = openSync(path, 'r')
  try {
    const buffer = Buffer.allocUnsafe(PIECE)
    for (let sum = 0; ;) {
      const read = readSync(fd, buffer, 0, PIECE, null)
      if (read === 0) return sum.toString(16).padStart(8, '0')
      const piece = buffer.subarray(0, read)
      sum = crc32(piece, sum)
      use(piece)
    }
  } finally {
    closeSync(fd)
  }
}
