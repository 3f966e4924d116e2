import { createHash } from 'node:crypto'
import { isUtf8 } from 'node:buffer'
import { readHttpDate } from '../../base/time.ts'
import { sha256Of } from '../../base/digest.ts'
import { type Document, type UpstreamState, nextChanged } from '../../store/feeds/documents.ts'
import { documentMember, soundContent } from '../../store/database/gzip.ts'
import { MirrorError, messageOf } from '../../base/errors.ts'
import { PUBLIC_FEEDS } from '../../base/domain/feed-paths.ts'
import { ecosystemNames } from '../../base/versions/ecosystems.ts'
import { refuseCostly } from '../../base/json/limits.ts'
import { errorOfAnswer, unfinishedState } from '../../base/json/forms/error-body.ts'
import { moreBeyond } from '../../base/json/forms/more-beyond.ts'
import { type Fields, isObject, jsonTextOf } from '../../base/json/objects.ts'
import type { Validators } from '../../upstream/http/response.ts'
import type { SyncContext } from '../context.ts'

/** A document ready to be stored, with upstream's validators for it. */
export interface PreparedDocument {
  document: Document
  state: UpstreamState
}

/** The stored document of a path, and its content; null: there is none, or it is damaged. */
export interface StoredDocument {
  readonly row: Document
  readonly content: Buffer | null
}

/** Reads the stored document of a path; null: none was stored. */
export function readStored({ store }: SyncContext, path: string): StoredDocument | null {
  const row = store.feeds.readDocument(path)
  return row && { row, content: soundContent(row) }
}

/** Prepares a fetched document for storage. Null when its bytes and upstream's validators equal the stored ones. */
export function prepareDocument(
  context: SyncContext,
  path: string,
  known: StoredDocument | null,
  answer: {
    body: Buffer
    gzip: Buffer | null
    meta: Validators
  },
): PreparedDocument | null {
  const { body, gzip, meta } = answer
  const stored = known?.row ?? null
  const entries = countEntries(path, body)
  const sha256 = sha256Of(body)
  const state = { etag: meta.etag, lastModified: meta.lastModified, body: null }
  if (stored !== null && stored.body !== null && stored.sha256.equals(sha256)) {
    const last = context.store.feeds.readUpstreamState(path)
    const same = last?.etag === state.etag && last.lastModified === state.lastModified
    const isSound = known?.content !== null
    const repaired = {
      ...stored,
      body: documentMember(body, gzip),
      size: body.length,
      entries,
    }
    return same && isSound && context.kind !== 'repair' ? null : { document: repaired, state }
  }
  const upstream = readHttpDate(meta.lastModified)
  const seconds = upstream === null ? null : Math.floor(upstream / 1000)
  const last = context.store.feeds.lastServed(stored?.changed ?? null)
  const changed = nextChanged(last, seconds, context.now())
  const packed = documentMember(body, gzip)
  return { document: { path, source: 'feeds', body: packed, size: body.length, sha256, changed, entries }, state }
}

