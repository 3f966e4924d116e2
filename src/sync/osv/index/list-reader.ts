import { isUtf8 } from 'node:buffer'
import { createHash } from 'node:crypto'
import { freeBytes } from '../../../base/free-bytes.ts'
import { NoEntryList, UNFINISHED, entryEnd, malformedIndex, skipBlanks } from './entries.ts'

const COMMA = 0x2c
const LIST_OPEN = 0x5b
const LIST_CLOSE = 0x5d

/** Bytes that are read at once; more when an entry is longer. */
const WINDOW_BYTES = 1 << 17
/** First bytes of a document that is not a list, for the error. */
const SHOWN_BYTES = 40
/** Byte order mark, which some programs write at the start of a file. */
const BOM = Buffer.from('\ufeff')

/** What is done with the entries. Bytes are valid during the call. */
interface EntryReaders {
  /** Gets the bounds of an entry. */
  visit: (bytes: Buffer, from: number, to: number) => void
  /** Reads an entry itself and returns its end; 0: it is visited. */
  take?: (bytes: Buffer, at: number) => number
}

/** Reads a top-level array while its bytes arrive. */
export type ListReader = ReturnType<typeof createListReader>

/** Creates a reader. Only a window is in memory: from the first entry that is not complete. */
export function createListReader(readers: EntryReaders, windowBytes = WINDOW_BYTES) {
  const text = createText()
  const walk: Walk = { place: 'begin', offset: 0, closedAt: 0 }
  let window = Buffer.alloc(0)
  let filled = 0
  let fault: { error: unknown } | null = null
  const read = (bytes: Buffer, isEnd: boolean): number => {
    if (fault !== null) return bytes.length
    try {
      return walkEntries(walk, bytes, isEnd, readers)
    } catch (error) {
      fault = { error }
      return bytes.length
    }
  }
  /** Reads the full window, and moves what is left to its begin. */
  const slide = (): void => {
    const at = read(window, false)
    walk.offset += at
    filled = window.length - at
    if (at > 0) window.copyWithin(0, at)
    else window = grown(window)
  }
  const add = (piece: Buffer): void => {
    if (window.length === 0) window = Buffer.allocUnsafeSlow(windowBytes)
    for (let from = 0; from < piece.length;) {
      const copied = piece.copy(window, filled, from)
      filled += copied
      from += copied
      if (filled === window.length) slide()
    }
  }
  return {
    /** Reads the next piece, valid during the call. What is wrong is thrown at the end, as then every byte is known. */
    push: (piece: Buffer): void => {
      text.push(piece)
      add(piece)
    },
    /**
     * Ends with a last piece, which alone is read in place; returns the SHA-256 of all bytes. Throws `upstream_shape` when
     * they are not UTF-8, when something else than white space and commas separates entries, and what the readers threw.
     */
    end: (last: Buffer = Buffer.alloc(0)): Buffer => {
      text.push(last)
      const isInPlace = filled === 0
      if (!isInPlace) add(last)
      read(isInPlace ? last : window.subarray(0, filled), true)
      freeBytes(window)
      const whole = text.end()
      if (fault !== null) throw fault.error
      expectClosed(walk, whole)
      return whole.sha256
    },
  }
}

/** Where the reading of an array is. */
interface Walk {
  /** What comes next; nothing is read after `no list` and `broken`. */
  place: 'begin' | 'list' | 'first' | 'entry' | 'separator' | 'nothing' | 'no list' | 'broken'
  /** Position in the document of the bytes' begin. */
  offset: number
  /** Position in the document of the end of the array, or of the byte that should be it. */
  closedAt: number
}

