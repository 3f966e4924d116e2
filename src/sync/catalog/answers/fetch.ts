import { sha256Of } from '../../../base/digest.ts'
import { MirrorError, messageOf } from '../../../base/errors.ts'
import { matchPath } from '../../../base/domain/path-templates.ts'
import { RELEASES, RESOURCES } from '../../../base/domain/resources.ts'
import { NEEDS_CREDENTIAL } from '../../../base/domain/run-facts.ts'
import { plainName } from '../../../base/json/field-names.ts'
import { joinPage } from '../../../base/json/envelope.ts'
import { endingOf, frameOf } from '../../../base/json/envelope-learn.ts'
import { saysAnything } from '../../../base/json/forms/error-body.ts'
import { countListed, moreBeyond } from '../../../base/json/forms/more-beyond.ts'
import { refuseCostly } from '../../../base/json/limits.ts'
import { jsonTextOf, parseExactly } from '../../../base/json/objects.ts'
import { releasesIn } from '../../../base/json/releases.ts'
import type { StoredAnswer } from '../../../store/catalog/answers.ts'
import type { FetchedAnswer } from '../../../store/catalog/answer-writes.ts'
import { packContent } from '../../../store/database/gzip.ts'
import { LeavingError } from '../../../upstream/http/destinations.ts'
import { type Meta, hasEnd } from '../../../upstream/http/response.ts'
import { collectList, isPageLong } from '../../../upstream/lists/collect.ts'
import { refusePaged } from '../../../upstream/whole-document.ts'
import {
  type ErrorForm,
  formOf,
  isExpiredUrl,
  refusalError,
  retryAfterMs,
  statusOf,
} from '../../../upstream/http/errors.ts'
import type { CatalogContext } from '../context.ts'
import { withoutSecrets } from '../lists/items.ts'
import { mentionsOf } from '../scope/references.ts'
import { judgeFetched } from '../signatures.ts'
import {
  type ArtifactContent,
  type ArtifactResponse,
  behindLocation,
  readArtifact,
  refuseError,
  refuseMore,
} from './artifact.ts'
import { jsonType } from './document-type.ts'
import { type Task, mustExist } from './plan.ts'
import { isReleaseList, readAnswer } from './releases.ts'

/**
 * Fetches the answer of one path and the documents that it links to. `answer` is null when upstream has nothing new.
 * Throws `upstream_*` when it fails, or its signature is not accepted; nothing is stored then.
 */
export async function fetchAnswer(
  context: CatalogContext,
  task: Task,
  stored: StoredAnswer | null,
): Promise<FetchedOrConfirmed> {
  const seen: Seen = { at: context.now(), form: null }
  const built = await buildAnswer(context, task, stored, seen)
  if (built === null) return { answer: null, ...seen, left: [] }
  const { left = [], ...answer } = built
  await judgeFetched(context, task, answer)
  return { answer: { ...answer, confirmedAt: seen.at }, ...seen, left }
}

/** Upstream's date of a response, unix milliseconds, and the form of a 404; null: it is none. */
interface Seen {
  at: number
  form: ErrorForm | null
}

/** An answer, null when it equals the stored one, and why links of the answer gave no document. */
interface FetchedOrConfirmed extends Seen {
  answer: FetchedAnswer | null
  left: readonly string[]
}

type BuiltAnswer = FetchedAnswer & Partial<Pick<ArtifactContent, 'left'>>

async function buildAnswer(
  context: CatalogContext,
  task: Task,
  stored: StoredAnswer | null,
  seen: Seen,
): Promise<BuiltAnswer | null> {
  const answer = await ask(context, task, stored, seen)
  if (answer === 'unchanged') return null
  if (answer === 404 || answer === 204) return { ...blank(task), status: answer, sha256: sha256Of(Buffer.alloc(0)) }
  if (task.document === null && 'body' in answer) {
    const item = await steadyAnswer(context, task, answer, seen)
    const isSame = stored?.status === 200 && stored.sha256.equals(item.sha256)
    return isSame && context.store.catalog.readAnswerType(task.canonical) === item.type ? null : item
  }
  try {
    return await documentAnswer(context, task, answer, true)
  } catch (error) {
    if (!isExpiredUrl(error)) throw error
    const again = await ask(context, task, null, seen) // for a new pre-signed URL
    if (typeof again !== 'object') throw error
    return documentAnswer(context, task, again, false)
  }
}

