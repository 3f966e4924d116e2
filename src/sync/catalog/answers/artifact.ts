import { sha256Of } from '../../../base/digest.ts'
import { MirrorError } from '../../../base/errors.ts'
import type { DocumentKind } from '../../../base/domain/resources.ts'
import { errorOfAnswer, isUnfinished } from '../../../base/json/forms/error-body.ts'
import { countListed, onePage } from '../../../base/json/forms/more-beyond.ts'
import { readText } from '../../../base/json/field-names.ts'
import { refuseCostly } from '../../../base/json/limits.ts'
import { isObject, jsonTextOf } from '../../../base/json/objects.ts'
import { locate } from '../../../base/json/slices.ts'
import type { CatalogLink } from '../../../store/catalog/answers.ts'
import { packContent, smallMember } from '../../../store/database/gzip.ts'
import type { CatalogContext } from '../context.ts'
import { type DocumentContent, jsonType, servedType } from './document-type.ts'
import { type LinkedDocument, soundContent, storeDocument } from './documents.ts'
import { gunzipped, isGzip, ofGzip } from './file-check.ts'
import { describeFailures, isPassing, linkFailure, followLink, followLinks } from './follow.ts'
import { type InlineDocument, findInline, hasDocumentLine, hasPatchText } from './inline.ts'
import { KIND_NAMES, createKindCheck, isDocumentValue } from './kind-check.ts'
import { linksIn } from './links.ts'
import { isKnownDocument, isTooLarge } from './other-documents.ts'
import type { Task } from './plan.ts'

/** A 200 response of an artifact path. */
export interface ArtifactResponse {
  readonly body: Buffer
  /** Its Content-Type; empty when there is none. */
  readonly type: string
  /** Whether it shows where its body ends. */
  readonly isEnded: boolean
  /** Its Location header. */
  readonly location: string | null
}

/** What an artifact path answers, as it is stored; `body` null: it is the document that the only link has. */
export interface ArtifactContent {
  readonly body: Buffer | null
  readonly size: number
  readonly sha256: Buffer
  readonly links: readonly CatalogLink[]
  /** The media type of the JSON; null: `application/json`. */
  readonly type?: string | null
  /** Why links of it gave no document; they stay as they are. */
  readonly left: readonly string[]
}

/**
 * Reads the answer of an artifact path. A document is recognised before a link is followed: the answer is one, contains
 * some at any depth, or links to some. `mayRenew`: whether a URL that has expired may be renewed. Throws `upstream_*`.
 */
export async function readArtifact(
  context: CatalogContext,
  task: Task,
  given: ArtifactResponse,
  mayRenew: boolean,
): Promise<ArtifactContent> {
  const read = readBody(context, task, given.body)
  if (read.content !== null) return wholeDocument(context, given, soundContent(task.path, read.content, given.isEnded))
  if (read.json === null && given.location !== null) return behindLocation(context, task, given.location)
  if (read.json === null) throw new MirrorError('upstream_shape', `${task.path}: ${read.refused}`)
  const { value } = read.json
  const kind = task.document ?? 'text'
  const found = kind === 'text' ? [] : findInline(kind, read.body, value)
  const type = jsonType(given.type)
  if (found.length > 0) return { ...(await inlineDocuments(context, read.body, found)), type }
  if (kind === 'text' && errorOfAnswer(value) === null) refuseMore(task.path, onePage(value, [], countListed(value)))
  if (kind === 'text' && hasPatchText(value)) return plainJson(context, task, given)
  refuseError(task, value)
  refuseOther(task, value)
  const linked = await linkedDocuments(context, task, read.body, value, mayRenew)
  if (linked !== null) return { ...linked, type }
  if (given.location !== null) return behindLocation(context, task, given.location)
  if (kind === 'text' && !isUnready(value)) return plainJson(context, task, given)
  throw notThereYet(task, value)
}

/** Throws `upstream_shape` for an answer that is an error: it is not stored, and nothing in it is followed. */
export function refuseError({ path }: Task, value: unknown): void {
  const said = errorOfAnswer(value)
  if (said === null) return
  throw new MirrorError('upstream_shape', `${path}: upstream answered 200 with an error: ${said}`)
}

