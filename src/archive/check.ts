import { fstatSync, readSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { MirrorError, messageOf, systemCode } from '../base/errors.ts'
import type { ArchiveInfo } from '../store/osv/reads.ts'
import type { ArchivePart } from '../store/osv/archive-parts.ts'
import { bytesOfParts, createSummer, digestOfParts } from './parts.ts'

const CHUNK = 1 << 20

type Recorded = Pick<ArchiveInfo, 'size' | 'sha256'>

/**
 * Reads a derived archive to its end and returns what is wrong with it, or null. Every part must have its recorded
 * SHA-256, and parts and tail together the archive's digest.
 */
export async function faultOfArchive(
  path: string,
  info: Recorded,
  parts: readonly ArchivePart[],
): Promise<string | null> {
  try {
    const file = await open(path, 'r')
    try {
      if ((await file.stat()).size !== info.size) return 'has not its recorded size'
      return await faultOfParts(file, info, parts)
    } finally {
      await file.close()
    }
  } catch (error) {
    return systemCode(error) === 'ENOENT'
      ? 'is missing; the daemon, the next run or "patchmirror doctor --data --repair" rebuilds it'
      : `cannot be read: ${messageOf(error)}`
  }
}

async function faultOfParts(
  file: FileHandle,
  { size, sha256 }: Recorded,
  parts: readonly ArchivePart[],
): Promise<string | null> {
  const summer = createSummer({ crc: false })
  const buffer = Buffer.allocUnsafe(CHUNK)
  const pass = async (from: number, bytes: number): Promise<void> => {
    for (let at = from; at < from + bytes;) {
      const { bytesRead } = await file.read(buffer, 0, Math.min(CHUNK, from + bytes - at), at)
      if (bytesRead === 0) throw new Error(`it ends at byte ${at}`)
      summer.update(buffer.subarray(0, bytesRead))
      at += bytesRead
    }
  }
  let at = 0
  for (const { first, bytes, sha256: recorded } of parts) {
    await pass(at, bytes)
    at += bytes
    if (summer.take().sha256 !== recorded) return `is damaged in the part that begins with record "${first}"`
  }
  await pass(at, size - at)
  return digestOfParts(parts, summer.take()) === sha256 ? null : 'is damaged in its central directory'
}

/**
 * Reads a range of an open file in chunks of at most `buffer` bytes, valid during the call. Throws if the file ends
 * early.
 */
export function readRange(fd: number, from: number, bytes: number, buffer: Buffer, use: (chunk: Buffer) => void): void {
  for (let left = bytes; left > 0;) {
    const read = readSync(fd, buffer, 0, Math.min(left, buffer.length), from + bytes - left)
    if (read === 0) throw new Error(`the archive ends ${left} bytes too early`)
    use(buffer.subarray(0, read))
    left -= read
  }
}

/**
 * Returns the bytes after the archive's parts (central directory and end records); null if they differ from the
 * published ones.
 */
export function readTail(fd: number, info: Recorded, parts: readonly ArchivePart[]): Buffer | null {
  const start = bytesOfParts(parts)
  if (parts.length === 0 || fstatSync(fd).size !== info.size || start > info.size) return null
  const tail = Buffer.allocUnsafe(info.size - start)
  const piece = Buffer.allocUnsafe(CHUNK)
  let filled = 0
  readRange(fd, start, tail.length, piece, (chunk) => {
    filled += chunk.copy(tail, filled)
  })
  const summer = createSummer({ crc: false })
  summer.update(tail)
  return digestOfParts(parts, summer.take()) === info.sha256 ? tail : null
}

/** Compares the gzip trailer of the stored bytes with the record's CRC-32 and size: damaged bytes must not be served. */
export function checkTrailer(id: string, body: Buffer, crc32: number, size: number): void {
  const sound =
    body.length >= 18 && body.readUInt32LE(body.length - 8) === crc32 && body.readUInt32LE(body.length - 4) === size
  if (sound) return
  throw new MirrorError(
    'proof',
    `the stored bytes of record ${id} do not match its checksum: run "patchmirror doctor --data --repair"`,
  )
}
