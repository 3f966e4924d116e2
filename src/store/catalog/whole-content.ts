import { CHUNK_BYTES, chunkContent, type createDocumentStoreReader } from './documents.ts'

/** A document's content as a whole, at most `maxBytes`; otherwise why it cannot be read. */
export function wholeContent(
  {
    readDocument,
    readChunk,
  }: Pick<ReturnType<typeof createDocumentStoreReader>, 'readDocument' | 'readChunk'>,
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

function contentOrNull(chunk: Buffer): Buffer | null {
  try {
    return chunkContent(chunk)
  } catch {
    return null // damaged
  }
}
