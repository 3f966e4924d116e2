import { sha256Hex } from '../../core/digest.ts'
import { createDocumentStoreReader } from '../catalog/documents.ts'
import { unpackedContent, wholeContent } from '../catalog/whole-content.ts'
import { type CatalogLink, IS_VEX } from '../catalog/answers.ts'
import type { Db } from '../database/open.ts'

/** Largest content of a gzip file, bytes. */
const MAX_UNPACKED = 64 * 2 ** 20

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
    /** Returns the complete content, of a gzip file what is in it; null if it is damaged. */
    readVexContent({ digest, size }: VexDocument): Buffer | null {
      const content = wholeContent(documents, digest, size)
      if (typeof content === 'string' || sha256Hex(content) !== digest) return null
      const unpacked = unpackedContent(content, MAX_UNPACKED)
      return typeof unpacked === 'string' ? null : unpacked
    },
  }
}

export type VexReader = ReturnType<typeof createVexReader>
