import type { DocumentAnswer, Session } from './http/session.ts'

/** Public feeds besides OSV that every deployment has (spec section 4, "Public feeds"). */
export const PATCH_FEED = '/external/patch_feed'
export const SYSTEM_MATRIX = '/external/globals/sys_matrix'

/** A whole feed document, conditionally on what is stored. */
export function fetchFeed(
  session: Session,
  path: string,
  stored: { etag: string | null; lastModified: string | null } | null,
  maxBytes: number,
): Promise<DocumentAnswer> {
  return session.fetchDocument(path, { maxBytes, stored, gzip: true })
}
