import { createHash, hash } from 'node:crypto'
import { type CatalogDocument, chunkContent } from '../../store/catalog/documents.ts'
import { contentOf } from '../../store/database/gzip.ts'
import type { Reads } from '../../store/reads.ts'
import { digestOfCatalog } from '../catalog/publish.ts'

/** What a verification found wrong with the catalog; empty lists: nothing. */
export interface CatalogVerdict {
  /** Canonical paths of answers, and of lists, whose bytes are not the ones that were stored. */
  answers: string[]
  lists: string[]
  /** Digests of documents that are damaged, or named and not there. */
  documents: string[]
  /** How much was looked at. */
  checked: { answers: number; entries: number; documents: number }
}

/** Nothing looked at, nothing found. */
export const NO_CATALOG: CatalogVerdict = {
  answers: [],
  lists: [],
  documents: [],
  checked: { answers: 0, entries: 0, documents: 0 },
}

/** Reads every answer, item and document once and checks it against its digest. `disagree` is told what was not published so. */
export function verifyCatalog(reads: Reads, disagree: (what: string) => void): CatalogVerdict {
  const verdict: CatalogVerdict = {
    answers: [],
    lists: [],
    documents: [],
    checked: { answers: 0, entries: 0, documents: 0 },
  }
  const named = new Set<string>()
  for (const { path } of [...reads.eachStoredAnswer()]) {
    verdict.checked.answers++
    if (!isAnswerSound(reads, path, named)) verdict.answers.push(path)
  }
  for (const { id, path, entries } of reads.listCatalogLists()) {
    let count = 0
    let sound = true
    for (const { body, sha } of reads.eachCatalogEntry(id)) {
      count++
      sound &&= hash('sha256', body, 'buffer').subarray(0, sha.length).equals(sha)
    }
    verdict.checked.entries += count
    if (!sound || count !== entries) verdict.lists.push(path)
  }
  for (const digest of named) {
    verdict.checked.documents++
    if (!isDocumentSound(reads, digest)) verdict.documents.push(digest)
  }
  for (const source of ['catalog', 'identity'] as const) {
    const published = reads.readSnapshot(source)?.id
    if (published !== undefined && published !== digestOfCatalog(reads, source))
      disagree(`what is held of the ${source} is not what was published`)
  }
  return verdict
}

function isAnswerSound(reads: Reads, path: string, named: Set<string>): boolean {
  try {
    const answer = reads.readCatalogAnswer(path)
    if (answer === null) return false
    for (const { digest } of answer.links) named.add(digest)
    if (answer.body === null) return true // a 404, or a document that stands for the answer itself
    const content = contentOf(answer.body, answer.size)
    return hash('sha256', content, 'buffer').equals(answer.sha256)
  } catch {
    return false // what does not inflate, or is no JSON any more, is the finding
  }
}

function isDocumentSound(reads: Reads, digest: string): boolean {
  const document = reads.readCatalogDocument(digest)
  return document !== null && digestOf(reads, document) === digest
}

function digestOf(reads: Reads, { digest, size }: CatalogDocument): string | null {
  const content = createHash('sha256')
  let bytes = 0
  try {
    for (let number = 0; ; number++) {
      const chunk = reads.readChunk(digest, number)
      if (chunk === null) break
      const part = chunkContent(chunk)
      content.update(part)
      bytes += part.length
    }
  } catch {
    return null // a damaged gzip member does not inflate: that is the finding
  }
  return bytes === size ? content.digest('hex') : null
}