/** Reads on as far as entries are complete; returns the position up to which bytes are not needed any more. */
function walkEntries(walk: Walk, bytes: Buffer, isEnd: boolean, { visit, take = () => 0 }: EntryReaders): number {
  let at = 0
  if (walk.place === 'begin') {
    if (bytes.length < BOM.length && !isEnd) return 0
    if (bytes.subarray(0, BOM.length).equals(BOM)) at = BOM.length
    walk.place = 'list'
  }
  for (;;) {
    at = skipBlanks(bytes, at)
    if (at === bytes.length || walk.place === 'no list' || walk.place === 'broken') return bytes.length
    if (walk.place !== 'entry') {
      if (stepTo(walk, bytes[at], at)) at++
      continue
    }
    const taken = take(bytes, at)
    const end = taken > 0 ? taken : entryEnd(bytes, at)
    if (end === UNFINISHED) return at
    if (end === at) throw malformedIndex(`byte ${walk.offset + at} does not begin an entry`)
    if (taken === 0) visit(bytes, at, end)
    walk.place = 'separator'
    at = end
  }
}

/** Decides by a byte that is not in an entry what comes next; returns whether the byte is read. */
function stepTo(walk: Walk, byte: number | undefined, at: number): boolean {
  const { place } = walk
  if (place === 'list') walk.place = byte === LIST_OPEN ? 'first' : 'no list'
  else if (place === 'first' && byte !== LIST_CLOSE) walk.place = 'entry'
  else if (place === 'separator' && byte === COMMA) walk.place = 'entry'
  else if (place === 'nothing') walk.place = 'broken'
  else {
    walk.closedAt = walk.offset + at
    walk.place = byte === LIST_CLOSE ? 'nothing' : 'broken'
  }
  return place !== 'first' || walk.place !== 'entry'
}

/** Throws unless a document was read to the end of its array, and nothing comes behind it. */
function expectClosed({ place, closedAt }: Walk, { size, start }: WholeText): void {
  if (place === 'nothing') return
  if (size === 0) throw malformedIndex('the answer is empty')
  if (place === 'begin' || place === 'list' || place === 'no list')
    throw new NoEntryList(`it is not a JSON array; it begins with ${JSON.stringify(start)}`)
  if (place === 'first' || place === 'entry') throw malformedIndex('it ends within an entry')
  const at = place === 'separator' ? size : closedAt
  throw malformedIndex(`it is not a well-formed array: byte ${at} of ${size}`)
}

/** What is known of a document when all of its bytes have been seen. */
interface WholeText {
  sha256: Buffer
  size: number
  /** How it begins. */
  start: string
}

/** Sees a document's bytes as they arrive; the end throws when they are not UTF-8, also where two pieces share a character. */
function createText(): { push(piece: Buffer): void; end(): WholeText } {
  const digest = createHash('sha256')
  let start = Buffer.alloc(0)
  let size = 0
  let isValid = true
  let rest = Buffer.alloc(0) // of a character that goes on in the next piece
  return {
    push(piece) {
      digest.update(piece)
      size += piece.length
      const shown = SHOWN_BYTES - start.length
      if (shown > 0) start = Buffer.concat([start, piece.subarray(0, shown)])
      const bytes = rest.length === 0 ? piece : Buffer.concat([rest, piece])
      const end = bytes.length - unfinishedBytes(bytes)
      isValid &&= isUtf8(bytes.subarray(0, end))
      rest = Buffer.from(bytes.subarray(end))
    },
    end() {
      if (!isValid || rest.length > 0) throw malformedIndex('it is not UTF-8')
      return { sha256: digest.digest(), size, start: start.toString() }
    },
  }
}

/** Returns the number of last bytes that begin a character of more bytes. */
function unfinishedBytes(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0
    if (byte < 0x80) return 0
    if (byte >= 0xc0) return lengthBy(byte) > back ? back : 0
  }
  return 0
}

/** Returns the number of bytes of a character by the first of them, for characters of more bytes. */
function lengthBy(first: number): number {
  if (first >= 0xf0) return 4
  return first >= 0xe0 ? 3 : 2
}

/** Returns a copy of a window in one of twice the size, and frees the window. */
function grown(window: Buffer<ArrayBuffer>): Buffer<ArrayBuffer> {
  const larger = Buffer.allocUnsafeSlow(window.length * 2)
  window.copy(larger)
  freeBytes(window)
  return larger
}