/** Throws `upstream_shape` for an answer that says itself that there is more; null: it does not. */
export function refuseMore(path: string, more: string | null): void {
  if (more !== null) throw new MirrorError('upstream_shape', `${path}: ${more}`)
}

/** Throws `upstream_shape` for an answer that is another document: what it links to is its own content. */
function refuseOther({ path, document }: Task, value: unknown): void {
  const kind = document ?? 'text'
  const isOther = isObject(value) && isKnownDocument(value)
  if (!isOther && (kind === 'text' || !isTooLarge(value))) return
  const message = `${path}: it is another kind of document, not ${KIND_NAMES[kind]}; its links are not followed`
  throw new MirrorError('upstream_shape', message)
}

/** A body as far as it could be read. */
interface ReadBody {
  /** Without the gzip of a file. */
  readonly body: Buffer
  /** The document that it is; null: it is none. */
  readonly content: DocumentContent | null
  readonly json: { value: unknown } | null
  /** Why it is no document. */
  readonly refused: string
}

function readBody(context: CatalogContext, task: Task, given: Buffer): ReadBody {
  const { maxRecordBytes } = context.config.upstream
  const inner = isGzip(given) ? gunzipped(given, maxRecordBytes) : null
  const body = inner ?? given
  if (inner !== null) context.sessionOf(task.surface).secrets.check(inner, task.path)
  const kind = task.document ?? 'text'
  const check = createKindCheck(kind)
  check.write(body)
  const checked = check.end()
  const json = readJson(body)
  const isRefused = 'refused' in checked
  const content = isRefused ? linesOf(kind, json, body) : documentOf(kind, checked, json)
  return {
    body,
    content: content === null || inner === null ? content : gzipOf(content),
    json,
    refused: isRefused ? checked.refused : 'it is not JSON',
  }
}

function gzipOf(content: DocumentContent): DocumentContent {
  const whole = ofGzip(content)
  return 'refused' in whole ? content : whole
}

/** Returns the content where it is really that of a document, which one name in JSON does not prove. */
function documentOf(
  kind: DocumentKind,
  content: DocumentContent,
  json: { value: unknown } | null,
): DocumentContent | null {
  if (json === null) return content
  if (kind === 'text') return null
  return isObject(json.value) && isDocumentValue(kind, json.value) ? content : null
}

/** Returns the content of JSON lines of which not the first, but another is a document; null for anything else. */
function linesOf(kind: DocumentKind, json: { value: unknown } | null, body: Buffer): DocumentContent | null {
  if (json !== null || !hasDocumentLine(kind, body)) return null
  return { type: 'application/jsonl', form: 'lines', format: null, styled: false }
}

/** Returns the answer that is a document itself. */
async function wholeDocument(
  context: CatalogContext,
  { body, type }: ArtifactResponse,
  content: DocumentContent,
): Promise<ArtifactContent> {
  return ofDocument(await storeDocument(context, body, type, content), body.length)
}

function ofDocument(document: LinkedDocument, size: number): ArtifactContent {
  const sha256 = Buffer.from(document.digest, 'hex')
  return { body: null, size, sha256, links: [{ at: [], ...document }], left: [] }
}

/** Returns the answer that a redirect leads to. */
export async function behindLocation(context: CatalogContext, task: Task, location: string): Promise<ArtifactContent> {
  const url = URL.parse(location, addressOf(context, task).href)?.href ?? location
  const document = await followLink(context, task, url)
  if (document !== null) return ofDocument(document, 0)
  const message = `${task.path}: it leads to another path of the service, and to no document`
  throw new MirrorError('upstream_shape', message)
}

/** Returns the answer that contains documents: it is served as it came, and they are stored for what reads documents. */
async function inlineDocuments(
  context: CatalogContext,
  body: Buffer,
  found: readonly InlineDocument[],
): Promise<ArtifactContent> {
  const links: CatalogLink[] = []
  for (const { at, bytes, content } of found)
    links.push({ at, ...(await storeDocument(context, bytes, content.type, content)) })
  return { ...packed(body), links, left: [] }
}

