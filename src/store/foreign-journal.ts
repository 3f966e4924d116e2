import { closeSync, openSync, readSync } from 'node:fs'
import { MirrorError } from '../base/errors.ts'
import { isPresent } from '../base/files.ts'

/*
 * Whether the rollback journal beside a database is its own. SQLite plays back any that lies there, which destroys the database where
 * it is of another one. https://www.sqlite.org/fileformat2.html#the_rollback_journal
 */

/** Throws `schema` where the rollback journal beside a database is certainly of another one. Call it before a connection that writes. */
export function refuseForeignJournal(path: string): void {
  const why = foreignJournal(path)
  if (why !== null) throw new MirrorError('schema', why)
}

/** Says why the rollback journal beside a database is of another one, and what to do; null: there is none, or it may be its own. */
export function foreignJournal(path: string): string | null {
  if (!isPresent(`${path}-journal`)) return null
  const why = contradiction(path)
  // Twice: another process may have committed between the two reads.
  if (why === null || why !== contradiction(path)) return null
  return `${path}-journal is the rollback journal of another database (${why}): with it ${path} would be destroyed. Nothing was changed: stop what uses the folder, move that file to another folder, and try again`
}

function contradiction(path: string): string | null {
  const header = readAt(path, 0, HEADER_BYTES)
  const journal = readJournal(`${path}-journal`)
  if (header === null || journal === null || !isDatabase(header)) return null
  if (sizeOfPages(header) !== journal.pageSize) return 'its pages have another size'
  const now = header.readUInt32BE(COUNTER)
  // What makes a database journals none of its pages, and is change 1.
  if (journal.pages === 0 && now === 1) return null
  if (journal.first === null) return otherLength(header, journal)
  const before = journal.first.readUInt32BE(COUNTER)
  // Whatever writes the first page adds one to its counter; SQLite never writes it twice in a transaction without that.
  if (now !== before && now !== before + 1) return `it begins at change ${before}, the database is at ${now}`
  return now === before && !isLike(header, journal.first) ? 'the database was never as it says' : null
}

/** Whether two headers say the same, but for the kind of journal (bytes 18 and 19). */
function isLike(one: Buffer, other: Buffer): boolean {
  return one.subarray(0, 18).equals(other.subarray(0, 18)) && one.subarray(20).equals(other.subarray(20))
}

/** A journal that has no first page: the transaction had not written that, so it still says how long the database was. */
function otherLength(header: Buffer, { pages, isWhole }: Journal): string | null {
  const isValid = header.readUInt32BE(COUNTER) === header.readUInt32BE(VALID_FOR)
  const length = header.readUInt32BE(LENGTH)
  return isWhole && isValid && length !== pages ? `it is of one of ${pages} pages, not ${length}` : null
}

const MAGIC = Buffer.from('d9d505f920a163d7', 'hex')
const DATABASE = Buffer.from('SQLite format 3\0')
/** The header of a database, which one sector holds: a power cut leaves the old or the new one. */
const HEADER_BYTES = 100
const COUNTER = 24
const LENGTH = 28
const VALID_FOR = 92

function isDatabase(header: Buffer): boolean {
  return header.subarray(0, DATABASE.length).equals(DATABASE)
}

function sizeOfPages(header: Buffer): number {
  const size = header.readUInt16BE(16)
  return size === 1 ? 65_536 : size
}

interface Journal {
  readonly pageSize: number
  /** How many pages the database had. */
  readonly pages: number
  /** The header of the first page as it was; null: it is not in the first part of the journal. */
  readonly first: Buffer | null
  /** Whether the journal has one part. */
  readonly isWhole: boolean
}

/** Null: no journal that would be played back, or one that is damaged. */
function readJournal(path: string): Journal | null {
  const head = readAt(path, 0, 28)
  if (head === null || !head.subarray(0, MAGIC.length).equals(MAGIC)) return null
  const [records = 0, nonce = 0, pages = 0, sector = 0, pageSize = 0] = [8, 12, 16, 20, 24].map((at) =>
    head.readUInt32BE(at),
  )
  if (!isPower(sector) || !isPower(pageSize)) return null
  const most = records === 0 || records === 0xff_ff_ff_ff ? Infinity : records // not known: up to the end of the file
  const part = { path, sector, pageSize, most }
  const { at, end } = findFirst(part)
  const found = at === null ? null : readAt(path, at + 4, pageSize + 4)
  if (at !== null && (found === null || !isSound(found, nonce, pageSize))) return null
  const isWhole = readAt(path, Math.ceil(end / sector) * sector, MAGIC.length)?.equals(MAGIC) !== true
  return { pageSize, pages, first: found?.subarray(0, HEADER_BYTES) ?? null, isWhole }
}

/** Returns where the record of the first page begins, null where there is none, and where the part ends. */
function findFirst(part: { path: string; sector: number; pageSize: number; most: number }) {
  const { path, sector, pageSize, most } = part
  let at = sector
  for (let n = 0; n < most; n++, at += pageSize + 8) {
    const number = readAt(path, at, 4)?.readUInt32BE() ?? 0
    if (number === 1) return { at, end: at }
    if (number === 0) break
  }
  return { at: null, end: at }
}

/** Checks a page and the sum behind it: of each 200th byte from its end, beginning with a number of the journal. */
function isSound(record: Buffer, nonce: number, pageSize: number): boolean {
  let sum = nonce
  for (let at = pageSize - 200; at > 0; at -= 200) sum = (sum + record.readUInt8(at)) >>> 0
  return sum === record.readUInt32BE(pageSize)
}

function isPower(size: number): boolean {
  return size >= 32 && size <= 65_536 && (size & (size - 1)) === 0
}

/** Null: the file is not so long, or cannot be read. */
function readAt(path: string, at: number, length: number): Buffer | null {
  try {
    const file = openSync(path, 'r')
    try {
      const bytes = Buffer.alloc(length)
      return readSync(file, bytes, 0, length, at) === length ? bytes : null
    } finally {
      closeSync(file)
    }
  } catch {
    return null
  }
}
