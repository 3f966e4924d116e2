import { createHash } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'
import { basename } from 'node:path'
import { MirrorError, messageOf, systemCode } from '../../../base/errors.ts'
import type { ByteSource } from '../../../archive/zip/reader.ts'
import { readSums } from '../format/split-names.ts'
import { bundleRefusal } from '../format/refusal.ts'
import { READING } from '../../../base/files.ts'

/** A file, or its parts in order, read as one, without joining them on disk. */
interface SplitParts extends ByteSource {
  readonly paths: readonly string[]
  /** Compares the parts with the list of digests beside them; returns which one differs, or null: none, or no list. */
  fault(): Promise<string | null>
  close(): Promise<void>
}

interface Part {
  path: string
  file: FileHandle
  size: number
  /** Offset of its first byte in the whole. */
  start: number
}

/** Opens files as one. All parts except the last have equal length. Throws `bundle`. */
export async function openParts(paths: readonly string[]): Promise<SplitParts> {
  const parts: Part[] = []
  const close = async (): Promise<void> => {
    for (const { file } of parts) await file.close()
  }
  try {
    for (const path of paths) {
      const file = await openFile(path)
      const before = parts.at(-1)
      const start = before === undefined ? 0 : before.start + before.size
      parts.push({ path, file, size: 0, start })
      const { size } = await file.stat()
      parts[parts.length - 1] = { path, file, size, start }
    }
    refuseUneven(parts)
  } catch (error) {
    await close()
    throw error
  }
  const last = parts.at(-1)
  return {
    paths,
    size: last === undefined ? 0 : last.start + last.size,
    read: (position, length, into) => readAcross(parts, position, length, into),
    fault: () => faultOf(parts),
    close,
  }
}

/** Errors that say that there is no such file. All others are of this computer or of the medium, and say nothing of the bundle. */
const NO_FILE: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG'])

async function openFile(path: string): Promise<FileHandle> {
  try {
    const file = await open(path, READING)
    if ((await file.stat()).isFile()) return file
    await file.close()
    throw new MirrorError('bundle', `${path} is not a regular file`)
  } catch (error) {
    if (error instanceof MirrorError) throw error
    const code = systemCode(error) ?? ''
    const why = code === 'ENOENT' ? 'is missing' : `cannot be read (${messageOf(error)})`
    throw new MirrorError(NO_FILE.has(code) ? 'bundle' : 'storage', `${path} ${why}`, { cause: error })
  }
}

function refuseUneven(parts: readonly Part[]): void {
  const whole = parts[0]?.size ?? 0
  for (const [i, { path, size }] of parts.entries()) {
    const isLast = i === parts.length - 1
    if (size === 0) throw bundleRefusal({ kind: 'incomplete' }, `${path} is empty: copy it again`)
    if (size < whole && !isLast)
      throw bundleRefusal(
        { kind: 'incomplete' },
        `${path} is truncated: it has ${size} bytes and the first part ${whole}. Copy it again`,
      )
    if (size > whole)
      throw new MirrorError(
        'bundle',
        `${path} is not a part of this bundle: it has ${size} bytes and the first part ${whole}`,
      )
  }
}

async function readAcross(parts: readonly Part[], position: number, length: number, into?: Buffer): Promise<Buffer> {
  const target = into !== undefined && into.length >= length ? into : Buffer.allocUnsafe(length)
  let done = 0
  for (const { path, file, size, start } of parts) {
    while (done < length && position + done >= start && position + done < start + size) {
      const at = position + done - start
      const wanted = Math.min(length - done, size - at)
      const { bytesRead } = await readFrom(path, file, target, done, wanted, at)
      if (bytesRead === 0) throw new MirrorError('bundle', `${path} ended while it was read`)
      done += bytesRead
    }
  }
  if (done < length) throw new MirrorError('bundle', 'it ends too early: it is truncated')
  return target.subarray(0, length)
}

async function readFrom(
  path: string,
  file: FileHandle,
  target: Buffer,
  offset: number,
  length: number,
  position: number,
): Promise<{ bytesRead: number }> {
  try {
    return await file.read(target, offset, length, position)
  } catch (error) {
    const message = `${path} cannot be read (${messageOf(error)}): the medium is gone or damaged, copy it again`
    throw new MirrorError('storage', message, { cause: error })
  }
}

async function faultOf(parts: readonly Part[]): Promise<string | null> {
  const [first] = parts
  if (first === undefined) return null
  const sums = readSums(parts.length > 1 ? first.path.replace(/\.\d{3}$/, '') : first.path)
  if (sums === null) return null
  const seen = new Map<string, string>()
  for (const part of parts) {
    const listed = sums.get(basename(part.path))
    const digest = await digestOf(part)
    const same = seen.get(digest)
    seen.set(digest, part.path)
    if (listed === undefined || listed === digest) continue
    const what =
      same === undefined ? 'does not match the list of digests beside it' : `has the same bytes as ${basename(same)}`
    return `${part.path} ${what}: copy it again`
  }
  return null
}

async function digestOf({ path, file, size }: Part): Promise<string> {
  const hash = createHash('sha256')
  const buffer = Buffer.allocUnsafe(Math.min(size, 1 << 20))
  for (let at = 0; at < size;) {
    const { bytesRead } = await readFrom(path, file, buffer, 0, buffer.length, at)
    if (bytesRead === 0) break
    hash.update(buffer.subarray(0, bytesRead))
    at += bytesRead
  }
  return hash.digest('hex')
}

/** Bytes read at once for small reads. */
const WINDOW = 1 << 18
/** Longer reads are not buffered, bytes. */
const SMALL = 1 << 16

/**
 * Creates a source that reads ahead: a bundle of many small members needs a read per 256 KiB, not three per member. The
 * returned buffers belong to the caller.
 */
export function readAhead(source: ByteSource): ByteSource {
  const { size } = source
  let window: { from: number; bytes: Buffer } = { from: 0, bytes: Buffer.alloc(0) }
  return {
    size,
    async read(position, length, into) {
      if (length > SMALL || position < 0 || position + length > size) return source.read(position, length, into)
      const inside = position >= window.from
      if (!inside || position + length > window.from + window.bytes.length) {
        const bytes = await source.read(position, Math.min(WINDOW, size - position))
        window = { from: position, bytes }
        return given(bytes.subarray(0, length), into)
      }
      const at = position - window.from
      return given(window.bytes.subarray(at, at + length), into)
    },
  }
}

function given(bytes: Buffer, into: Buffer | undefined): Buffer {
  if (into === undefined || into.length < bytes.length) return Buffer.from(bytes)
  bytes.copy(into)
  return into.subarray(0, bytes.length)
}
