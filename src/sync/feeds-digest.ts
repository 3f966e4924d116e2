import { createHash } from 'node:crypto'
import type { Document } from '../store/documents.ts'

/** The snapshot id of the other feeds: a digest over paths and contents, hex. The documents come in path order. */
export function digestOfFeeds(
  documents: readonly (Pick<Document, 'path' | 'sha256'> & { present: boolean })[],
): string {
  const digest = createHash('sha256')
  for (const { path, sha256, present } of documents) {
    digest.update(`${path}\0${present ? sha256.toString('hex') : 'absent'}\n`)
  }
  return digest.digest('hex')
}
