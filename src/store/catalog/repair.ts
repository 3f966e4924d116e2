import type { Db } from '../database/open.ts'

/** What of the catalog is not to be believed any more. */
interface CatalogDamage {
  /** Canonical paths of answers. */
  answers: readonly string[]
  /** Canonical paths of lists. */
  lists: readonly string[]
  /** Digests of documents. */
  documents: readonly string[]
}

/** Makes the next crawl fetch damaged things again. Call inside a transaction of the caller's. */
export function createCatalogRepair(db: Db) {
  const doubtAnswer = db.prepare(
    "UPDATE catalog_answer SET owner_sha = x'', etag = NULL, sha256 = x'' WHERE path = ?",
  )
  const doubtNaming = db.prepare(
    `UPDATE catalog_answer SET owner_sha = x'' WHERE path IN (
       SELECT a.path FROM catalog_answer a, json_each(a.links) AS link
       WHERE json_extract(link.value, '$.digest') = ?)`,
  )
  const dropNaming = db.prepare(
    `DELETE FROM catalog_fetched WHERE path IN (
       SELECT f.path FROM catalog_fetched f, json_each(f.links) AS link
       WHERE json_extract(link.value, '$.digest') = ?)`,
  )
  const dropDocument = db.prepare('DELETE FROM catalog_document WHERE digest = ?')
  const dropChunks = db.prepare('DELETE FROM catalog_chunk WHERE digest = ?')
  const dropPages = db.prepare(
    'DELETE FROM catalog_page WHERE list IN (SELECT id FROM catalog_list WHERE path = ?)',
  )
  return {
    /** Without a validator or a digest nothing confirms them. Damaged answers and lists stay until they are replaced; a damaged document must go, for its digest is its name. */
    invalidateCatalog({ answers, lists, documents }: CatalogDamage): void {
      for (const path of answers) doubtAnswer.run(path)
      for (const path of lists) dropPages.run(path)
      for (const digest of documents) {
        doubtNaming.run(digest)
        dropNaming.run(digest)
        dropDocument.run(digest)
        dropChunks.run(digest)
      }
    },
  }
}
