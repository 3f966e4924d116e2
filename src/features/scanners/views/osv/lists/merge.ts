import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { join } from 'node:path'
import { createGunzip } from 'node:zlib'
import { compareText } from '../../../../../base/versions/order.ts'
import { stampLines } from './stamps.ts'

/** A row of a list: when a record was modified, in the form of `instantOf`, and its name. */
export interface StampRow {
  readonly instant: string
  readonly name: string
}

/** What differs between a list and the next one. */
export interface ListChange {
  readonly removed: readonly StampRow[]
  readonly added: readonly StampRow[]
}

/** A list cannot be merged: it must be made from all rows. */
export class UnmergeableList extends Error {}

interface Edit extends StampRow {
  readonly bytes: Buffer
  readonly line: Buffer
  readonly adds: boolean
}

const WINDOW = 1 << 16
const LONGEST_LINE = 1 << 20
const COMMA = 0x2c
const NEWLINE = 0x0a
const QUOTE = 0x22

/**
 * Yields a list of the generation before with a change applied, without reading the rows of all records; each piece is valid
 * until the next. The list is stored as gzip. No record may be without a date: it is shown as one of year 1, and is behind these. Throws
 * `UnmergeableList` when a name is quoted, when a row is not where it must be, and, at the end, when the file does not have
 * the digest in its name: then the pieces are not the list.
 */
export async function* mergeList(folder: string, file: string, change: ListChange): AsyncGenerator<Buffer, void, void> {
  const edits = editsOf(change)
  const digest = createHash('sha256')
  let next = 0
  for await (const lines of eachWindow(join(folder, file), (packed) => digest.update(packed))) {
    if (lines.includes(QUOTE)) throw new UnmergeableList()
    let at = 0
    const last = lines.lastIndexOf(NEWLINE, lines.length - 2) + 1
    for (let edit = edits[next]; edit !== undefined; edit = edits[++next]) {
      if (compareTo(edit, lines, last) > 0) break
      const place = placeOf(edit, lines, at)
      yield lines.subarray(at, place)
      at = edit.adds ? place : endOf(edit, lines, place)
      if (edit.adds) yield edit.line
    }
    yield lines.subarray(at)
  }
  for (const { adds, line } of edits.slice(next)) {
    if (!adds) throw new UnmergeableList()
    yield line
  }
  if (digest.digest('hex').slice(0, 32) !== file.split('.', 1)[0]) throw new UnmergeableList()
}

/** Returns the changed rows in the order of the list, without those that are in both. */
function editsOf({ removed, added }: ListChange): Edit[] {
  const keyOf = ({ instant, name }: StampRow): string => `${instant} ${name}`
  const gone = new Set(removed.map(keyOf))
  const come = new Set(added.map(keyOf))
  const edits = [
    ...removed.filter((row) => !come.has(keyOf(row))).map((row) => editOf(row, false)),
    ...added.filter((row) => !gone.has(keyOf(row))).map((row) => editOf(row, true)),
  ]
  return edits.sort((one, other) => compareText(other.instant, one.instant) || Buffer.compare(one.bytes, other.bytes))
}

function editOf(row: StampRow, adds: boolean): Edit {
  const { instant, name } = row
  const [text = ''] = stampLines([[instant, name]])
  const line = Buffer.from(text)
  if (instant === '' || line.includes(QUOTE)) throw new UnmergeableList()
  return { instant, name, bytes: Buffer.from(name), line, adds }
}

/** Whole lines of a gzip file, about 64 KiB each time; `look` gets its bytes. */
async function* eachWindow(path: string, look: (packed: Buffer) => void): AsyncGenerator<Buffer> {
  const packed = createReadStream(path, { highWaterMark: WINDOW })
  const content = createGunzip({ chunkSize: WINDOW })
  packed.on('data', (bytes) => look(bytes as Buffer)) // a buffer, without an encoding
  packed.on('error', (error) => content.destroy(error)).pipe(content)
  let kept = Buffer.alloc(0)
  try {
    for await (const piece of content as AsyncIterable<Buffer>) {
      const bytes = Buffer.concat([kept, piece])
      const end = bytes.lastIndexOf(NEWLINE) + 1
      if (end > 0) yield bytes.subarray(0, end)
      kept = bytes.subarray(end)
      if (kept.length > LONGEST_LINE) throw new UnmergeableList()
    }
    if (kept.length > 0) throw new UnmergeableList() // cut short
  } finally {
    packed.destroy()
    content.destroy()
  }
}

/** Returns where the first line from `from` begins that is not before an edit: by halving. */
function placeOf(edit: Edit, lines: Buffer, from: number): number {
  let low = from
  for (let high = lines.length; low < high;) {
    const middle = Math.max(low, lines.lastIndexOf(NEWLINE, ((low + high) >>> 1) - 1) + 1)
    if (compareTo(edit, lines, middle) > 0) low = lines.indexOf(NEWLINE, middle) + 1
    else high = middle
  }
  return low
}

/** Compares an edit with the line at an offset: positive when the edit comes after it. */
function compareTo({ instant, bytes }: Edit, lines: Buffer, at: number): number {
  const comma = lines.indexOf(COMMA, at)
  const stamp = lines.toString('latin1', at, comma)
  const order = compareText(`${stamp.slice(0, 19)}.${stamp.slice(20, -1).padEnd(9, '0')}`, instant)
  return order || bytes.compare(lines, comma + 1, lines.indexOf(NEWLINE, comma))
}

/** Returns the end of the line that an edit removes. */
function endOf({ line }: Edit, lines: Buffer, at: number): number {
  const end = at + line.length
  if (!line.equals(lines.subarray(at, end))) throw new UnmergeableList()
  return end
}
