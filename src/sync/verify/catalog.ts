import { createHash } from 'node:crypto'
import { sha256Of } from '../../base/digest.ts'
import { type CatalogDocument, chunkContent } from '../../store/catalog/documents.ts'
import { contentOf } from '../../store/database/gzip.ts'
import type { Reads } from '../../store/reads.ts'
import { digestOfCatalog } from '../catalog/digest.ts'

/** Findings of a verification of the catalog; empty lists: no damage. */
export interface CatalogReport {
  /** Canonical paths of answers and lists whose bytes differ from the stored digests. */
  answers: string[]
  lists: string[]
  /** Digests of documents that are damaged, or linked but missing. */
  documents: string[]
  /** Numbers of checked answers, entries and documents. */
  checked: { answers: number; entries: number; documents: number }
}

/** A verification without checks and findings. */
export const NO_CATALOG: CatalogReport = {
  answers: [],
  lists: [],
  documents: [],
  checked: { answers: 0, entries: 0, documents: 0 },
}

/**
 * Reads every answer, item and document once and checks it against its digest. Calls `disagree` for a source that
 * differs from its published snapshot.
 */
export function verifyCatalog(reads: Reads, disagree: (what: string) => void): CatalogReport {
  const report: CatalogReport = {
    answers: [],
    lists: [],
    documents: [],
    checked: { answers: 0, entries: 0, documents: 0 },
  }
  const named = new Set<string>()
  for (const { path } of [...reads.catalog.eachStoredAnswer()]) {
    report.checked.answers++
    if (!isAnswerSound(reads, path, named)) report.answers.push(path)
  }
  for (const { id, path, entries } of reads.catalog.listLists()) {
    let count = 0
    let sound = true
    for (const { body, sha } of reads.catalog.eachEntry(id)) {
      count++
      sound &&= sha256Of(body).subarray(0, sha.length).equals(sha)
    }
    report.checked.entries += count
    if (!sound || count !== entries) report.lists.push(path)
  }
  for (const digest of named) {
    report.checked.documents++
    if (!isDocumentSound(reads, digest)) report.documents.push(digest)
  }
  for (const source of ['catalog', 'identity'] as const) {
    const published = reads.snapshots.readSnapshot(source)?.id
    if (published !== undefined && published !== digestOfCatalog(reads, source))
      disagree(`the stored ${source} differs from the published snapshot`)
  }
  return report
}

function isAnswerSound(reads: Reads, path: string, named: Set<string>): boolean {
  try {
    const answer = reads.catalog.readAnswer(path)
    if (answer === null) return false
    for (const { digest } of answer.links) named.add(digest)
    if (answer.body === null) return true // a 404, or a document that is the answer itself
    const content = contentOf(answer.body, answer.size)
    return sha256Of(content).equals(answer.sha256)
  } catch {
    return false // bytes that do not inflate or parse are the finding
  }
}

function isDocumentSound(reads: Reads, digest: string): boolean {
  const document = reads.catalog.readDocument(digest)
  return document !== null && digestOf(reads, document) === digest
}

function digestOf(reads: Reads, { digest, size }: CatalogDocument): string | null {
  const content = createHash('sha256')
  let bytes = 0
  try {
    for (let number = 0; ; number++) {
      const chunk = reads.catalog.readChunk(digest, number)
      if (chunk === null) break
      const part = chunkContent(chunk)
      content.update(part)
      bytes += part.length
    }
  } catch {
    return null // a damaged gzip member does not inflate: this is the finding
  }
  return bytes === size ? content.digest('hex') : null
}
