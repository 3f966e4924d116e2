import type { SourceName } from '../../base/domain/sources.ts'
import type { Db } from '../database/open.ts'
import { createRecordPages } from './osv-pages.ts'
import type { CarriedReader } from './reader.ts'
import { type CarriedRow, ROW_KINDS, compareKeys, createStateDigest, hashJson, stateLine } from './rows.ts'

/** The lines of consecutive records, behind the key `after` and up to `last`, as the digest has them. */
interface Block {
  readonly after: string
  readonly last: string
  readonly lines: Buffer
}

/** What was read of all records. */
interface Kept {
  /** `PRAGMA data_version` before: another one when another connection has committed since. */
  readonly version: number
  readonly blocks: readonly Block[]
  /** Every id that this connection wrote since. */
  readonly written: Set<string>
}

interface Known {
  readonly version: number
  readonly changes: number
  readonly digest: string
}

/** Records of a block: a change of one record reads so many again. */
const BLOCK = 128
/** Bytes of lines that are kept at most: those of 400,000 records or more. */
const MOST_KEPT = 32 * 2 ** 20

/**
 * Creates the state digests of an import, which needs each several times. While nothing is written none is computed again. After
 * writes of this connection, the records that were not written are taken as they were read; all other rows are read again. A
 * commit of another connection has everything read again. A caller forgets them at its end.
 */
export function createKnownStates(db: Db, { eachRow }: Pick<CarriedReader, 'eachRow'>) {
  const total = db.prepare<[], number>('SELECT total_changes()').pluck()
  const known = new Map<SourceName, Known>()
  const records = createRecordPages(db)
  let kept: Kept | null = null

  const digestOf = (source: SourceName, version: number): string => {
    const digest = createStateDigest()
    const usable = kept?.version === version ? kept : null
    for (const kind of ROW_KINDS[source])
      if (kind !== 'osv-record') for (const row of eachRow(source, kind)) digest.add(row)
      else if (usable !== null) for (const lines of linesAgain(records, usable)) digest.addLines(lines)
      else kept = keptOf(version, eachRow(source, kind), (lines) => digest.addLines(lines))
    return digest.end()
  }
  return {
    /** Returns the state digest of a source, hex. */
    digestOf(source: SourceName): string {
      const version = Number(db.pragma('data_version', { simple: true }))
      const changes = total.get() ?? 0
      const before = known.get(source)
      if (before?.version === version && before.changes === changes) return before.digest
      const digest = digestOf(source, version)
      known.set(source, { version, changes, digest })
      return digest
    },
    /** Takes every id of a record that this connection wrote since the last call; null: they are too many. */
    wrote(ids: readonly string[] | null): void {
      if (ids === null) kept = null
      else for (const id of ids) kept?.written.add(id)
    },
    forget(): void {
      known.clear()
      kept = null
    },
  }
}

/** Passes the lines of all records to `use`. Returns them; null when they are too many. */
function keptOf(version: number, rows: Iterable<CarriedRow>, use: (lines: Buffer) => void): Kept | null {
  const blocks: Block[] = []
  let bytes = 0
  for (const block of blocksOf(rows)) {
    use(block.lines)
    bytes += block.lines.length
    if (bytes <= MOST_KEPT) blocks.push(block)
    else blocks.length = 0
  }
  return bytes <= MOST_KEPT ? { version, blocks, written: new Set() } : null
}

function* blocksOf(rows: Iterable<CarriedRow>): Generator<Block> {
  let after = ''
  let last = ''
  let text = ''
  let count = 0
  const block = (): Block => ({ after, last, lines: Buffer.from(text) })
  for (const row of rows) {
    text += stateLine(row)
    last = row.key
    if (++count < BLOCK) continue
    yield block()
    after = last
    text = ''
    count = 0
  }
  if (count > 0) yield block()
}

/** Yields the lines of all records; those of a block with a written one are read again. */
function* linesAgain(records: ReturnType<typeof createRecordPages>, { blocks, written }: Kept): Generator<Buffer> {
  const ids = [...written].sort(compareKeys)
  let at = 0
  for (const [i, { after, last, lines }] of blocks.entries()) {
    const end = i === blocks.length - 1 ? null : last
    const before = at
    for (let id = ids[at]; id !== undefined && !isAfter(id, end); id = ids[++at]);
    if (at === before) yield lines
    else yield Buffer.from(linesBetween(records, after, end))
  }
  if (blocks.length === 0) yield Buffer.from(linesBetween(records, '', null))
}

function linesBetween(records: ReturnType<typeof createRecordPages>, from: string, end: string | null): string {
  let text = ''
  for (let after = from; ;) {
    const rows = records(after, 2 * BLOCK)
    for (const [key, json] of rows) {
      if (isAfter(key, end)) return text
      text += stateLine({ kind: 'osv-record', key, hash: hashJson('osv-record', json) })
    }
    const last = rows.at(-1)
    if (last === undefined) return text
    after = last[0]
  }
}

/** `end` null: there is none. */
function isAfter(key: string, end: string | null): boolean {
  return end !== null && compareKeys(key, end) > 0
}