/** Returns the entry of an extra feed that upstream does not have, so that the mirror answers 404 with the reason. */
export function absent({ now }: SyncContext, path: string): PreparedDocument {
  const changed = nextChanged(null, null, now())
  return {
    document: { path, source: 'feeds', body: null, size: 0, sha256: sha256Of(''), changed, entries: 0 },
    state: { etag: null, lastModified: null, body: null },
  }
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

/**
 * Returns the number of a feed's entries, for the removal guard. A public feed may be any JSON object or list, because
 * the contract specifies no shape. Throws `upstream_shape` for what is no feed: an error, or one page of several.
 */
function countEntries(path: string, bytes: Buffer): number {
  const value = parse(path, bytes)
  const feed = PUBLIC_FEEDS.find((one) => one.path === path)
  if (feed === undefined) return Array.isArray(value) ? value.length : countMembers(value)
  if (!isObject(value) && !Array.isArray(value)) throw shape(path, 'it is neither a JSON object nor a list')
  if (isObject(value)) refuseError(path, value)
  const rows = feed.content === 'patches' ? countRows(value) : null
  const entries = rows ?? countLeaves(value)
  const more = isObject(value) ? moreBeyond(value, [], entries) : null
  if (more !== null) throw shape(path, more)
  return entries
}

function parse(path: string, bytes: Buffer): unknown {
  if (bytes.length === 0) throw shape(path, 'the answer is empty')
  if (!isUtf8(bytes)) throw shape(path, 'it is not UTF-8')
  const costly = refuseCostly(bytes)
  if (costly !== null) throw shape(path, costly)
  try {
    return JSON.parse(jsonTextOf(bytes))
  } catch (error) {
    const start = JSON.stringify(bytes.toString('utf8', 0, 40))
    throw shape(path, `not JSON (${messageOf(error).slice(0, 80)}); it begins with ${start}`)
  }
}

/** Names of members that an error has, in any document: no feed has them beside its entries. */
const ERROR = /^(errors?|error_description|detail|details)$/i

function refuseError(path: string, value: Fields): void {
  const found = [value, ...Object.values(value).filter(isObject)].flatMap((one) =>
    Object.entries(one).filter(([name, inner]) => ERROR.test(name) && isGiven(inner)),
  )
  const [first] = found
  if (first !== undefined) throw shape(path, `it has ${first[0]}`)
  const isMessage = 'message' in value && !Object.values(value).some(isContainer)
  if (isMessage) throw shape(path, `it is a message: ${String(value['message']).slice(0, 80)}`)
  const said = errorOfAnswer(value)
  if (said !== null) throw shape(path, `it is an error: ${said}`)
  const state = unfinishedState(value)
  if (state !== null) throw shape(path, `it is not ready yet (it says: ${state})`)
}

/** Whether a member says that there is an error: not null, false, or empty. */
function isGiven(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0
  return Boolean(value)
}

function isContainer(value: unknown): boolean {
  return typeof value === 'object' && value !== null
}

/**
 * Counts the rows of a list at the top or within two objects (`{"data": [{…}]}`), or the packages of the Alpine secdb
 * shape (wire facts), which are the rows of its releases. Null where there is neither.
 */
function countRows(value: unknown, depth = 0): number | null {
  if (Array.isArray(value)) return isRows(value) ? countPackages(value) : null
  if (!isObject(value)) return null
  const rows = Object.values(value).filter(isRows)
  const inner = Object.values(value).filter(isObject)
  const count = rows.reduce((sum, list) => sum + countPackages(list), 0)
  if (count > 0) return countLeaves(inner) > count ? null : count // the content is elsewhere
  if (depth === 2) return null
  const counts = inner.map((one) => countRows(one, depth + 1))
  const [found, other] = counts.filter((one) => one !== null)
  if (found === undefined || other !== undefined) return null
  const beside = inner.filter((_, at) => counts[at] === null)
  return countLeaves(beside) > found ? null : found
}

/** Reports whether a list has objects only, and at least one. */
function isRows(list: unknown): list is readonly Fields[] {
  return Array.isArray(list) && list.length > 0 && list.every(isObject)
}

/** Counts the packages of releases (`{"packages": [{…}]}`); a row without packages is an entry itself. */
function countPackages(rows: readonly Fields[]): number {
  let count = 0
  for (const { packages } of rows) count += Array.isArray(packages) ? packages.length : 1
  return count
}

/** Counts the values of a document that are not objects, lists or null, at any depth. */
function countLeaves(value: unknown): number {
  let count = 0
  const open: unknown[] = [value]
  while (open.length > 0) {
    const next = open.pop()
    if (!isContainer(next)) count += next === null ? 0 : 1
    else for (const member of Object.values(next as object)) open.push(member)
  }
  return count
}

/**
 * Returns the place of a part of a feed, at most two members deep, that had entries and has none; null: there is none. A part under
 * another name than before is none, and so are notes, a release and a package.
 */
export function emptiedPart(before: unknown, after: unknown, above: readonly string[] = []): string | null {
  if (!isObject(before) || !isObject(after)) return null
  const isRenamed = Object.keys(after).some((name) => !(name in before))
  for (const [name, part] of Object.entries(before)) {
    const place = [...above, name]
    if (!isContainer(part) || !hasEntries(part) || (isRenamed && !(name in after))) continue
    const emptied = hasEntries(after[name])
      ? above.length === 0 && emptiedPart(part, after[name], place)
      : isPart(name, before) && place.join('.')
    if (typeof emptied === 'string') return emptied
  }
  return null
}

/** Returns whether a member has all that a feed says of an ecosystem, or of several, by its name and those beside it: a package may be called npm. */
function isPart(name: string, before: Fields): boolean {
  const all = Object.keys(before)
  const named = all.filter((one) => ECOSYSTEMS.has(one.toLowerCase()))
  const isOne = named.includes(name) || named.some((one) => hasSameRows(before[name], before[one]))
  return AROUND_ALL.test(name) || (isOne && named.length * 2 >= all.length)
}

/** Returns whether the rows of two lists have a member in common, as those of ecosystems of any name. */
function hasSameRows(one: unknown, other: unknown): boolean {
  if (!isRows(one) || !isRows(other)) return false
  const members = Object.keys(other[0] ?? {})
  return Object.keys(one[0] ?? {}).some((name) => members.includes(name))
}

/** Names of what is around the entries, or beside the ecosystems in the system matrix. */
const AROUND_ALL = /^(data|results?|items|records|entries|patches|packages|feed|platforms)$|ecosystems?$/i
const ECOSYSTEMS: ReadonlySet<string> = new Set(ecosystemNames().names.map((name) => name.toLowerCase()))

function hasEntries(part: unknown): boolean {
  return isContainer(part) && countLeaves(part) > 0
}

function countMembers(value: unknown): number {
  if (!isObject(value)) return 1
  let count = 0
  for (const member of Object.values(value)) count += Array.isArray(member) ? member.length : 1
  return count
}

function shape(path: string, why: string): MirrorError {
  return new MirrorError('upstream_shape', `${path}: ${why}`)
}
