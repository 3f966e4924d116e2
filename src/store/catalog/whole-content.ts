import { gunzipSync } from 'node:zlib'
import { systemCode } from '../../base/errors.ts'
import { CHUNK_BYTES, chunkContent, type createDocumentStoreReader } from './documents.ts'

/** A document's content as a whole, at most `maxBytes`; otherwise why it cannot be read. */
export function wholeContent(
  { readDocument, readChunk }: Pick<ReturnType<typeof createDocumentStoreReader>, 'readDocument' | 'readChunk'>,
  digest: string,
  maxBytes: number,
): Buffer | 'absent' | 'too large' | 'incomplete' {
  const document = readDocument(digest)
  if (document === null) return 'absent'
  if (document.size > maxBytes) return 'too large'
  const chunks: Buffer[] = []
  for (let number = 0; number * CHUNK_BYTES < document.size; number++) {
    const chunk = readChunk(digest, number)
    const content = chunk && contentOrNull(chunk)
    if (content === null || content.length === 0) return 'incomplete'
    chunks.push(content)
  }
  return Buffer.concat(chunks)
}

/** Returns the content of a document without the gzip of a file; it has at most `maxBytes`. */
export function unpackedContent(content: Buffer, maxBytes: number): Buffer | 'too large' | 'incomplete' {
  if (content[0] !== 0x1f || content[1] !== 0x8b) return content
  try {
    return gunzipSync(content, { maxOutputLength: maxBytes })
  } catch (error) {
    return systemCode(error) === 'ERR_BUFFER_TOO_LARGE' ? 'too large' : 'incomplete'
  }
}

/** Does the same as `wholeContent`, and of a gzip file returns what is in it. */
export function wholeUnpacked(
  reader: Parameters<typeof wholeContent>[0],
  digest: string,
  maxBytes: number,
): ReturnType<typeof wholeContent> {
  const content = wholeContent(reader, digest, maxBytes)
  return typeof content === 'string' ? content : unpackedContent(content, maxBytes)
}

function contentOrNull(chunk: Buffer): Buffer | null {
  try {
    return chunkContent(chunk)
  } catch {
    return null // damaged
  }
}
