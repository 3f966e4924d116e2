import { createHash } from 'node:crypto'
import { readHttpDate } from '../../base/time.ts'
import { sha256Of } from '../../base/digest.ts'
import { type Document, type UpstreamState, nextChanged } from '../../store/feeds/documents.ts'
import { documentMember } from '../../store/database/gzip.ts'
import { deflate } from '../../archive/zip/member.ts'
import type { SyncContext } from '../context.ts'
import { countEntries } from './entries.ts'

/** A document ready to be stored, with upstream's validators for it. */
export interface PreparedDocument {
  document: Document
  state: UpstreamState
}

/** Prepares a fetched document for storage. Null when its bytes and upstream's validators equal the stored ones. */
export function prepareDocument(
  context: SyncContext,
  path: string,
  stored: Document | null,
  answer: {
    body: Buffer
    gzip: Buffer | null
    meta: { etag: string | null; lastModified: string | null }
  },
): PreparedDocument | null {
  const { body, gzip, meta } = answer
  const entries = countEntries(path, body)
  const sha256 = sha256Of(body)
  const state = { etag: meta.etag, lastModified: meta.lastModified, body: null }
  if (stored !== null && stored.body !== null && stored.sha256.equals(sha256)) {
    const known = context.store.feeds.readUpstreamState(path)
    const same = known?.etag === state.etag && known.lastModified === state.lastModified
    const repaired = {
      ...stored,
      body: documentMember(body, gzip, deflate),
      size: body.length,
      entries,
    }
    return same && context.kind !== 'repair' ? null : { document: repaired, state }
  }
  const upstream = readHttpDate(meta.lastModified)
  const seconds = upstream === null ? null : Math.floor(upstream / 1000)
  const changed = nextChanged(stored?.changed ?? null, seconds, context.now())
  const packed = documentMember(body, gzip, deflate)
  const document = { path, source: 'feeds', body: packed, size: body.length } as const
  return { document: { ...document, sha256, changed, entries }, state }
}

/** Returns the entry of an extra feed that upstream does not have, so that the mirror answers 404 with the reason. */
export function absent({ now }: SyncContext, path: string): PreparedDocument {
  const changed = nextChanged(null, null, now())
  const sha256 = sha256Of('')
  const document = {
    path,
    source: 'feeds',
    body: null,
    size: 0,
    sha256,
    changed,
    entries: 0,
  } as const
  return { document, state: { etag: null, lastModified: null, body: null } }
}

/** Returns the snapshot id of the feeds: a digest of paths and contents, hex. The documents must be in path order. */
export function digestOfFeeds(
  documents: readonly (Pick<Document, 'path' | 'sha256'> & { present: boolean })[],
): string {
  const digest = createHash('sha256')
  for (const { path, sha256, present } of documents) {
    digest.update(`${path}\0${present ? sha256.toString('hex') : 'absent'}\n`)
  }
  return digest.digest('hex')
}
