import type { DocumentAnswer } from './http/document.ts'
import type { Session } from './http/session.ts'

/** Fetches a whole feed document, conditionally on the stored validators. */
export function fetchFeed(
  session: Session,
  path: string,
  stored: { etag: string | null; lastModified: string | null } | null,
  maxBytes: number,
): Promise<DocumentAnswer> {
  return session.fetchDocument(path, { maxBytes, stored, gzip: true })
}
