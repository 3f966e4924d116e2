import { MirrorError } from '../errors.ts'
import type { DocumentKind } from '../resources.ts'
import type { DocumentSink } from '../store/catalog-sink.ts'
import type { CatalogContext } from './catalog-context.ts'
import type { Task } from './catalog-tasks.ts'
import { type KindCheck, createKindCheck } from './document-kind.ts'

/** Keeps a document that is in memory. Returns its digest. */
export async function keepDocument(
  { store, config, now }: CatalogContext,
  body: Buffer,
  type: string,
): Promise<string> {
  return store.gathered(config.catalog.concurrency, () => {
    const sink = store.openDocument()
    if (sink.write(body)) sink.flush()
    return sink.end(type, Math.floor(now() / 1000)).digest
  })
}

/**
 * Fetches a document, checks that it is what it claims to be, and keeps it by its digest; never more than a chunk of
 * it is in memory. Throws `upstream_*`; nothing is kept then.
 */
export async function takeDocument(
  context: CatalogContext,
  url: string,
  { document, path }: Task,
): Promise<string> {
  const { store, config, now } = context
  const incoming = createIncoming(context, document ?? 'text')
  try {
    await context.fetchDocument(url, incoming)
    const { sink, check } = incoming.current()
    const verdict = check.end()
    if ('refused' in verdict) throw new MirrorError('upstream_shape', `${path}: ${verdict.refused}`)
    const changed = Math.floor(now() / 1000)
    const end = (): string => sink.end(verdict.type, changed).digest
    return await store.gathered(config.catalog.concurrency, end)
  } catch (error) {
    await incoming.abort()
    throw error
  }
}

function createIncoming({ store }: CatalogContext, kind: DocumentKind) {
  let current: { sink: DocumentSink; check: KindCheck } | null = null
  const abort = async (): Promise<void> => {
    const { sink } = current ?? {}
    if (sink !== undefined) await store.exclusive(() => sink.abort())
    current = null
  }
  return {
    async begin() {
      await abort()
      current = { sink: store.openDocument(), check: createKindCheck(kind) }
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
