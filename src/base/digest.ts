import { createHash, hash } from 'node:crypto'
import { readSync } from 'node:fs'

/** Returns the SHA-256 of bytes, or of text in UTF-8. */
export function sha256Of(content: string | NodeJS.ArrayBufferView): Buffer {
  return hash('sha256', content, 'buffer')
}

/** Returns the same as 64 hex digits. */
export function sha256Hex(content: string | NodeJS.ArrayBufferView): string {
  return hash('sha256', content, 'hex')
}

/** Reports whether a value is a SHA-256 as 64 hex digits. */
export function isSha256Hex(value: unknown): boolean {
  return typeof value === 'string' && /^[\da-f]{64}$/.test(value)
}

/** Returns the SHA-256 of all chunks, hex. Rejects as the chunks do. */
export async function digestOfChunks(chunks: AsyncIterable<unknown>): Promise<string> {
  const digest = createHash('sha256')
  for await (const chunk of chunks) digest.update(chunk as Uint8Array)
  return digest.digest('hex')
}

/** Bytes of a file that are read at once. */
const PIECE = 1 << 20

/** Returns the SHA-256 of the rest of an open file, hex; `use` gets each piece, which is valid during the call. */
export function digestOfOpenFile(fd: number, use: (piece: Buffer) => void = () => undefined): string {
  const digest = createHash('sha256')
  const buffer = Buffer.allocUnsafe(PIECE)
  for (;;) {
    const read = readSync(fd, buffer, 0, buffer.length, null)
    if (read === 0) return digest.digest('hex')
    const piece = buffer.subarray(0, read)
    digest.update(piece)
    use(piece)
  }
}

/** Returns the SHA-256 of pieces in a row, hex. */
export function digestOfPieces(pieces: Iterable<Uint8Array>): string {
  const digest = createHash('sha256')
  for (const piece of pieces) digest.update(piece)
  return digest.digest('hex')
}
