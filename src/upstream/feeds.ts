import type { DocumentAnswer, Session } from './http/session.ts'

/** A whole feed document, conditionally on what is stored. */
export function fetchFeed(
  session: Session,
  path: string,
  stored: { etag: string | null; lastModified: string | null } | null,
  maxBytes: number,
): Promise<DocumentAnswer> {
  return session.fetchDocument(path, { maxBytes, stored, gzip: true })
}
