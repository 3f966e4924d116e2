import { MirrorError } from '../../../base/errors.ts'
import type { CatalogLink } from '../../../store/catalog/answers.ts'
import type { DocumentSink } from '../../../store/catalog/documents.ts'
import { MAX_ARTIFACT_BYTES } from '../../../upstream/artifacts.ts'
import type { CatalogContext } from '../context.ts'
import type { Task } from './plan.ts'
import { type DocumentContent, servedType, showsEnd } from './document-type.ts'
import { type Checked, type FileCheck, createFileCheck } from './file-check.ts'

/** A link from an answer to a stored document. */
export type LinkedDocument = Omit<CatalogLink, 'at'>

/** Stores a document from memory; `given` is the Content-Type that it was sent with. Returns the link to it. */
export async function storeDocument(
  { store, keep, now }: CatalogContext,
  body: Buffer,
  given: string,
  content: DocumentContent,
): Promise<LinkedDocument> {
  const sink = store.catalog.openDocument()
  sink.write(body)
  await sink.pack(true)
  return keep(() => finishDocument(sink, given, content, Math.floor(now() / 1000)))
}

/** Finishes a document; the link contains a media type only where it differs from the type stored with the document. */
function finishDocument(sink: DocumentSink, given: string, content: DocumentContent, changed: number): LinkedDocument {
  const { digest, type: stored } = sink.end(content.type, changed)
  const type = servedType(given, content)
  return type === stored ? { digest } : { digest, type }
}

/**
 * Fetches a document, checks its kind and stores it by its digest, with at most one chunk in memory. Throws
 * `upstream_*`, in which case nothing is stored.
 */
export async function streamDocument(context: CatalogContext, url: string, task: Task): Promise<LinkedDocument> {
  const { keep, now } = context
  const { path } = task
  const incoming = createIncoming(context, task)
  try {
    await context.fetchDocument(url, incoming)
    const { sink, check, given, isEnded } = incoming.current()
    const checked = soundContent(path, await check.end(), isEnded)
    await sink.pack(true)
    const changed = Math.floor(now() / 1000)
    const end = (): LinkedDocument => finishDocument(sink, given, checked, changed)
    return await keep(end)
  } catch (error) {
    await incoming.abort()
    throw error
  }
}

/**
 * Returns the content of a document that is of its kind and has its end. `isEnded`: the response showed where its body ends. Throws
 * `upstream_shape`.
 */
export function soundContent(path: string, checked: Checked, isEnded: boolean): DocumentContent {
  if ('refused' in checked) throw new MirrorError('upstream_shape', `${path}: ${checked.refused}`)
  if (isEnded || showsEnd(checked)) return checked
  const message = `${path}: it may be cut off: the response has no Content-Length and no chunks, and the document does not show its end`
  throw new MirrorError('upstream_shape', message)
}

function createIncoming(context: CatalogContext, { document, surface, path }: Task) {
  const { store } = context
  const { secrets } = context.sessionOf(surface)
  const { artifactBytes: maxBytes = MAX_ARTIFACT_BYTES } = context.limits
  let current: { sink: DocumentSink; check: FileCheck; given: string; isEnded: boolean } | null = null
  const abort = async (): Promise<void> => {
    const { sink } = current ?? {}
    if (sink !== undefined) await store.exclusive(() => sink.abort())
    current = null
  }
  const packChunk = async (sink: DocumentSink): Promise<void> => {
    await sink.pack()
    await store.exclusive(() => sink.flush())
  }
  return {
    async begin(given: string, isEnded: boolean) {
      await abort()
      const inflating = { maxBytes, search: secrets.stream(path), place: path }
      const check = createFileCheck(document ?? 'text', inflating)
      current = { sink: store.catalog.openDocument(), check, given, isEnded }
    },
    write(bytes: Buffer): Promise<void> | undefined {
      if (current === null) return undefined
      const { sink, check } = current
      const checking = check.write(bytes)
      const isFull = sink.write(bytes)
      if (checking !== undefined) return checking.then(() => (isFull ? packChunk(sink) : undefined))
      return isFull ? packChunk(sink) : undefined
    },
    current() {
      if (current === null)
        throw new MirrorError('internal', 'a document was finished before its first byte was written')
      return current
    },
    abort,
  }
}
