import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { MirrorError } from '../../../../base/errors.ts'
import { freeBytes } from '../../../../base/free-bytes.ts'
import { CHUNK_BYTES } from '../../../../store/catalog/documents.ts'
import { sizeOf } from '../../../../store/database/gzip.ts'

/** Proves that the inflated chunks of a document have its digest. */
interface ContentProof {
  /** Adds the next chunk; waits while too many are being inflated. `inflated` resolves when nothing reads it any more. */
  add(chunk: Buffer): Promise<{ inflated: Promise<void> }>
  /** Resolves if all chunks are correct; rejects with `bundle`. */
  end(): Promise<void>
}

/** Chunks inflated concurrently in the thread pool, a mebibyte of memory each. */
const MOST = 4

const inflate: (chunk: Buffer, options: object) => Promise<Buffer> = promisify(gunzip)

let active = 0
let waitingForRoom: (() => void)[] = []

/**
 * Proves a document of a bundle while its chunks are written: each except the last has `CHUNK_BYTES`, all together the
 * key's content.
 */
export function createContentProof({ key, size }: { key: string; size: number }, chunks: number): ContentProof {
  const hash = createHash('sha256')
  let done: Promise<void> = Promise.resolve()
  let number = 0
  let content = 0
  const take = async (inflating: Promise<Buffer>, isLast: boolean, before: Promise<void>): Promise<void> => {
    const bytes = await inflating
    await before
    if (!isLast && bytes.length !== CHUNK_BYTES) throw unlike(key, size)
    content += bytes.length
    hash.update(bytes)
    freeBytes(bytes)
  }
  return {
    async add(chunk) {
      while (active >= MOST) await new Promise<void>((resolve) => waitingForRoom.push(resolve))
      active++
      const inflating = contentOfChunk(key, chunk)
      done = take(inflating, ++number === chunks, done).finally(() => {
        active--
        const waiting = waitingForRoom
        waitingForRoom = []
        for (const one of waiting) one()
      })
      done.catch(() => undefined) // reported by `end`
      const ended = (): void => undefined
      return { inflated: inflating.then(ended, ended) }
    },
    end: () => {
      const end = done.then(() => {
        if (number !== chunks || content !== size || hash.digest('hex') !== key) throw unlike(key, size)
      })
      end.catch(() => undefined) // reported to the caller
      return end
    },
  }
}

async function contentOfChunk(key: string, chunk: Buffer): Promise<Buffer> {
  const size = sizeOf(chunk)
  const fault = `document ${key} is not in chunks of gzip`
  if (chunk.readUInt16BE(0) !== 0x1f8b || size > CHUNK_BYTES) throw new MirrorError('bundle', fault)
  try {
    const limits = { chunkSize: Math.max(64, size + 16), maxOutputLength: size + 16 }
    const content = await inflate(chunk, limits)
    if (content.length === size) return content
  } catch (error) {
    throw new MirrorError('bundle', fault, { cause: error })
  }
  throw new MirrorError('bundle', fault)
}

function unlike(key: string, size: number): MirrorError {
  return new MirrorError('bundle', `document ${key} does not have the ${size} bytes of its digest`)
}
