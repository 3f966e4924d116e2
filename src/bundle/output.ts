import type { OutputFile } from './target.ts'

/** Bytes on their way into a target, one behind the other. */
export interface Output {
  /** Where the next byte goes. */
  position(): number
  readonly append: (bytes: Uint8Array) => Promise<void>
  /** Writes over bytes that were appended before. */
  patch(position: number, bytes: Uint8Array): Promise<void>
  flush(): Promise<void>
}

const CHUNK = 1 << 20

/** Gathers what is written into chunks of 1 MiB; one is on its way to the disk while the next is filled. */
export function createOutput(target: OutputFile): Output {
  let chunk = Buffer.allocUnsafe(CHUNK)
  let spare = Buffer.allocUnsafe(CHUNK)
  let start = 0
  let used = 0
  let underWay: Promise<void> = Promise.resolve()

  const send = async (): Promise<void> => {
    await underWay
    if (used === 0) return
    underWay = target.write(start, chunk.subarray(0, used))
    underWay.catch(() => undefined) // it is awaited by the next call
    start += used
    used = 0
    ;[chunk, spare] = [spare, chunk]
  }
  const flush = async (): Promise<void> => {
    await send()
    await underWay
  }
  return {
    position: () => start + used,
    async append(bytes) {
      for (let from = 0; from < bytes.length;) {
        if (used === CHUNK) await send()
        const part = bytes.subarray(from, from + CHUNK - used)
        chunk.set(part, used)
        used += part.length
        from += part.length
      }
    },
    async patch(position, bytes) {
      if (position >= start) {
        chunk.set(bytes, position - start)
        return
      }
      await flush()
      await target.write(position, bytes)
    },
    flush,
  }
}