/** Returns the answer of an artifact path, with the documents that it is, contains or links to. */
async function documentAnswer(
  context: CatalogContext,
  task: Task,
  answer: OkResponse | { redirectedTo: string },
  mayRenew: boolean,
): Promise<FetchedAnswer & Pick<ArtifactContent, 'left'>> {
  const artifact =
    'redirectedTo' in answer
      ? await behindLocation(context, task, answer.redirectedTo)
      : await readArtifact(context, task, answer, mayRenew)
  return { ...blank(task), ...artifact, status: 200 }
}

/** A 200 response. */
interface OkResponse extends ArtifactResponse {
  readonly meta: Meta
}

async function ask(
  context: CatalogContext,
  task: Task,
  stored: StoredAnswer | null,
  seen: Seen,
): Promise<OkResponse | { redirectedTo: string } | 'unchanged' | 404 | 204> {
  const session = context.sessionOf(task.surface)
  const isCompared = context.full || context.kind === 'reconcile'
  const known = stored?.status === 200 && stored.etag !== null && task.document === null && !isCompared
  try {
    const answer = await session.fetchDocument(context.relative(task, task.path), {
      maxBytes: context.config.upstream.maxRecordBytes,
      stored: known ? { etag: stored.etag, lastModified: null } : null,
      gzip: true,
    })
    seen.at = answer.meta.date
    if (answer.status === 304) return 'unchanged'
    const { body, meta } = answer
    return { body, meta, type: meta.contentType, location: meta.location, isEnded: hasEnd(meta) }
  } catch (error) {
    if (!(error instanceof MirrorError)) throw error
    if (error.code === 'upstream_not_found') {
      seen.form = formOf(error)
      return 404
    }
    if (statusOf(error) === 204 && !mustExist(task) && retryAfterMs(error) === null) return 204
    if (error instanceof LeavingError && task.document !== null) return { redirectedTo: error.location }
    const status = statusOf(error)
    const isRefused = error.code === 'upstream_auth' && (status === 401 || status === 403)
    if (!isRefused || task.surface !== 'catalog') throw error
    if (context.config.catalog.sendCredential) throw error
    if (status === 401) context.facts[NEEDS_CREDENTIAL] = 1
    const hint = 'the package catalog requires a credential: set catalog.sendCredential'
    throw refusalError(status, `${error.message}; ${hint}`)
  }
}

function blank({ canonical, resource, owner, ownerSha }: Task): Omit<FetchedAnswer, 'status' | 'sha256'> {
  const rest = { body: null, size: 0, etag: null, links: [], mentions: [], confirmedAt: null }
  return { path: canonical, resource, owner, ownerSha, ...rest }
}

/** Returns an answer, or that of a second reading which lists more: what a list lacks is gone when two successive readings lack it. */
async function steadyAnswer(context: CatalogContext, task: Task, given: OkResponse, seen: Seen) {
  const one = await itemAnswer(context, task, given, seen)
  if (!isReleaseList(task) || one.listed >= countListed(readAnswer(context, task.canonical))) return one.answer
  const again = await ask(context, task, null, seen)
  if (typeof again !== 'object' || !('body' in again)) return one.answer
  const other = await itemAnswer(context, task, again, seen)
  return other.listed > one.listed ? other.answer : one.answer
}

async function itemAnswer(context: CatalogContext, task: Task, { body: given, meta, type }: OkResponse, seen: Seen) {
  const first = parse(task.path, given)
  refuseStranger(context, task, first)
  const { body, etag, value } = await wholeAnswer(context, task, first, { body: given, meta, seen })
  const clean = task.secrets ? withoutSecrets(body, task.path) : body
  const packed = packContent(clean)
  const answer = { ...jsonAnswer(task, clean, packed), etag, mentions: mentionsOf(value), type: jsonType(type) }
  return { answer, listed: value.reduce<number>((sum, page) => sum + countListed(page), 0) }
}

