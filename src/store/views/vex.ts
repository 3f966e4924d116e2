import { createHash } from 'node:crypto'
import { chunkContent, createDocumentStoreReader } from '../catalog/documents.ts'
import { type CatalogLink, IS_VEX } from '../catalog/answers.ts'
import type { Db } from '../database/open.ts'

/** A document that an answer about VEX leads to. */
export interface VexDocument {
  /** SHA-256 of the content, hex. */
  readonly digest: string
  /** Bytes of the content. */
  readonly size: number
  /** Unix seconds. */
  readonly changed: number
}

/** Reads of the mirrored VEX documents; usable on any connection. */
export function createVexReader(db: Db) {
  const links = db
    .prepare<[], string>(`SELECT links FROM catalog_answer WHERE ${IS_VEX} ORDER BY path`)
    .pluck()
  const documents = createDocumentStoreReader(db)
  return {
    /** Each document once, in the order of the digests. What is listed and not held is left out. */
    listVexDocuments(): VexDocument[] {
      const named = links.all().flatMap((json) => JSON.parse(json) as CatalogLink[])
      const digests = [...new Set(named.map(({ digest }) => digest))].sort()
      return digests.flatMap((digest) => {
        const held = documents.readCatalogDocument(digest)
        return held === null ? [] : [{ digest, size: held.size, changed: held.changed }]
      })
    },
    /** The whole content, held against its digest; null when it is not what it should be. */
    readVexContent({ digest, size }: VexDocument): Buffer | null {
      const chunks: Buffer[] = []
      let held = 0
      for (let number = 0; held < size; number++) {
        const chunk = documents.readChunk(digest, number)
        if (chunk === null) return null
        const content = chunkContent(chunk)
        if (content.length === 0) return null
        chunks.push(content)
        held += content.length
      }
      const content = Buffer.concat(chunks)
      return createHash('sha256').update(content).digest('hex') === digest ? content : null
    },
  }
}

export type VexReader = ReturnType<typeof createVexReader>
