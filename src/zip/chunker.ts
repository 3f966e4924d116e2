import { Buffer } from 'node:buffer'

const CHUNK = 1 << 20

/** Where small writes go. */
export interface Chunker {
  size(): number
  header(bytes: number, write: (to: Buffer, at: number) => void): void
  bytes(data: Uint8Array): void
  /** Counts bytes that go another way. */
  skip(bytes: number): void
  /** Calls `look` with what it has not seen yet. */
  show(): void
  flush(): void
}

/**
 * Gathers small writes into chunks of 1 MiB for `sink`; counts every byte. `look` sees the same bytes before that, in
 * pieces that end where `show` was called. Both get views, valid during the call only.
 */
export function createChunker(
  sink: (chunk: Uint8Array) => void,
  look: (bytes: Uint8Array) => void = () => undefined,
): Chunker {
  const chunk = Buffer.allocUnsafe(CHUNK)
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
  return {
    size: () => total,
    header(bytes, write) {
      if (used + bytes > chunk.length) flush()
      write(chunk, used)
      used += bytes
      total += bytes
    },
    bytes(data) {
      total += data.length
      for (let from = 0; from < data.length;) {
        if (used === chunk.length) flush()
        const part = Math.min(chunk.length - used, data.length - from)
        chunk.set(data.subarray(from, from + part), used)
        used += part
        from += part
      }
    },
    skip(bytes) {
      total += bytes
    },
    show,
    flush,
  }
}