/** Returns an answer as it is, or all its pages as one, in upstream's own form; `value`: what it, or each page, says. Throws `upstream_shape` where they are not all there. */
async function wholeAnswer(
  context: CatalogContext,
  task: Task,
  value: unknown,
  { body, meta, seen }: Pick<OkResponse, 'body' | 'meta'> & { seen: Seen },
): Promise<Pick<OkResponse, 'body'> & Pick<Meta, 'etag'> & { value: readonly unknown[] }> {
  const whole = { body, etag: meta.etag, value: [value] }
  const doubt = pageDoubt(context, task, value, meta)
  if (doubt === null) return whole
  const { pages, cut, asOf } = await collectPages(context, task).catch((failure: unknown) => {
    if (!isShape(failure)) throw failure
    return { pages: [], cut: messageOf(failure), asOf: seen.at }
  })
  const [first] = pages
  const items = pages.flatMap((page) => page.items)
  if (cut !== null || first === undefined) {
    if (doubt === 'length') return whole
    throw doubt
  }
  if (doubt === 'length' && items.length <= countListed(value)) return whole
  seen.at = asOf
  const frame = frameOf(first.value, first.shape, items.length)
  const ending = endingOf(pages.at(-1)?.value, frame.cursor)
  const url = context.sessionOf(task.surface).root + context.relative(task, task.path)
  const facts = { next: null, total: items.length, limit: Math.max(1, items.length) }
  const urls = { base: url, self: url, first: url, next: null }
  const joined = joinPage({ ...frame, ending }, { ...facts, urls }, items)
  return { body: joined, etag: null, value: pages.map((page) => page.value) }
}

/**
 * Returns why versions of a package, or vulnerabilities of a version, may be one page of several: they say so, or are as many as a page
 * has (`length`), where more is stored. Null: they are whole. What is not on that page would look as if there were none.
 */
function pageDoubt(context: CatalogContext, task: Task, value: unknown, meta: Meta): MirrorError | 'length' | null {
  if (!isReleaseList(task)) return null
  try {
    refusePage(task, value, meta)
  } catch (error) {
    if (isShape(error)) return error
    throw error
  }
  const listed = countListed(value)
  if (!isPageLong(listed)) return null
  const before = context.full ? 0 : countListed(readAnswer(context, task.canonical))
  if (before <= listed) return 'length'
  const message = `${task.path}: it lists ${listed} entries, as many as a page has, and ${before} before: a sync with --full replaces what is stored`
  return new MirrorError('upstream_shape', message)
}

function collectPages(context: CatalogContext, task: Task) {
  const { maxRecordBytes: maxBytes } = context.config.upstream
  const path = context.relative(task, task.path)
  return collectList(context.sessionOf(task.surface), path, { maxBytes, refuse: refuseCostly })
}

function isShape(error: unknown): error is MirrorError {
  return error instanceof MirrorError && error.code === 'upstream_shape'
}

function jsonAnswer(task: Task, body: Buffer, packed: Buffer): FetchedAnswer {
  return { ...blank(task), status: 200, body: packed, size: body.length, sha256: sha256Of(body) }
}

function parse(path: string, body: Buffer): unknown {
  const costly = refuseCostly(body)
  if (costly !== null) throw new MirrorError('upstream_shape', `${path}: ${costly}`)
  try {
    return parseExactly(jsonTextOf(body))
  } catch (error) {
    const message = `${path}: not JSON (${messageOf(error).slice(0, 100)})`
    throw new MirrorError('upstream_shape', message, { cause: error })
  }
}

/** Deepest value that is looked at for an id. */
const MAX_DEPTH = 6

/**
 * Throws `upstream_shape` for an answer in JSON that is not about what was asked for, as an error, a notice or another item: it would
 * replace what is stored. An answer about one item of a list names that item, in whatever member, unless the service names none.
 */
