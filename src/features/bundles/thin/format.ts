import { createHash } from 'node:crypto'
import { closeSync, openSync, readSync } from 'node:fs'
import { constants, deflateRawSync, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { MirrorError, messageOf } from '../../../base/errors.ts'
import type { SourceName } from '../../../base/domain/sources.ts'
import { READING } from '../../../base/files.ts'
import { bundleRefusal } from '../format/refusal.ts'

/** How a thin bundle begins. */
const MAGIC = Buffer.from('PMTHIN1\n', 'latin1')
/** Largest content that is compressed against another one, bytes: both are in memory, and in zstd's window. */
export const MOST_BYTES = 64 * 2 ** 20
/** Contents of records in one frame, with their earlier versions, unless it is one record, bytes. */
export const GROUP_BYTES = 4 * 2 ** 20
/** Bytes of a stored member in one frame. */
export const STORED_PIECE = 2 ** 20
/** 2 to this power holds a content and its dictionary. */
const WINDOW_LOG = 27
/** Finds the lines of a list of 100,000 again in a third of a second; level 3 finds almost none of them. */
const LEVEL = 9

/**
 * How the bytes of a member are made again: packs of rows are deflated, records become an archive, `packed` is gzip as the store
 * writes it, `gzip` as zlib does; what is stored is carried unchanged.
 */
export interface Recipe {
  readonly kind: 'rows' | 'records' | 'packed' | 'gzip' | 'stored'
  /** Of a document, whose earlier version is the dictionary; null: another member. */
  readonly path: string | null
  /** Of gzip: zlib's level, and the first bytes in hex, which differ by who wrote them; null: another kind. */
  readonly gzip: { readonly level: number; readonly header: string } | null
}

/** What precedes the members of a thin bundle. */
export interface ThinHead {
  /** The state digests of the sources at the base: the reader must have exactly this state. */
  readonly base: Partial<Record<SourceName, string>>
  /** What compresses alike: see `deflaterId`. */
  readonly deflater: string
  /** The text of the manifest, as it was signed. */
  readonly manifest: string
  /** Key ids and signatures in base64, in the order of the file. */
  readonly signatures: readonly { readonly key: string; readonly bytes: string }[]
  /** For each member of the manifest, in order. */
  readonly recipes: readonly Recipe[]
}

/** A record of a group: its size in bytes, whether the base's version is in the dictionary, whether its deflate stream is carried. */
export interface GroupEntry {
  readonly id: string
  readonly size: number
  readonly known: boolean
  readonly carried: boolean
}

/** The contents that both sides have of the base. Null: there is none. */
export interface BaseContents {
  document(path: string): Buffer | null
  record(id: string): Buffer | null
}

const SAMPLE = Array.from({ length: 20_000 }, (_, i) => (i * 2_654_435_761) % 4_093).join()

/** Returns 16 hex digits that are equal where the same bytes become the same deflate stream: zlib's versions differ. */
export function deflaterId(): string {
  return createHash('sha256')
    .update(deflateRawSync(SAMPLE, { level: 6 }))
    .digest('hex')
    .slice(0, 16)
}

/** Compresses bytes against a dictionary, which may be empty. */
export function squeeze(bytes: Uint8Array, dictionary: Buffer): Buffer {
  const params = { [constants.ZSTD_c_compressionLevel]: LEVEL, [constants.ZSTD_c_windowLog]: WINDOW_LOG }
  return zstdCompressSync(bytes, dictionary.length === 0 ? { params } : { params, dictionary })
}

/** Reverses `squeeze`. Throws `bundle` for more than `most` bytes, and for a dictionary or bytes that are others. */
export function expand(bytes: Uint8Array, dictionary: Buffer, most: number): Buffer {
  const bounded = { maxOutputLength: Math.max(1, most), params: { [constants.ZSTD_d_windowLogMax]: WINDOW_LOG } }
  try {
    return zstdDecompressSync(bytes, dictionary.length === 0 ? bounded : { ...bounded, dictionary })
  } catch (error) {
    throw new MirrorError('bundle', `a part of it does not expand (${messageOf(error)}): copy it again`, {
      cause: error,
    })
  }
}

/** Returns bytes behind their length. */
export function frameOf(bytes: Uint8Array): Buffer {
  const length = Buffer.alloc(4)
  length.writeUInt32LE(bytes.length)
  return Buffer.concat([length, bytes])
}

/** Returns the bytes before the first frame. */
export function magic(): Buffer {
  return Buffer.from(MAGIC)
}

/** Reports whether a file is a thin bundle; false for one that cannot be read, which others report. */
export function isThin(path: string): boolean {
  return startsWith(path, MAGIC)
}

/** The first bytes of an archive. */
const ZIP = Buffer.from('PK\x03\x04')

/** Reports whether a file begins as a bundle does, whatever its name; as `isThin`. */
export function beginsAsBundle(path: string): boolean {
  return isThin(path) || startsWith(path, ZIP)
}

function startsWith(path: string, expected: Buffer): boolean {
  try {
    const start = Buffer.alloc(expected.length)
    const file = openSync(path, READING)
    try {
      return readSync(file, start, 0, start.length, 0) === start.length && start.equals(expected)
    } finally {
      closeSync(file)
    }
  } catch {
    return false
  }
}

/** Reads the frames of a thin bundle one after the other. A caller closes it. */
export function openFrames(path: string) {
  const file = openSync(path, 'r')
  let at = MAGIC.length
  const read = (length: number): Buffer => {
    const bytes = Buffer.allocUnsafe(length)
    for (let done = 0; done < length;) {
      const got = readSync(file, bytes, done, length - done, at + done)
      if (got === 0) throw cut()
      done += got
    }
    at += length
    return bytes
  }
  return {
    /** Throws `bundle` at the end of the file, and for a frame of more than `most` bytes. */
    next(most: number): Buffer {
      const length = read(4).readUInt32LE()
      if (length > most + 2 ** 16) throw new MirrorError('bundle', `a part of it has ${length} bytes: copy it again`)
      return read(length)
    },
    /** Throws `bundle` where bytes follow. */
    end(): void {
      if (readSync(file, Buffer.alloc(1), 0, 1, at) > 0)
        throw new MirrorError('bundle', 'it has bytes after its end: copy it again')
    },
    close: (): void => closeSync(file),
  }
}

export type Frames = ReturnType<typeof openFrames>

/** An inbox waits for the rest: the file may still be copied. */
function cut(): MirrorError {
  return bundleRefusal({ kind: 'incomplete' }, 'it ends too early: copy it again')
}
