import type { Db } from '../database/open.ts'

/** Parts of the catalog that are damaged. */
export interface CatalogDamage {
  /** Canonical paths of answers. */
  answers: readonly string[]
  /** Canonical paths of lists. */
  lists: readonly string[]
  /** Digests of documents. */
  documents: readonly string[]
}

/** Creates writes that make the next crawl fetch damaged data again. Call inside a transaction of the caller's. */
export function createCatalogRepair(db: Db) {
  const invalidateAnswer = db.prepare(
    "UPDATE catalog_answer SET owner_sha = x'', etag = NULL, sha256 = x'' WHERE path = ?",
  )
  const invalidateLinking = db.prepare(
    `UPDATE catalog_answer SET owner_sha = x'' WHERE path IN (
       SELECT a.path FROM catalog_answer a, json_each(a.links) AS link
       WHERE json_extract(link.value, '$.digest') = ?)`,
  )
  const dropFetchedLinking = db.prepare(
    `DELETE FROM catalog_fetched WHERE path IN (
       SELECT f.path FROM catalog_fetched f, json_each(f.links) AS link
       WHERE json_extract(link.value, '$.digest') = ?)`,
  )
  const dropDocument = db.prepare('DELETE FROM catalog_document WHERE digest = ?')
  const dropChunks = db.prepare('DELETE FROM catalog_chunk WHERE digest = ?')
  const dropPages = db.prepare('DELETE FROM catalog_page WHERE list IN (SELECT id FROM catalog_list WHERE path = ?)')
  return {
    /**
     * Deletes the validators and digests of damaged answers and lists, so that nothing confirms them; they stay until
     * they are replaced. A damaged document is removed, since its digest is its name.
     */
    invalidate({ answers, lists, documents }: CatalogDamage): void {
      for (const path of answers) invalidateAnswer.run(path)
      for (const path of lists) dropPages.run(path)
      for (const digest of documents) {
        invalidateLinking.run(digest)
        dropFetchedLinking.run(digest)
        dropDocument.run(digest)
        dropChunks.run(digest)
      }
    },
  }
}
