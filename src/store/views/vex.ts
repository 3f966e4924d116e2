import { sha256Hex } from '../../core/digest.ts'
import { createDocumentStoreReader } from '../catalog/documents.ts'
import { wholeContent } from '../catalog/whole-content.ts'
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
      const content = wholeContent(documents, digest, size)
      return typeof content !== 'string' && sha256Hex(content) === digest ? content : null
    },
  }
}

export type VexReader = ReturnType<typeof createVexReader>
