import type { ByteSource } from '../zip/reader.ts'

/** Read at once where little is asked for. */
const WINDOW = 1 << 18
/** What is longer is read by itself. */
const SMALL = 1 << 16

/**
 * A source that reads ahead: a bundle of many small members costs a read for each quarter of a mebibyte, not three for each
 * member. What it gives is the caller's own.
 */
export function readAhead(source: ByteSource): ByteSource {
  const { size } = source
  let window: { from: number; bytes: Buffer } = { from: 0, bytes: Buffer.alloc(0) }
  return {
    size,
    async read(position, length, into) {
      if (length > SMALL || position < 0 || position + length > size)
        return source.read(position, length, into)
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
