import { crc32 } from 'node:zlib'
import type { ViewPart } from '../../store/views/member-writes.ts'
import { createPieces } from '../files.ts'

/** The archive of the generation before. */
export interface ArchiveSource {
  /** Compares a part with its CRC-32; `use` gets its bytes. */
  isSound(part: ViewPart, use?: (bytes: Buffer) => void): boolean
  /** Reads a part's bytes, or its entries of the directory; valid until the next of the same kind is read. */
  readPart(part: ViewPart): Buffer
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
    readPart: ({ at, bytes }) => data.read(at, bytes),
    readEntries: (at, bytes) => entries.read(at, bytes),
    close() {
      data.close()
      entries.close()
    },
  }
}
