import { sha256Hex } from '../../core/digest.ts'
import { createDocumentStoreReader } from '../catalog/documents.ts'
import { unpackedContent, wholeContent } from '../catalog/whole-content.ts'
import type { StoredSignature } from '../../domain/artifacts/signature.ts'
import { type CatalogAnswer, type CatalogLink, IS_VEX } from '../catalog/answers.ts'
import { createSignatureReader } from '../catalog/signatures.ts'
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
  /** What the verification of its signatures came to, the best of the artifacts that link to it; null or absent: it was not verified. */
  readonly signature?: StoredSignature | null
}

type LinkRow = Pick<CatalogAnswer, 'path' | 'status' | 'sha256'> & { readonly links: string }

/** Creates reads of the mirrored VEX documents; usable on any connection. */
export function createVexReader(db: Db) {
  const answers = db.prepare<[], LinkRow>(
    `SELECT path, status, sha256, links FROM catalog_answer WHERE ${IS_VEX} ORDER BY path`,
  )
  const documents = createDocumentStoreReader(db)
  const signatures = createSignatureReader(db)
  return {
    /** Each document once, in the order of the digests. Documents that are listed but not stored are omitted. */
    listVexDocuments(): VexDocument[] {
      const named = new Map<string, StoredSignature | null>()
      for (const row of answers.all()) {
        const links = JSON.parse(row.links) as CatalogLink[]
        const signature = signatures.readSignature(row.path, { ...row, links })
        for (const { digest } of links) named.set(digest, better(named.get(digest), signature))
      }
      return [...named.keys()].sort().flatMap((digest) => {
        const stored = documents.readDocument(digest)
        if (stored === null) return []
        const { size, changed } = stored
        return [{ digest, size, changed, signature: named.get(digest) ?? null }]
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

/** Returns of two results the one that says more for the document. */
function better(
  one: StoredSignature | null | undefined,
  other: StoredSignature | null,
): StoredSignature | null {
  return one?.state === 'verified' ? one : (other ?? one ?? null)
}

export type VexReader = ReturnType<typeof createVexReader>
