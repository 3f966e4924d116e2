import { Buffer } from 'node:buffer'
import { shiftEntries } from './entries.ts'
import { endRecords, headerFields, writeCentralHeader, writeLocalHeader } from './headers.ts'

/** One member to write: its content's CRC-32 and size in bytes, and its raw deflate stream. */
export interface ZipMember {
  name: string
  crc32: number
  size: number
  deflated: Uint8Array
}

/** Consecutive members of another archive. */
export interface Adopted {
  count: number
  /** Bytes of their local headers and streams. */
  bytes: number
  /** Their position in the other archive. */
  from: number
  /** Its central directory, from their entries on; the offsets in these are changed. */
  entries: Buffer
}

/** Where the pages of a central directory wait until the members are written. */
export interface DirectoryPages {
  /** Keeps a copy: the page is valid during the call only. */
  put(page: Uint8Array): void
  /** Passes on all pages, in order. */
  each(use: (page: Uint8Array) => void): void
}

/** What an archive takes of memory while it is written. */
interface Bounds {
  /** Bytes of a chunk, and of a page; 1 MiB when not given. */
  readonly chunk?: number
  /** In memory when not given. */
  readonly pages?: DirectoryPages
}

function createPages(): DirectoryPages {
  const pages: Uint8Array[] = []
  return {
    put: (page) => void pages.push(Buffer.from(page)),
    each(use) {
      for (const page of pages) use(page)
    },
  }
}

const DEFLATED = 8
const MAX32 = 0xffffffff

/**
 * Creates a deterministic archive: the same members in the same order give the same bytes on any machine (fixed dates,
 * no extra fields, UTF-8 flag only where a name needs it, Zip64 only where a number does). Streams are copied, never
 * recompressed. `sink` receives chunks of about 1 MiB, valid during the call only; `look` receives the same bytes
 * earlier, in pieces that end where `show` was called. Nothing may be added after `finish`.
 */
export function createZipWriter(
  sink: (chunk: Uint8Array) => void,
  look: (bytes: Uint8Array) => void = () => undefined,
  { chunk = CHUNK, pages = createPages() }: Bounds = {},
) {
  const body = createChunker(sink, look, chunk)
  const directory = createChunker((page) => pages.put(page), undefined, chunk)
  let members = 0

  const add = (member: ZipMember): number => {
    const { name, crc32, size, deflated } = member
    const packed = deflated.length
    if (size >= MAX32 || packed >= MAX32) throw new RangeError(`member over 4 GiB: ${name}`)
    const fields = headerFields({ name, method: DEFLATED, crc32, size, packed }, body.size())
    body.header(fields.localBytes, (to, at) => writeLocalHeader(to, at, fields))
    const stream = body.size()
    body.bytes(deflated)
    directory.header(fields.centralBytes, (to, at) => writeCentralHeader(to, at, fields))
    members++
    return stream
  }

  const adopt = ({ count, bytes, from, entries }: Adopted): number => {
    body.flush()
    const used = shiftEntries(entries, count, body.size() - from)
    directory.bytes(entries.subarray(0, used))
    body.skip(bytes)
    members += count
    return used
  }

  const finish = (): { size: number; members: number } => {
    const start = body.size()
    body.flush()
    directory.flush()
    pages.each((page) => {
      look(page)
      sink(page)
    })
    body.skip(directory.size())
    body.bytes(endRecords(members, start, body.size() - start))
    body.flush()
    return { size: body.size(), members }
  }

  return {
    /** Adds a member; returns the position of its stream in the archive. */
    add,
    /** Passes to `look` the bytes that it has not seen yet: all local headers and streams so far. */
    show: (): void => body.show(),
    /**
     * Adds members of another archive written by this writer, without their bytes: everything before them is passed to the
     * sink, and the caller appends their bytes itself. Returns the bytes of their entries. For archives under 4 GiB.
     */
    adopt,
    /** Writes the central directory and returns the archive's size in bytes and its member count. */
    finish,
  }
}

const CHUNK = 1 << 20

/**
 * Gathers small writes into chunks of 1 MiB for `sink`; counts every byte. `look` receives the same bytes earlier, in
 * pieces that end where `show` was called. Both get views, valid during the call only.
 */
function createChunker(
  sink: (chunk: Uint8Array) => void,
  look: (bytes: Uint8Array) => void = () => undefined,
  bytes = CHUNK,
) {
  const chunk = Buffer.allocUnsafe(bytes)
  let used = 0
  let total = 0
  let shown = 0
  const show = (): void => {
    if (used > shown) look(chunk.subarray(shown, used))
    shown = used
  }
  const flush = (): void => {
    show()
    if (used > 0) sink(chunk.subarray(0, used))
    used = 0
    shown = 0
  }
  const put = (data: Uint8Array): void => {
    total += data.length
    for (let from = 0; from < data.length;) {
      if (used === chunk.length) flush()
      const part = Math.min(chunk.length - used, data.length - from)
      chunk.set(data.subarray(from, from + part), used)
      used += part
      from += part
    }
  }
  return {
    size: (): number => total,
    header(bytes: number, write: (to: Buffer, at: number) => void): void {
      if (bytes > chunk.length) return put(written(bytes, write))
      if (used + bytes > chunk.length) flush()
      write(chunk, used)
      used += bytes
      total += bytes
    },
    bytes: put,
    /** Counts bytes that are written elsewhere. */
    skip(bytes: number): void {
      total += bytes
    },
    /** Passes to `look` the bytes that it has not seen yet. */
    show,
    flush,
  }
}

function written(bytes: number, write: (to: Buffer, at: number) => void): Buffer {
  const header = Buffer.allocUnsafe(bytes)
  write(header, 0)
  return header
}