function refuseStranger(context: CatalogContext, task: Task, value: unknown): void {
  refuseError(task, value)
  const asked = itemAsked(task)
  const isNamed = asked !== null && names(value, asked.id)
  const isCatalog = task.surface === 'catalog'
  const stored = isNamed ? null : readAnswer(context, task.canonical)
  if (asked !== null && !isNamed && (hasId(value, asked.ids) || names(stored, asked.id)))
    throw stranger(task, `it does not name ${asked.shown.slice(0, 80)}`)
  if (!isNamed && !saysAnything(value, isCatalog)) throw stranger(task, 'it says nothing')
  if (!isCatalog && isUnlike(value, stored)) {
    const isNotice = namesId(stored) && !namesId(value)
    if (isNotice) throw stranger(task, 'it has no member of what is stored, and no id')
    if (!context.full) throw stranger(task, 'it has no member of what is stored, which a sync with --full replaces')
  }
  if (matchPath(RELEASES.versions, task.canonical) === null || releasesIn(value).length > 0) return
  const versions = releasesIn(stored).length
  if (versions > 0) throw stranger(task, `it names no version of a package that had ${versions}`)
}

/** Throws `upstream_shape` for a list of the package catalog that is one page of several by what it says itself. */
function refusePage({ path, canonical }: Task, value: unknown, meta: Meta): void {
  const isVersions = matchPath(RELEASES.versions, canonical) !== null
  // A version may be listed once for each of its architectures.
  const entries = Math.max(isVersions ? releasesIn(value).length : 0, countListed(value))
  refusePaged(path, meta, entries)
  refuseMore(path, moreBeyond(value, [], entries))
}

/** Returns the id of the listed item that an answer is about, and the names of its member; null: it is of no list, or of the package catalog. */
function itemAsked({ resource, canonical }: Task): { id: string; shown: string; ids: readonly string[] } | null {
  const found = RESOURCES.find(({ name }) => name === resource)
  const path = found?.item ?? null
  const id = path === null ? undefined : matchPath(path, canonical)?.['id']
  return id === undefined ? null : { id: plainId(id), shown: id, ids: found?.ids ?? [] }
}

/** Returns an id in lower case and percent-decoded, where it can be. */
function plainId(id: string): string {
  try {
    return decodeURIComponent(id).toLowerCase()
  } catch {
    return id.toLowerCase()
  }
}

function names(value: unknown, id: string, depth = 0): boolean {
  if (typeof value === 'string' || typeof value === 'number') return plainId(String(value).toWellFormed()) === id
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return false
  return Object.values(value).some((inner) => names(inner, id, depth + 1))
}

/** Whether two answers have no member in common but one that is around all others; never without a stored one. */
function isUnlike(value: unknown, stored: unknown): boolean {
  const known = memberNames(stored)
  return known.size > 0 && ![...memberNames(value)].some((name) => known.has(name))
}

/** Whether a member may be an id, under any name: an account has one, a notice mostly not. */
function namesId(value: unknown): boolean {
  return [...memberNames(value)].some((name) => name.endsWith('id'))
}

function memberNames(value: unknown, depth = 0): Set<string> {
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return new Set()
  const members = Object.entries(value)
  const [[, only] = ['', null], ...others] = members
  if (others.length === 0 && typeof only === 'object' && only !== null) return memberNames(only, depth + 1)
  const within = members.flatMap(([, inner]) => [...memberNames(inner, depth + 1)])
  return new Set([...(Array.isArray(value) ? [] : members.map(([name]) => plainName(name))), ...within])
}

/** Whether an item has an id of its own, also where it is alone in a member or a list. */
function hasId(value: unknown, ids: readonly string[], depth = 0): boolean {
  if (typeof value !== 'object' || value === null || depth > 2) return false
  const [[name, inner] = ['', null], ...others] = Object.entries(value)
  if (others.length === 0 && !ids.includes(name)) return hasId(inner, ids, depth + 1)
  return Object.keys(value).some((one) => ids.includes(one))
}

function stranger({ path }: Task, why: string): MirrorError {
  const todo = 'request it from the service without a proxy, and compare; what is stored stays'
  return new MirrorError('upstream_shape', `${path}: upstream answered 200 with something else: ${why}; ${todo}`)
}
