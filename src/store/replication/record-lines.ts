import { freeBytes } from '../../base/free-bytes.ts'
import type { Db } from '../database/open.ts'

/** The lines of consecutive records, behind the id `after` and up to `last`. */
interface Block {
  readonly after: string
  readonly last: string
  readonly text: Buffer
}

/** The lines of all records as they were read, to be used again after a few writes of the same connection. */
interface KeptLines {
  /** `PRAGMA data_version` before they were read: another one when another connection has committed since. */
  readonly version: number
  readonly blocks: readonly Block[]
}

/** The proof that a source's stored content is the published snapshot's. */
export interface ContentProof {
  /** Records that were read for it. */
  readonly records: number
  /** Their lines, so that a publication in the same run need not read all again; null: not wanted, or over `MOST_KEPT`. */
  readonly kept: KeptLines | null
}

/** The lines are valid during the call only. */
type Use = (lines: Uint8Array) => void

/** Bytes of lines that are kept at most: those of 200,000 records or more. */
const MOST_KEPT = 32 * 2 ** 20
const NEWLINE = 0x0a
/** Sorts after every text in SQLite. */
const END = Buffer.from([0xff])

/**
 * Creates the reading of the lines that a content digest has for records, in id order, some thousand at a time. Usable on
 * any connection.
 */
export function createRecordLines(db: Db) {
  const { next, range, one, version } = prepareLines(db)
  const read = (use: Use, keep = false): ContentProof => {
    const before = version()
    const blocks: Block[] = []
    let records = 0
    let bytes = 0
    for (let after = ''; ;) {
      const [text, last, count] = next.get(after) ?? [null, null, 0]
      if (text === null || last === null) break
      use(text)
      records += count
      bytes += text.length
      if (keep && bytes <= MOST_KEPT) blocks.push({ after, last, text })
      else freeAll([...blocks.splice(0), { text }])
      after = last
    }
    const isKept = keep && bytes <= MOST_KEPT
    return { records, kept: isKept ? { version: before, blocks } : null }
  }
  return {
    /** Passes all lines to `use`. */
    read,
    /**
     * Does the same as `read`, but reads only the records of `written`, which have every id that this connection wrote
     * since. Reads all when another connection has committed since.
     */
    readAgain({ version: before, blocks }: KeptLines, written: readonly string[], use: Use): void {
      if (version() !== before || blocks.length === 0) return void read(use)
      const ids = written.map((id) => Buffer.from(id)).sort((a, b) => a.compare(b))
      let at = 0
      for (const [i, { after, last, text }] of blocks.entries()) {
        const end = i === blocks.length - 1 ? END : Buffer.from(last)
        const lines: Line[] = []
        for (let id = ids[at]; id !== undefined && id.compare(end) <= 0; id = ids[++at])
          lines.push({ id: String(id), line: one.get(String(id)) })
        const pieces = replaced(text, lines)
        if (pieces !== null) for (const piece of pieces) use(piece)
        else use(range.get(after, end === END ? END : last) ?? text.subarray(0, 0))
      }
    },
  }
}

/** Hundreds of megabytes would wait for the garbage collector. */
function freeAll(blocks: readonly Pick<Block, 'text'>[]): void {
  for (const { text } of blocks) freeBytes(text)
}

/** What the store has of an id now: its line, or nothing. */
interface Line {
  readonly id: string
  readonly line: Buffer | undefined
}

/** Returns the lines with others for some ids, which are in order; null when one of them is new there. */
function replaced(text: Buffer, lines: readonly Line[]): Buffer[] | null {
  const pieces: Buffer[] = []
  let from = 0
  for (const { id, line } of lines) {
    // Within a text the quotation marks would be escaped: this is the begin of a line.
    const start = text.indexOf(`["record",${JSON.stringify(id)},`, from)
    if (start < 0 && line !== undefined) return null
    if (start < 0) continue
    pieces.push(text.subarray(from, start))
    if (line !== undefined) pieces.push(line)
    from = text.indexOf(NEWLINE, start) + 1
  }
  return [...pieces, text.subarray(from)]
}

/** SQLite writes the lines, without an object for each record: `json_quote` escapes as `JSON.stringify` does. */
const LINE = `'["record",' || json_quote(id) || ',' || json_quote(modified) || ',"' || lower(hex(sha256)) || '"]' || char(10)`

/** No id is empty. */
function prepareLines(db: Db) {
  const joined = `CAST(group_concat(${LINE}, '') AS BLOB)`
  const from = 'FROM (SELECT id, modified, sha256 FROM osv_record WHERE id > ?'
  return {
    next: db
      .prepare<[string], [Buffer | null, string | null, number]>(
        `SELECT ${joined}, max(id), count(*) ${from} ORDER BY id LIMIT 4096)`,
      )
      .raw(),
    range: db
      .prepare<[string, string | Buffer], Buffer | null>(`SELECT ${joined} ${from} AND id <= ? ORDER BY id)`)
      .pluck(),
    one: db.prepare<[string], Buffer>(`SELECT CAST(${LINE} AS BLOB) FROM osv_record WHERE id = ?`).pluck(),
    version: () => Number(db.pragma('data_version', { simple: true })),
  }
}
