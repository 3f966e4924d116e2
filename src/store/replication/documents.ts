import type { CatalogDocumentValue } from './rows.ts'
import type { Db } from '../database/open.ts'
import { queries } from '../database/query.ts'

/** A document from its row, without the name of its blob. */
type DocumentToStore = Omit<CatalogDocumentValue, 'blob'>

/** Creates writes of documents that arrive as stored chunks. Call inside a transaction of the caller's. */
export function createCarriedDocumentWriter(db: Db) {
  const { run } = queries(db)
  const current = db.prepare<[string], Omit<DocumentToStore, 'key'>>(
    'SELECT size, stored, type, changed FROM catalog_document WHERE digest = ?',
  )
  return {
    /**
     * Compares a document with the stored one: `other` if bytes or dates differ. Readers may be using that one, so it
     * must be replaced in the transaction that publishes.
     */
    compareDocument(document: DocumentToStore): 'none' | 'same' | 'other' {
      const found = current.get(document.key)
      if (found === undefined) return 'none'
      const { size, stored, type, changed } = document
      const same = found.size === size && found.stored === stored
      return same && found.type === type && found.changed === changed ? 'same' : 'other'
    },
    /** Deletes the chunks of a document before it is stored again: a killed import may have left some. */
    clearChunks: run<[digest: string]>('DELETE FROM catalog_chunk WHERE digest = ?'),
    putChunk: run<[digest: string, number: number, bytes: Buffer]>('INSERT INTO catalog_chunk VALUES (?, ?, ?)'),
    /** Makes the stored chunks a document. It is unreferenced until an answer links to it. */
    putDocument: run<DocumentToStore>(
      'INSERT OR REPLACE INTO catalog_document VALUES (@key, @size, @stored, @type, @changed)',
    ),
  }
}
