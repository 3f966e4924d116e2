import { sha256Of } from '../../../core/digest.ts'
import { MirrorError, messageOf } from '../../../core/errors.ts'
import { type JsonPath, locate } from '../../../json/slices.ts'
import type { CatalogLink, StoredAnswer } from '../../../store/catalog/answers.ts'
import type { FetchedAnswer } from '../../../store/catalog/answer-writes.ts'
import { packContent, smallMember } from '../../../store/database/gzip.ts'
import { LeavingError } from '../../../upstream/http/destinations.ts'
import { isExpiredUrl, refusalError, statusOf } from '../../../upstream/http/errors.ts'
import { deflate } from '../../../zip/member.ts'
import type { CatalogContext } from '../context.ts'
import { type LinkedDocument, storeDocument, streamDocument, createKindCheck } from './documents.ts'
import { mentionsOf } from '../scope/references.ts'
import { withoutSecrets } from '../lists/items.ts'
import { type Task, mustExist } from './plan.ts'
import { type DocumentContent, servedType } from './document-type.ts'
import { refuseCostly } from '../../../json/limits.ts'
import { jsonTextOf } from '../../../json/objects.ts'

/**
 * Fetches the answer of one path and the documents that it links to. `answer` is null when upstream has nothing new.
 * Throws `upstream_*` when it fails; nothing is stored then.
 */
export async function fetchAnswer(
  context: CatalogContext,
  task: Task,
  stored: StoredAnswer | null,
): Promise<FetchedOrConfirmed> {
  let at = context.now()
  const answer = await buildAnswer(context, task, stored, (date) => (at = date))
  return { answer: answer === null ? null : { ...answer, confirmedAt: at }, at }
}

/** An answer, null when it equals the stored one, and upstream's date, unix milliseconds. */
interface FetchedOrConfirmed {
  answer: FetchedAnswer | null
  at: number
}

async function buildAnswer(
  context: CatalogContext,
  task: Task,
  stored: StoredAnswer | null,
  onDate: (at: number) => void,
): Promise<FetchedAnswer | null> {
  const answer = await ask(context, task, stored, onDate)
  if (answer === 'unchanged') return null
  if (answer === 404 || answer === 204)
    return { ...blank(task), status: answer, sha256: sha256Of(Buffer.alloc(0)) }
  if (task.document === null && 'body' in answer) {
    const item = itemAnswer(task, answer.body, answer.etag)
    return stored?.status === 200 && stored.sha256.equals(item.sha256) ? null : item
  }
  try {
    return await documentAnswer(context, task, answer)
  } catch (error) {
    if (!isExpiredUrl(error)) throw error
    const again = await ask(context, task, null, onDate) // for a new pre-signed URL
    if (typeof again !== 'object') throw error
    return documentAnswer(context, task, again)
  }
}

/** Returns the answer of an artifact path, with the documents behind its pre-signed URLs. */
function documentAnswer(
  context: CatalogContext,
  task: Task,
  answer: OkResponse | { redirectedTo: string },
): Promise<FetchedAnswer> {
  if ('redirectedTo' in answer) return redirectedDocument(context, task, answer.redirectedTo)
  return artifactAnswer(context, task, answer)
}

/** A 200 response; `type` is its Content-Type, empty when there is none. */
interface OkResponse {
  body: Buffer
  etag: string | null
  type: string
}

async function ask(
  context: CatalogContext,
  task: Task,
  stored: StoredAnswer | null,
  onDate: (at: number) => void,
): Promise<OkResponse | { redirectedTo: string } | 'unchanged' | 404 | 204> {
  const session = context.sessionOf(task.surface)
  const known =
    stored?.status === 200 && stored.etag !== null && task.document === null && !context.full
  try {
    const answer = await session.fetchDocument(context.relative(task, task.path), {
      maxBytes: context.config.upstream.maxRecordBytes,
      stored: known ? { etag: stored.etag, lastModified: null } : null,
      gzip: true,
    })
    onDate(answer.meta.date)
    if (answer.status === 304) return 'unchanged'
    return { body: answer.body, etag: answer.meta.etag, type: answer.meta.contentType }
  } catch (error) {
    if (!(error instanceof MirrorError)) throw error
    if (error.code === 'upstream_not_found') return 404
    if (statusOf(error) === 204 && !mustExist(task)) return 204
    if (error instanceof LeavingError && task.document !== null)
      return { redirectedTo: error.location }
    const status = statusOf(error)
    const isRefused = error.code === 'upstream_auth' && (status === 401 || status === 403)
    if (!isRefused || task.surface !== 'catalog') throw error
    if (context.config.catalog.sendCredential) throw error
    const hint = 'the package catalog requires a credential: set catalog.sendCredential'
    throw refusalError(status, `${error.message}; ${hint}`)
  }
}

/** Returns the answer of an artifact path that redirects to a pre-signed URL: the document there. */
async function redirectedDocument(
  context: CatalogContext,
  task: Task,
  url: string,
): Promise<FetchedAnswer> {
  const document = await streamDocument(context, url, task)
  const sha256 = Buffer.from(document.digest, 'hex')
  return { ...blank(task), status: 200, sha256, links: [{ at: [], ...document }] }
}

