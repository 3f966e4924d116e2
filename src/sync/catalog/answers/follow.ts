import { MirrorError, messageOf } from '../../../base/errors.ts'
import { counted } from '../../../base/text.ts'
import { LeavingError } from '../../../upstream/http/destinations.ts'
import { isExpiredUrl, isTransient } from '../../../upstream/http/errors.ts'
import { hasEnd } from '../../../upstream/http/response.ts'
import type { CatalogContext } from '../context.ts'
import { isFatal } from '../lists/walk.ts'
import { type LinkedDocument, soundContent, storeDocument, streamDocument } from './documents.ts'
import { contentOfFile } from './file-check.ts'
import { isContractPath, isServiceHost } from './links.ts'
import type { Task } from './plan.ts'

/** What the links of an answer gave. */
interface Followed {
  /** URL → the document of the kind that it led to. */
  readonly documents: ReadonlyMap<string, LinkedDocument>
  /** URL → why it gave none; not of links to the service's own paths, which are not followed. */
  readonly failures: ReadonlyMap<string, MirrorError>
  /** Number of links that were not followed after too many failures. */
  readonly rest: number
}

/** Failed links of one answer after which the others are not followed: what is no link to a document may be many. */
const MAX_FAILURES = 10

/** Follows links, each once. What leads to the service's own host is asked with the credential, or not at all. */
export async function followLinks(context: CatalogContext, task: Task, urls: Iterable<string>): Promise<Followed> {
  const documents = new Map<string, LinkedDocument>()
  const failures = new Map<string, MirrorError>()
  const all = new Set(urls)
  let asked = 0
  for (const url of all) {
    if (failures.size === MAX_FAILURES) break
    asked++
    try {
      const document = await followLink(context, task, url)
      if (document !== null) documents.set(url, document)
    } catch (error) {
      context.session.signal.throwIfAborted()
      if (!(error instanceof MirrorError) || isFatal(error)) throw error
      failures.set(url, error)
    }
  }
  return { documents, failures, rest: all.size - asked }
}

/** Returns the document behind a URL; null for a path of the service that is not followed. Throws `upstream_*`. */
export async function followLink(context: CatalogContext, task: Task, text: string): Promise<LinkedDocument | null> {
  const { config } = context
  const url = URL.parse(text)
  if (url === null || url.username !== '' || url.password !== '' || !isServiceHost(config, url))
    return streamDocument(context, text, task) // refuses what is no URL, and one with a credential
  const isAsked = url.origin === new URL(context.sessionOf(task.surface).root).origin
  if (!isAsked || isContractPath(url, config.upstream.apiRoot)) return null
  return ownDocument(context, task, url)
}

/** Fetches a document from the service's own host, with the credential. */
async function ownDocument(context: CatalogContext, task: Task, url: URL): Promise<LinkedDocument> {
  const session = context.sessionOf(task.surface)
  const { maxRecordBytes: maxBytes } = context.config.upstream
  try {
    const answer = await session.fetchDocument(url, { maxBytes, gzip: true })
    if (answer.status === 304) throw new MirrorError('internal', 'nothing was asked conditionally')
    const { body, meta } = answer
    const content = contentOfFile(task.document ?? 'text', body, maxBytes, (inner) =>
      session.secrets.check(inner, task.path),
    )
    const sound = soundContent(task.path, content, hasEnd(meta))
    return await storeDocument(context, body, meta.contentType, sound)
  } catch (error) {
    if (error instanceof LeavingError) return streamDocument(context, error.location, task)
    throw error
  }
}

/**
 * Returns the failure that keeps an answer from being stored, by what else its links gave; null: those that failed stay
 * as they are. A host that gave one document and fails at another is asked again by the next run, unless it has none (404). `mayRenew`:
 * whether the service may still be asked for new URLs.
 */
export function linkFailure({ documents, failures }: Followed, mayRenew: boolean): MirrorError | null {
  const all = [...failures.values()]
  const expired = all.find(isExpiredUrl) ?? null
  if (expired !== null && mayRenew) return expired
  if (documents.size === 0) return expired ?? all.find(isTransient) ?? all[0] ?? null
  const hosts = new Set([...documents.keys()].map(hostOf))
  const kept = [...failures].find(([url, error]) => hosts.has(hostOf(url)) && !isGone(error))
  return kept?.[1] ?? null
}

function isGone({ code }: MirrorError): boolean {
  return code === 'upstream_not_found'
}

/** Returns whether a failure may pass: with a new URL, or later. */
export function isPassing(failure: MirrorError): boolean {
  return isExpiredUrl(failure) || isTransient(failure)
}

function hostOf(url: string): string {
  return URL.parse(url)?.host ?? ''
}

/** Returns the links that gave no document in words, without what may be a signature. */
export function describeFailures({ failures, rest }: Followed): string[] {
  const reasons = [...failures.values()].map((error) => messageOf(error))
  if (rest === 0) return reasons
  const others = counted(rest, 'further link was', 'further links were')
  return [...reasons, `after ${MAX_FAILURES} of these ${others} not followed`]
}
