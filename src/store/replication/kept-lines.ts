import { freeBytes } from '../../base/free-bytes.ts'
import type { Db } from '../database/open.ts'
import { compareKeys } from './rows.ts'

/** The lines that a digest has for consecutive records, behind the id `after` and up to `last`. */
interface Block {
  readonly after: string
  readonly last: string
  readonly records: number
  readonly lines: Buffer
}

/** Reads the lines of the next records behind an id and up to `end` (null: of all), `limit` at most; null: there are none. */
export type ReadLines = (after: string, end: string | null, limit: number) => Omit<Block, 'after'> | null

/** The lines of all records as they were read, to be used again after a few writes of the same connection. */
export interface KeptLines {
  /** `PRAGMA data_version` before they were read: another one when another connection has committed since. */
  readonly version: number
  readonly blocks: readonly Block[]
}

/** Takes lines, which are valid during the call only. */
type Use = (lines: Uint8Array) => void

/** Records of a block: a change of one record reads so many again. */
const BLOCK = 128
/** Bytes of lines that are kept at most: those of 200,000 records or more. */
const MOST_KEPT = 32 * 2 ** 20

/** Creates the reading of all records' lines in the order of their ids, which reads few of them again after few writes. */
export function createLines(db: Db, readLines: ReadLines) {
  const version = (): number => Number(db.pragma('data_version', { simple: true }))
  function* blocksOf(after: string, end: string | null): Generator<Block> {
    for (let from = after; ;) {
      const block = readLines(from, end, BLOCK)
      if (block === null) return
      yield { ...block, after: from }
      from = block.last
    }
  }
  const read = (use: Use, keep = false) => {
    const before = version()
    const blocks: Block[] = []
    let records = 0
    let bytes = 0
    for (const block of blocksOf('', null)) {
      use(block.lines)
      records += block.records
      bytes += block.lines.length
      if (keep && bytes <= MOST_KEPT) blocks.push(block)
      else for (const { lines } of [...blocks.splice(0), block]) freeBytes(lines) // too many for the garbage collector
    }
    const kept: KeptLines | null = keep && bytes <= MOST_KEPT ? { version: before, blocks } : null
    return { records, kept }
  }
  return {
    /** Passes all lines to `use`. Returns the number of records, and with `keep` their lines: null for too many. */
    read,
    /** Whether no other connection has committed since lines were read. */
    isCurrent: (kept: KeptLines): boolean => kept.version === version(),
    /** Passes all lines to `use`, those of the blocks without an id of `written` as they were read: this connection wrote no others since. */
    readAgain({ blocks }: KeptLines, written: Iterable<string>, use: Use): void {
      if (blocks.length === 0) return void read(use)
      const ids = [...written].sort(compareKeys)
      let at = 0
      for (const [i, { after, last, lines }] of blocks.entries()) {
        const end = i === blocks.length - 1 ? null : last
        const before = at
        for (let id = ids[at]; id !== undefined && !isAfter(id, end); id = ids[++at]);
        if (at === before) use(lines)
        else for (const block of blocksOf(after, end)) use(block.lines)
      }
    },
  }
}

/** Reports whether a key is behind `end`; null: nothing is. */
export function isAfter(key: string, end: string | null): boolean {
  return end !== null && compareKeys(key, end) > 0
}
