import type { CatalogDocumentValue } from './rows.ts'
import type { Db } from '../database/open.ts'

/** A document as its row says it, without the name of its blob. */
type DocumentToStore = Omit<CatalogDocumentValue, 'blob'>

/** Writes of documents that come chunk by chunk as they are to be stored. Call inside a transaction of the caller's. */
export function createCarriedDocumentWriter(db: Db) {
  const held = db.prepare<[string], Omit<DocumentToStore, 'key'>>(
    'SELECT size, stored, type, changed FROM catalog_document WHERE digest = ?',
  )
  const clear = db.prepare('DELETE FROM catalog_chunk WHERE digest = ?')
  const chunk = db.prepare('INSERT INTO catalog_chunk VALUES (?, ?, ?)')
  const put = db.prepare(
    'INSERT OR REPLACE INTO catalog_document VALUES (@key, @size, @stored, @type, @changed)',
  )
  return {
    /**
     * Whether a document is held: `other` with other stored bytes or dates. Then readers may have it, and it is to be
     * replaced in the transaction that publishes.
     */
    compareDocument(document: DocumentToStore): 'none' | 'same' | 'other' {
      const is = held.get(document.key)
      if (is === undefined) return 'none'
      const { size, stored, type, changed } = document
      const same = is.size === size && is.stored === stored
      return same && is.type === type && is.changed === changed ? 'same' : 'other'
    },
    /** Drops the chunks of a document, as before it is stored anew: a killed import may have left some. */
    clearChunks: (digest: string): void => {
      clear.run(digest)
    },
    putChunk: (digest: string, number: number, bytes: Buffer): void => {
      chunk.run(digest, number, bytes)
    },
    /** Makes what was put a document. Nobody's, until an answer names it. */
    putDocument: (document: DocumentToStore): void => {
      put.run(document)
    },
  }
}
