import { sha256Hex } from '../../core/digest.ts'
import { chunkContent, createDocumentStoreReader } from '../catalog/documents.ts'
import { type CatalogLink, IS_VEX } from '../catalog/answers.ts'
import type { Db } from '../database/open.ts'

/** A document that an answer about VEX links to. */
export interface VexDocument {
  /** SHA-256 of the content, hex. */
  readonly digest: string
  /** Bytes of the content. */
  readonly size: number
  /** Unix seconds. */
  readonly changed: number
}

/** Creates reads of the mirrored VEX documents; usable on any connection. */
export function createVexReader(db: Db) {
  const links = db
    .prepare<[], string>(`SELECT links FROM catalog_answer WHERE ${IS_VEX} ORDER BY path`)
    .pluck()
  const documents = createDocumentStoreReader(db)
  return {
    /** Each document once, in the order of the digests. Documents that are listed but not stored are omitted. */
    listVexDocuments(): VexDocument[] {
      const named = links.all().flatMap((json) => JSON.parse(json) as CatalogLink[])
      const digests = [...new Set(named.map(({ digest }) => digest))].sort()
      return digests.flatMap((digest) => {
        const stored = documents.readDocument(digest)
        return stored === null ? [] : [{ digest, size: stored.size, changed: stored.changed }]
      })
    },
    /** Returns the complete content; null if it is damaged. */
    readVexContent({ digest, size }: VexDocument): Buffer | null {
      const chunks: Buffer[] = []
      let length = 0
      for (let number = 0; length < size; number++) {
        const chunk = documents.readChunk(digest, number)
        if (chunk === null) return null
        const content = contentOf(chunk)
        if (content === null || content.length === 0) return null
        chunks.push(content)
        length += content.length
      }
      const content = Buffer.concat(chunks)
      return sha256Hex(content) === digest ? content : null
    },
  }
}

/** The content of a chunk; null where it is no gzip member. */
function contentOf(chunk: Buffer): Buffer | null {
  try {
    return chunkContent(chunk)
  } catch {
    return null
  }
}

export type VexReader = ReturnType<typeof createVexReader>