/** Returns the answer with the documents behind its links; null where it has no link that is followed. */
async function linkedDocuments(
  context: CatalogContext,
  task: Task,
  body: Buffer,
  value: unknown,
  mayRenew: boolean,
): Promise<ArtifactContent | null> {
  const links = isTooLarge(value) ? [] : linksIn(value, addressOf(context, task))
  const urls = links.map(({ url }) => url)
  const followed = await followLinks(context, task, urls)
  const failure = linkFailure(followed, mayRenew)
  if (failure !== null && saysNone(task, value, links) && !isPassing(failure))
    return { ...packed(body), links: [], left: describeFailures(followed) }
  if (failure !== null) throw failure
  const found = links.flatMap(({ at, url }) => {
    const document = followed.documents.get(url)
    return document === undefined ? [] : [{ at, ...document }]
  })
  if (found.length === 0) return null
  return { ...packed(withoutUrls(body, found)), links: found, left: describeFailures(followed) }
}

/** Envelopes around the content of an answer, at most. */
const MAX_WRAPS = 8

/** Returns whether an answer about patches lists none: what else it links to is no patch. */
function saysNone(task: Task, value: unknown, links: ReturnType<typeof linksIn>): boolean {
  const isListed = links.some(({ at }) => at.some((step) => typeof step === 'number'))
  return task.document === 'text' && !isListed && hasEmptyList(value)
}

function hasEmptyList(value: unknown, depth = 0): boolean {
  if (Array.isArray(value)) return value.length === 0
  if (!isObject(value) || depth > MAX_WRAPS) return false
  return Object.values(value).some((inner) => hasEmptyList(inner, depth + 1))
}

/** Returns the address of an artifact's answer, by which relative links are resolved. */
function addressOf(context: CatalogContext, task: Task): URL {
  return new URL(context.sessionOf(task.surface).root + context.relative(task, task.path))
}

function packed(body: Buffer): Pick<ArtifactContent, 'body' | 'size' | 'sha256'> {
  const member = smallMember(body) ?? packContent(body)
  return { body: member, size: body.length, sha256: sha256Of(body) }
}

/** Returns JSON without links. One of another media type is stored as a document, which has a type of its own. */
async function plainJson(context: CatalogContext, task: Task, given: ArtifactResponse): Promise<ArtifactContent> {
  const check = createKindCheck(task.document ?? 'text')
  check.write(given.body)
  const content = check.end()
  if (!('refused' in content) && servedType(given.type, content) !== content.type)
    return wholeDocument(context, given, content)
  return { ...packed(given.body), links: [], left: [] }
}

const OF_STATE = ['status', 'state', 'phase']
const OF_URL = ['url', 'href', 'download_url', 'location', 'uri', 'link']

/** Returns whether JSON without links says that what it is to contain is not there yet. */
function isUnready(value: unknown, depth = 0): boolean {
  if (value === null || value === '') return true
  if (typeof value === 'string') return isUnfinished(value)
  if (!isObject(value)) return false
  const names = Object.keys(value)
  if (names.length === 0 || names.some((name) => OF_URL.includes(name.toLowerCase()))) return true
  if (isUnfinished(readText(value, OF_STATE) ?? '')) return true
  const [only, ...others] = Object.values(value)
  return others.length === 0 && isObject(only) && depth < MAX_WRAPS && isUnready(only, depth + 1)
}

const MAX_STATE = 100

function stateIn(value: unknown): string {
  if (typeof value === 'string') return value
  return isObject(value) ? (readText(value, OF_STATE) ?? '') : ''
}

function notThereYet({ path }: Task, value: unknown): MirrorError {
  const text = stateIn(value)
  const state = text === '' || text.length > MAX_STATE ? '' : ` (it says: ${text})`
  const message = `${path}: not there yet: upstream answered 200 with neither a document nor a link to one${state}`
  return new MirrorError('upstream_shape', message)
}

/**
 * Returns the answer as it is stored: each pre-signed URL, which expires, is replaced with the digest of its
 * document.
 */
function withoutUrls(body: Buffer, links: readonly CatalogLink[]): Buffer {
  const places = links.map(({ at, digest }) => ({ slice: locate(body, at), digest }))
  const parts: Buffer[] = []
  let from = 0
  for (const { slice, digest } of places.sort((a, b) => (a.slice?.start ?? 0) - (b.slice?.start ?? 0))) {
    if (slice === null) continue
    parts.push(body.subarray(from, slice.start), Buffer.from(JSON.stringify(`sha256:${digest}`)))
    from = slice.end
  }
  return Buffer.concat([...parts, body.subarray(from)])
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
