import { createHash } from 'node:crypto'
import { MirrorError, messageOf } from '../../../core/errors.ts'
import { type JsonPath, locate } from '../../../json/slices.ts'
import type { CatalogLink, StoredAnswer } from '../../../store/catalog/answers.ts'
import type { FetchedAnswer } from '../../../store/catalog/answer-writes.ts'
import { packContent } from '../../../store/database/gzip.ts'
import { LeavingError } from '../../../upstream/http/destinations.ts'
import { statusOf } from '../../../upstream/http/errors.ts'
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
 * Fetches what one path answers, and the documents that it names. Null: upstream has nothing new. Throws
 * `upstream_*` when it cannot be had; nothing is kept then.
 */
export async function fetchAnswer(
  context: CatalogContext,
  task: Task,
  held: StoredAnswer | null,
): Promise<Confirmed> {
  let at = context.now()
  const answer = await makeAnswer(context, task, held, (date) => (at = date))
  return { answer: answer === null ? null : { ...answer, confirmedAt: at }, at }
}

/** An answer, null where it is as it is stored, and upstream's date of it, unix milliseconds. */
interface Confirmed {
  answer: FetchedAnswer | null
  at: number
}

async function makeAnswer(
  context: CatalogContext,
  task: Task,
  held: StoredAnswer | null,
  dated: (at: number) => void,
): Promise<FetchedAnswer | null> {
  const answer = await ask(context, task, held, dated)
  if (answer === 'unchanged') return null
  if (answer === 404 || answer === 204)
    return { ...blank(task), status: answer, sha256: shaOf(Buffer.alloc(0)) }
  if ('elsewhere' in answer) return documentElsewhere(context, task, answer.elsewhere)
  if (task.document === null) {
    const item = itemAnswer(task, answer.body, answer.etag)
    return held?.status === 200 && held.sha256.equals(item.sha256) ? null : item
  }
  try {
    return await artifactAnswer(context, task, answer)
  } catch (error) {
    // A pre-signed URL that expired meanwhile: the same path gives another.
    if (![401, 403, 410].includes(statusOf(error) ?? 0)) throw error
    const again = await ask(context, task, null, dated)
    if (typeof again !== 'object') throw error
    if ('elsewhere' in again) return documentElsewhere(context, task, again.elsewhere)
    return artifactAnswer(context, task, again)
  }
}

/** What upstream answered with 200; `type` is its Content-Type, empty when there is none. */
interface Given {
  body: Buffer
  etag: string | null
  type: string
}

async function ask(
  context: CatalogContext,
  task: Task,
  held: StoredAnswer | null,
  dated: (at: number) => void,
): Promise<Given | { elsewhere: string } | 'unchanged' | 404 | 204> {
  const session = context.sessionOf(task.surface)
  const known =
    held?.status === 200 && held.etag !== null && task.document === null && !context.full
  try {
    const answer = await session.fetchDocument(context.relative(task, task.path), {
      maxBytes: context.config.upstream.maxRecordBytes,
      held: known ? { etag: held.etag, lastModified: null } : null,
      gzip: true,
    })
    dated(answer.meta.date)
    if (answer.status === 304) return 'unchanged'
    return { body: answer.body, etag: answer.meta.etag, type: answer.meta.contentType }
  } catch (error) {
    if (!(error instanceof MirrorError)) throw error
    if (error.code === 'upstream_not_found') return 404
    if (statusOf(error) === 204 && !mustExist(task)) return 204
    if (error instanceof LeavingError && task.document !== null)
      return { elsewhere: error.location }
    if (error.code !== 'upstream_auth' || task.surface !== 'catalog') throw error
    if (context.config.catalog.sendCredential) throw error
    const hint = 'the package catalog wants a credential: set catalog.sendCredential'
    throw new MirrorError('upstream_auth', `${error.message}; ${hint}`, { cause: error })
  }
}

/** An artifact path that redirects to a pre-signed URL: the document there is its answer. */
async function documentElsewhere(
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
  return { ...jsonAnswer(task, clean, []), etag, mentions: mentionsOf(value) }
}

function jsonAnswer(task: Task, body: Buffer, links: readonly CatalogLink[]): FetchedAnswer {
  const packed = packContent(body, deflate)
  return {
    ...blank(task),
    status: 200,
    body: packed,
    size: body.length,
    sha256: shaOf(body),
    links,
  }
}

/** An artifact path's answer: JSON that names documents by URL, or the document itself. */
async function artifactAnswer(
  context: CatalogContext,
  task: Task,
  given: Given,
): Promise<FetchedAnswer> {
  const { body, type } = given
  const check = createKindCheck(task.document ?? 'text')
  check.write(body)
  const verdict = check.end()
  const json = isJson(body)
  const content = 'refused' in verdict ? null : verdict
  if (content !== null && (task.document !== 'text' || !json))
    return inlineDocument(context, task, given, content)
  if (!json) {
    const why = 'refused' in verdict ? verdict.refused : 'it is not JSON'
    throw new MirrorError('upstream_shape', `${task.path}: ${why}`)
  }
  const urls = urlsOf(parse(task.path, body), [])
  // JSON that names nothing is served as application/json; with a type of its own it is kept as a document, which has one.
  if (urls.length === 0 && content !== null && servedType(type, content) !== content.type)
    return inlineDocument(context, task, given, content)
  const documents = new Map<string, LinkedDocument>()
  for (const { url } of urls) {
    if (!documents.has(url)) documents.set(url, await streamDocument(context, url, task))
  }
  const links = urls.map(({ at, url }) => ({ at, ...(documents.get(url) ?? { digest: '' }) }))
  return jsonAnswer(task, withoutUrls(body, links), links)
}

async function inlineDocument(
  context: CatalogContext,
  task: Task,
  { body, type }: Given,
  content: DocumentContent,
): Promise<FetchedAnswer> {
  const links = [{ at: [], ...(await storeDocument(context, body, type, content)) }]
  return { ...blank(task), status: 200, size: body.length, sha256: shaOf(body), links }
}

/** The answer as it is kept: a pre-signed URL expires, so each gives way to the digest of what it named. */
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

/** Every text that is an absolute URL, whatever its scheme: one that must not be followed is refused, not overlooked. */
function urlsOf(value: unknown, at: JsonPath): { at: JsonPath; url: string }[] {
  if (typeof value === 'string')
    return /^([a-z][a-z\d+.-]*:\/|(file|data|javascript):)/i.test(value) ? [{ at, url: value }] : []
  if (typeof value !== 'object' || value === null || at.length > 8) return []
  const inner = Array.isArray(value)
    ? value.flatMap((item: unknown, place) => urlsOf(item, [...at, place]))
    : Object.entries(value).flatMap(([name, item]) => urlsOf(item, [...at, name]))
  if (inner.length > MAX_URLS)
    throw new MirrorError('upstream_shape', `an answer names more than ${MAX_URLS} documents`)
  return inner
}

function isJson(body: Buffer): boolean {
  if (refuseCostly(body) !== null) return false
  try {
    JSON.parse(jsonTextOf(body))
    return true
  } catch {
    return false
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

function shaOf(bytes: Buffer): Buffer {
  return createHash('sha256').update(bytes).digest()
}
