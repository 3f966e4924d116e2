import { crc32 } from 'node:zlib'
import type { ViewPart } from '../../store/member-writes.ts'
import { createPieces } from '../files.ts'

/** The archive of the generation before. */
export interface ArchiveSource {
  /** Compares a part with its CRC-32; `use` gets its bytes. */
  isSound(part: ViewPart, use?: (bytes: Buffer) => void): boolean
  /** Reads neighbouring parts and compares each with its CRC-32; valid until the next are read. Null when one is damaged. */
  readSound(parts: readonly ViewPart[]): Buffer | null
  /** Reads entries of the directory; valid until the next are read. */
  readEntries(at: number, bytes: number): Buffer
  close(): void
}

const STEP = 1 << 20

/** Opens an archive; null when it cannot be read. */
export function openOldArchive(path: string): ArchiveSource | null {
  try {
    return createSource(path)
  } catch {
    return null
  }
}

function bytesOf(parts: readonly ViewPart[]): number {
  return parts.reduce((sum, { bytes }) => sum + bytes, 0)
}

function createSource(path: string): ArchiveSource {
  const data = createPieces(path)
  const entries = createPieces(path)
  return {
    isSound({ at, bytes, crc32: expected }, use = () => undefined) {
      let crc = 0
      try {
        for (let done = 0; done < bytes; done += STEP) {
          const piece = data.read(at + done, Math.min(STEP, bytes - done))
          crc = crc32(piece, crc)
          use(piece)
        }
      } catch {
        return false // it ends before its end
      }
      return crc === expected
    },
    readSound(parts) {
      try {
        const read = data.read(parts[0]?.at ?? 0, bytesOf(parts))
        let at = 0
        for (const { bytes, crc32: expected } of parts)
          if (crc32(read.subarray(at, (at += bytes))) !== expected) return null
        return read
      } catch {
        return null // it ends before its end
      }
    },
    readEntries: (at, bytes) => entries.read(at, bytes),
    close() {
      data.close()
      entries.close()
    },
  }
}
