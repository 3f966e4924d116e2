import { MirrorError } from '../errors.ts'
import type { DocumentKind } from '../resources.ts'
import type { CatalogLink } from '../store/catalog-answers.ts'
import type { DocumentSink } from '../store/catalog-sink.ts'
import type { CatalogContext } from './catalog-context.ts'
import type { Task } from './catalog-tasks.ts'
import { type KindCheck, createKindCheck } from './document-kind.ts'
import { type DocumentContent, servedType } from './document-type.ts'

/** A stored document as an answer names it. */
export type LinkedDocument = Omit<CatalogLink, 'at'>

/** Keeps a document that is in memory; `given` is the Content-Type it came with. Returns what names it. */
export async function storeDocument(
  { store, config, now }: CatalogContext,
  body: Buffer,
  given: string,
  content: DocumentContent,
): Promise<LinkedDocument> {
  return store.gathered(config.catalog.concurrency, () => {
    const sink = store.openDocument()
    if (sink.write(body)) sink.flush()
    return ended(sink, given, content, Math.floor(now() / 1000))
  })
}

/** Keeps what was written; the answer names a media type where it is not the one that is stored with the document. */
function ended(
  sink: DocumentSink,
  given: string,
  content: DocumentContent,
  changed: number,
): LinkedDocument {
  const { digest, type: stored } = sink.end(content.type, changed)
  const type = servedType(given, content)
  return type === stored ? { digest } : { digest, type }
}

/**
 * Fetches a document, checks that it is what it claims to be, and keeps it by its digest; never more than a chunk of
 * it is in memory. Throws `upstream_*`; nothing is kept then.
 */
export async function streamDocument(
  context: CatalogContext,
  url: string,
  { document, path }: Task,
): Promise<LinkedDocument> {
  const { store, config, now } = context
  const incoming = createIncoming(context, document ?? 'text')
  try {
    await context.fetchDocument(url, incoming)
    const { sink, check, given } = incoming.current()
    const verdict = check.end()
    if ('refused' in verdict) throw new MirrorError('upstream_shape', `${path}: ${verdict.refused}`)
    const changed = Math.floor(now() / 1000)
    const end = (): LinkedDocument => ended(sink, given, verdict, changed)
    return await store.gathered(config.catalog.concurrency, end)
  } catch (error) {
    await incoming.abort()
    throw error
  }
}

function createIncoming({ store }: CatalogContext, kind: DocumentKind) {
  let current: { sink: DocumentSink; check: KindCheck; given: string } | null = null
  const abort = async (): Promise<void> => {
    const { sink } = current ?? {}
    if (sink !== undefined) await store.exclusive(() => sink.abort())
    current = null
  }
  return {
    async begin(given: string) {
      await abort()
      current = { sink: store.openDocument(), check: createKindCheck(kind), given }
    },
    write(bytes: Buffer): Promise<void> | undefined {
      if (current === null) return undefined
      const { sink, check } = current
      check.write(bytes)
      return sink.write(bytes) ? store.exclusive(() => sink.flush()) : undefined
    },
    current() {
      if (current === null) throw new MirrorError('internal', 'a document ended before it began')
      return current
    },
    abort,
  }
}
