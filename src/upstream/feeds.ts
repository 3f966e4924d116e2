import { MirrorError } from '../base/errors.ts'
import type { DocumentAnswer } from './http/document.ts'
import type { Validators } from './http/response.ts'
import type { Session } from './http/session.ts'

/** Fetches a whole feed document, conditionally on the stored validators. */
export function fetchFeed(
  session: Session,
  path: string,
  stored: Validators | null,
  maxBytes: number,
): Promise<DocumentAnswer> {
  return atRoot(session, session.fetchDocument(path, { maxBytes, stored, gzip: true }))
}

/** Names the root in the error of a public document that every service has: the setting may be of another one. */
export function atRoot<T>({ root }: Pick<Session, 'root'>, answer: Promise<T>): Promise<T> {
  return answer.catch((error: unknown) => {
    if (!(error instanceof MirrorError) || error.code !== 'upstream_not_found') throw error
    const message = `${error.message}; is upstream.apiRoot (${root}) the root of the service?`
    throw new MirrorError('upstream_not_found', message, { cause: error })
  })
}
