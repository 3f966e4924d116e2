import type { SourceName } from '../../base/domain/sources.ts'
import { freeBytes } from '../../base/free-bytes.ts'
import type { Db } from '../database/open.ts'
import { createRecordPages } from './osv-pages.ts'
import type { CarriedReader } from './reader.ts'
import { ROW_KINDS, compareKeys, createStateDigest, hashJson, stateLine } from './rows.ts'

interface Known {
  readonly version: number
  readonly changes: number
  readonly digest: string
}

/**
 * Creates the state digests of an import, which needs each several times. While nothing is written none is computed again. After
 * writes of this connection, the records that were not written are taken as they were read; all other rows are read again. A
 * commit of another connection has everything read again. A caller forgets them at its end.
 */
export function createKnownStates(db: Db, { eachRow }: Pick<CarriedReader, 'eachRow'>) {
  const total = db.prepare<[], number>('SELECT total_changes()').pluck()
  const known = new Map<SourceName, Known>()
  const lines = createLines(db, createStateLines(db))
  /** What was read of all records, and every id that this connection wrote since. */
  let kept: KeptLines | null = null
  const written = new Set<string>()

  const digestOf = (source: SourceName): string => {
    const digest = createStateDigest()
    const addLines = (some: Uint8Array): void => digest.addLines(some)
    for (const kind of ROW_KINDS[source])
      if (kind !== 'osv-record') for (const row of eachRow(source, kind)) digest.add(row)
      else if (kept !== null && lines.isCurrent(kept)) lines.readAgain(kept, written, addLines)
      else {
        kept = lines.read(addLines)
        written.clear()
      }
    return digest.end()
  }
  return {
    /** Returns the state digest of a source, hex. */
    digestOf(source: SourceName): string {
      const version = Number(db.pragma('data_version', { simple: true }))
      const changes = total.get() ?? 0
      const before = known.get(source)
      if (before?.version === version && before.changes === changes) return before.digest
      const digest = digestOf(source)
      known.set(source, { version, changes, digest })
      return digest
    },
    /** Takes every id of a record that this connection wrote since the last call; null: they are too many. */
    wrote(ids: readonly string[] | null): void {
      if (ids === null) kept = null
      else for (const id of ids) written.add(id)
    },
    forget(): void {
      known.clear()
      kept = null
    },
  }
}

/** Creates the reading of the lines that a state digest has for records. */
function createStateLines(db: Db): ReadLines {
  const list = createRecordPages(db)
  return (after, end, limit) => {
    const rows = list(after, limit).filter(([key]) => !isAfter(key, end))
    const last = rows.at(-1)
    if (last === undefined) return null
    const text = rows.map(([key, json]) => stateLine({ kind: 'osv-record', key, hash: hashJson('osv-record', json) }))
    return { lines: Buffer.from(text.join('')), last: last[0] }
  }
}

/** The lines that a digest has for consecutive records, behind the id `after` and up to `last`. */
interface Block {
  readonly after: string
  readonly last: string
  readonly lines: Buffer
}

/** Reads the lines of the next records behind an id and up to `end` (null: of all), `limit` at most; null: there are none. */
type ReadLines = (after: string, end: string | null, limit: number) => Omit<Block, 'after'> | null

/** The lines of all records as they were read, to be used again after a few writes of the same connection. */
interface KeptLines {
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
function createLines(db: Db, readLines: ReadLines) {
  const version = (): number => Number(db.pragma('data_version', { simple: true }))
  function* blocksOf(after: string, end: string | null): Generator<Block> {
    for (let from = after; ;) {
      const block = readLines(from, end, BLOCK)
      if (block === null) return
      yield { ...block, after: from }
      from = block.last
    }
  }
  const read = (use: Use): KeptLines | null => {
    const before = version()
    const blocks: Block[] = []
    let bytes = 0
    for (const block of blocksOf('', null)) {
      use(block.lines)
      bytes += block.lines.length
      if (bytes <= MOST_KEPT) blocks.push(block)
      else for (const { lines } of [...blocks.splice(0), block]) freeBytes(lines) // too many for the garbage collector
    }
    return bytes <= MOST_KEPT ? { version: before, blocks } : null
  }
  return {
    /** Passes all lines to `use`, and returns them; null: they are too many. */
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
function isAfter(key: string, end: string | null): boolean {
  return end !== null && compareKeys(key, end) > 0
}
