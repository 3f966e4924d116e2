import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { MirrorError } from '../errors.ts'
import { CHUNK_BYTES } from '../store/catalog-documents.ts'
import { sizeOf } from '../store/gzip.ts'

/** That the chunks of a document, inflated, are the document of that digest. */
export interface ContentProof {
  /** Takes the next chunk; waits only while enough are on their way. */
  add(chunk: Buffer): Promise<void>
  /** Resolves when all chunks were what they should be; rejects with `bundle`. */
  end(): Promise<void>
}

/** Inflating goes on in other threads meanwhile; so many chunks lie in memory then, a mebibyte each. */
const MOST = 4

const inflate: (chunk: Buffer, options: object) => Promise<Buffer> = promisify(gunzip)

let onTheirWay = 0
let free: (() => void)[] = []

/** Proves a document of a bundle while its chunks are written: each but the last holds `CHUNK_BYTES`, together the key's content. */
export function createContentProof(
  { key, size }: { key: string; size: number },
  chunks: number,
): ContentProof {
  const hash = createHash('sha256')
  let done: Promise<void> = Promise.resolve()
  let number = 0
  let content = 0
  const take = async (chunk: Buffer, isLast: boolean, before: Promise<void>): Promise<void> => {
    const bytes = await inflated(key, chunk)
    await before
    if (!isLast && bytes.length !== CHUNK_BYTES) throw unlike(key, size)
    content += bytes.length
    hash.update(bytes)
  }
  return {
    async add(chunk) {
      while (onTheirWay >= MOST) await new Promise<void>((resolve) => free.push(resolve))
      onTheirWay++
      done = take(chunk, ++number === chunks, done).finally(() => {
        onTheirWay--
        const waiting = free
        free = []
        for (const one of waiting) one()
      })
      done.catch(() => undefined) // told at the end
    },
    end: () => {
      const end = done.then(() => {
        if (number !== chunks || content !== size || hash.digest('hex') !== key)
          throw unlike(key, size)
      })
      end.catch(() => undefined) // told to whoever waits for it
      return end
    },
  }
}

async function inflated(key: string, chunk: Buffer): Promise<Buffer> {
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
  return new MirrorError(
    'bundle',
    `document ${key} does not have the ${size} bytes that it is named by`,
  )
}
