import { createHash } from 'node:crypto'
import { type Document, type UpstreamState, nextChanged } from '../store/documents.ts'
import { documentMember } from '../store/gzip.ts'
import { deflate } from '../zip/member.ts'
import type { SyncContext } from './context.ts'
import { countEntries } from './feed-shape.ts'

/** A document ready to be stored, with upstream's validators for it. */
export interface PreparedDocument {
  document: Document
  state: UpstreamState
}

/** Null when the bytes are the ones held and upstream's validators too. */
export function prepareDocument(
  context: SyncContext,
  path: string,
  held: Document | null,
  answer: {
    body: Buffer
    gzip: Buffer | null
    meta: { etag: string | null; lastModified: string | null }
  },
): PreparedDocument | null {
  const { body, gzip, meta } = answer
  const entries = countEntries(path, body)
  const sha256 = createHash('sha256').update(body).digest()
  const state = { etag: meta.etag, lastModified: meta.lastModified, body: null }
  if (held !== null && held.body !== null && held.sha256.equals(sha256)) {
    const known = context.store.readUpstreamState(path)
    const same = known?.etag === state.etag && known.lastModified === state.lastModified
    const repaired = {
      ...held,
      body: documentMember(body, gzip, deflate),
      size: body.length,
      entries,
    }
    return same && context.kind !== 'repair' ? null : { document: repaired, state }
  }
  const upstream = Date.parse(meta.lastModified ?? '')
  const seconds = Number.isNaN(upstream) ? null : Math.floor(upstream / 1000)
  const changed = nextChanged(held?.changed ?? null, seconds, context.now())
  const packed = documentMember(body, gzip, deflate)
  const document = { path, source: 'feeds', body: packed, size: body.length } as const
  return { document: { ...document, sha256, changed, entries }, state }
}

/** What is kept of an extra feed that upstream does not have: enough to answer 404 with the reason. */
export function absent({ now }: SyncContext, path: string): PreparedDocument {
  const changed = nextChanged(null, null, now())
  const sha256 = createHash('sha256').digest()
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