function blank({
  canonical,
  resource,
  owner,
  ownerSha,
}: Task): Omit<FetchedAnswer, 'status' | 'sha256'> {
  const rest = { body: null, size: 0, etag: null, links: [], mentions: [], confirmedAt: null }
  return { path: canonical, resource, owner, ownerSha, ...rest }
}

function itemAnswer(task: Task, body: Buffer, etag: string | null): FetchedAnswer {
  const value = parse(task.path, body)
  const clean = task.secrets ? withoutSecrets(body, task.path) : body
  const packed = packContent(clean, deflate)
  return { ...jsonAnswer(task, clean, packed), etag, mentions: mentionsOf(value) }
}

function jsonAnswer(task: Task, body: Buffer, packed: Buffer): FetchedAnswer {
  return { ...blank(task), status: 200, body: packed, size: body.length, sha256: sha256Of(body) }
}

/** Returns the answer of an artifact path: JSON that links to documents by URL, or the document itself. */
async function artifactAnswer(
  context: CatalogContext,
  task: Task,
  given: OkResponse,
): Promise<FetchedAnswer> {
  const { body, type } = given
  const check = createKindCheck(task.document ?? 'text')
  check.write(body)
  const checked = check.end()
  const content = 'refused' in checked ? null : checked
  if (content !== null && task.document !== 'text')
    return inlineDocument(context, task, given, content)
  const json = readJson(body)
  if (json === null && content !== null) return inlineDocument(context, task, given, content)
  if (json === null) {
    const why = 'refused' in checked ? checked.refused : 'it is not JSON'
    throw new MirrorError('upstream_shape', `${task.path}: ${why}`)
  }
  const urls = urlsOf(json.value, [])
  // JSON without URLs is served as application/json; with another media type it is stored as a document, which has
  // its own type.
  if (urls.length === 0 && content !== null && servedType(type, content) !== content.type)
    return inlineDocument(context, task, given, content)
  const documents = new Map<string, LinkedDocument>()
  for (const { url } of urls) {
    if (!documents.has(url)) documents.set(url, await streamDocument(context, url, task))
  }
  const links = urls.map(({ at, url }) => ({ at, ...(documents.get(url) ?? { digest: '' }) }))
  const stored = withoutUrls(body, links)
  const packed = smallMember(stored) ?? packContent(stored, deflate)
  return { ...jsonAnswer(task, stored, packed), links }
}

async function inlineDocument(
  context: CatalogContext,
  task: Task,
  { body, type }: OkResponse,
  content: DocumentContent,
): Promise<FetchedAnswer> {
  const document = await storeDocument(context, body, type, content)
  const sha256 = Buffer.from(document.digest, 'hex')
  const links = [{ at: [], ...document }]
  return { ...blank(task), status: 200, size: body.length, sha256, links }
}

/**
 * Returns the answer as it is stored: each pre-signed URL, which expires, is replaced with the digest of its
 * document.
 */
function withoutUrls(body: Buffer, links: readonly CatalogLink[]): Buffer {
  const places = links.map(({ at, digest }) => ({ slice: locate(body, at), digest }))
  const parts: Buffer[] = []
  let from = 0
  for (const { slice, digest } of places.sort(
    (a, b) => (a.slice?.start ?? 0) - (b.slice?.start ?? 0),
  )) {
    if (slice === null) continue
    parts.push(body.subarray(from, slice.start), Buffer.from(JSON.stringify(`sha256:${digest}`)))
    from = slice.end
  }
  return Buffer.concat([...parts, body.subarray(from)])
}

const MAX_URLS = 1000

/**
 * Returns every string that is an absolute URL of any scheme, so that a URL that must not be followed is refused and
 * not ignored.
 */
function urlsOf(value: unknown, at: JsonPath): { at: JsonPath; url: string }[] {
  if (typeof value === 'string')
    return /^([a-z][a-z\d+.-]*:\/|(file|data|javascript):)/i.test(value) ? [{ at, url: value }] : []
  if (typeof value !== 'object' || value === null || at.length > 8) return []
  const inner = Array.isArray(value)
    ? value.flatMap((item: unknown, place) => urlsOf(item, [...at, place]))
    : Object.entries(value).flatMap(([name, item]) => urlsOf(item, [...at, name]))
  if (inner.length > MAX_URLS)
    throw new MirrorError('upstream_shape', `an answer links to more than ${MAX_URLS} documents`)
  return inner
}

/** Returns the value of a JSON text; null: it is none, or must not be parsed. */
function readJson(body: Buffer): { value: unknown } | null {
  if (refuseCostly(body) !== null) return null
  try {
    return { value: JSON.parse(jsonTextOf(body)) }
  } catch {
    return null
  }
}

function parse(path: string, body: Buffer): unknown {
  const costly = refuseCostly(body)
  if (costly !== null) throw new MirrorError('upstream_shape', `${path}: ${costly}`)
  try {
    return JSON.parse(jsonTextOf(body))
  } catch (error) {
    const message = `${path}: not JSON (${messageOf(error).slice(0, 100)})`
    throw new MirrorError('upstream_shape', message, { cause: error })
  }
}
