import { constants, crc32, createGunzip, deflateRawSync } from 'node:zlib'
import { freeBytes } from '../free-bytes.ts'
import { FRAME, writeGzipMember } from './member.ts'

/** Bytes that are inflated at once. */
const PIECE_BYTES = 1 << 18
/** Bytes that are compressed at once, without regard to those before: less than 0.2 % larger than in one piece. */
export const BLOCK_BYTES = 1 << 20
/** What ends each block but the last: zlib's other streams hardly have it. */
export const BLOCK_END = Buffer.from([0, 0, 0xff, 0xff])

/**
 * Inflates one or several gzip members in pieces. Each is valid until the next one is requested, which frees its memory.
 * Rejects with zlib's error when they are damaged or cut short.
 */
export async function* inflatedPieces(gzip: Buffer): AsyncGenerator<Buffer, void, undefined> {
  const content = createGunzip({ chunkSize: PIECE_BYTES })
  content.end(gzip)
  try {
    for await (const piece of content as AsyncIterable<Buffer>) {
      yield piece
      // zlib writes to the rest of a buffer that is not full.
      if (piece.length === piece.buffer.byteLength) freeBytes(piece)
    }
  } finally {
    content.destroy()
  }
}

/** Creates a packer; level 6, as for records. */
export function createPacker() {
  const block = Buffer.allocUnsafeSlow(BLOCK_BYTES)
  const parts: Buffer[] = []
  let filled = 0
  let crc = 0
  let size = 0
  const pack = (finishFlush: number): void => {
    const content = block.subarray(0, filled)
    parts.push(deflateRawSync(content, { level: 6, finishFlush, chunkSize: PIECE_BYTES }))
    filled = 0
  }
  return {
    /** Takes the next piece; it may change afterwards. */
    push(piece: Uint8Array): void {
      crc = crc32(piece, crc)
      size += piece.length
      for (let from = 0; from < piece.length;) {
        if (filled === BLOCK_BYTES) pack(constants.Z_SYNC_FLUSH)
        const part = piece.subarray(from, from + BLOCK_BYTES - filled)
        block.set(part, filled)
        filled += part.length
        from += part.length
      }
    },
    end(): Buffer {
      pack(constants.Z_FINISH)
      freeBytes(block)
      const deflated = Buffer.concat(parts)
      const member = Buffer.allocUnsafeSlow(deflated.length + FRAME)
      writeGzipMember(member, 0, deflated, crc, size)
      return member
    },
  }
}
