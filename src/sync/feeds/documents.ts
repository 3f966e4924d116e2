import { isUtf8 } from 'node:buffer'
import { MirrorError, messageOf } from '../../core/errors.ts'
import { PUBLIC_FEEDS } from '../../domain/feed-paths.ts'
import { refuseCostly } from '../../json/limits.ts'
import { jsonTextOf, isObject } from '../../json/objects.ts'
import { createHash } from 'node:crypto'
import { readHttpDate } from '../../core/time.ts'
import { sha256Of } from '../../core/digest.ts'
import { type Document, type UpstreamState, nextChanged } from '../../store/feeds/documents.ts'
import { documentMember } from '../../store/database/gzip.ts'
import { deflate } from '../../zip/member.ts'
import type { SyncContext } from '../context.ts'

/** Checks the shape of a feed and returns the number of its entries, for the removal guard. Throws `upstream_shape`. */
function countEntries(path: string, bytes: Buffer): number {
  const value = parse(path, bytes)
  const content = PUBLIC_FEEDS.find((feed) => feed.path === path)?.content
  if (content === 'patches') return countPackages(path, value)
  if (content === 'systems') return countSystems(path, value)
  return Array.isArray(value) ? value.length : countLeaves(value)
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

const ECOSYSTEMS = ['alpine', 'debian', 'ubuntu', 'pypi', 'npm', 'maven']

/**
 * Counts the packages of the Alpine secdb shape (wire facts), `{"alpine": [{"distroversion", "packages": [{"pkg":
 * {…}}]}]}`, or of one list of rows, at the top or within two objects (`{"data": [{…}]}`): the contract specifies no
 * shape.
 */
function countPackages(path: string, value: unknown): number {
  if (isObject(value) && isTree(value)) return countTree(path, value)
  const inner = isObject(value) ? Object.values(value).filter(isObject) : []
  const trees = inner.filter((one) => Object.keys(one).length > 0 && isTree(one))
  if (trees.length === 1) return countTree(path, trees[0])
  const lists = Array.isArray(value) ? [value as unknown[]] : rowLists(path, value, 0)
  const [rows] = lists
  if (rows === undefined || rows.length === 0 || lists.length > 1)
    throw shape(path, 'it is neither a tree of ecosystems nor one list of rows')
  if (!rows.every(isObject)) throw shape(path, 'its list contains values that are not rows')
  if (isObject(value) && isPaged(value))
    throw shape(path, 'it is one page of several, and the patch feed is fetched as one document')
  return rows.length
}

function isTree(value: Readonly<Record<string, unknown>>): boolean {
  const names = Object.keys(value)
  return names.length === 0 || names.some((name) => ECOSYSTEMS.includes(name.toLowerCase()))
}

/** Returns the lists of objects within an object. Throws for an error document. */
function rowLists(path: string, value: unknown, depth: number): unknown[][] {
  return members(path, value).flatMap(([name, one]) => {
    if (/^(errors?|error_description|detail|details)$/i.test(name))
      throw shape(path, `it has ${name}`)
    if (Array.isArray(one)) return isObject(one[0]) ? [one as unknown[]] : []
    return isObject(one) && depth === 0 ? rowLists(path, one, depth + 1) : []
  })
}

/** Returns whether an answer indicates further pages. */
function isPaged(value: Readonly<Record<string, unknown>>, depth = 0): boolean {
  return Object.entries(value).some(([name, one]) => {
    if (/^has_?more$/i.test(name)) return one === true
    if (/^(next|after|next_?(cursor|page|token|url))$/i.test(name))
      return (typeof one === 'string' && one !== '') || typeof one === 'number'
    return isObject(one) && depth < 2 && isPaged(one, depth + 1)
  })
}

function countTree(path: string, value: unknown): number {
  let packages = 0
  for (const [ecosystem, releases] of members(path, value)) {
    if (!Array.isArray(releases)) throw shape(path, `${ecosystem} is not a list`)
    for (const release of releases as unknown[]) {
      const listed = isObject(release) ? release['packages'] : undefined
      if (!Array.isArray(listed)) throw shape(path, `an entry of ${ecosystem} has no packages`)
      packages += listed.length
    }
  }
  return packages
}

/**
 * Counts the systems of `{"ecosystems": {"alpine": [{…}]}, "package_ecosystems": […], "platforms": […]}` (wire
 * facts).
 */
function countSystems(path: string, value: unknown): number {
  const ecosystems = Object.fromEntries(members(path, value))['ecosystems']
  if (!isObject(ecosystems)) throw shape(path, 'it has no ecosystems')
  return countLeaves(ecosystems)
}

function countLeaves(value: unknown): number {
  if (!isObject(value)) return 1
  let count = 0
  for (const member of Object.values(value)) count += Array.isArray(member) ? member.length : 1
  return count
}

function members(path: string, value: unknown): [string, unknown][] {
  if (!isObject(value)) throw shape(path, 'it is not a JSON object')
  return Object.entries(value)
}

function shape(path: string, why: string): MirrorError {
  return new MirrorError('upstream_shape', `${path}: ${why}`)
}

/** A document ready to be stored, with upstream's validators for it. */
export interface PreparedDocument {
  document: Document
  state: UpstreamState
}

/** Prepares a fetched document for storage. Null when its bytes and upstream's validators equal the stored ones. */
export function prepareDocument(
  context: SyncContext,
  path: string,
  stored: Document | null,
  answer: {
    body: Buffer
    gzip: Buffer | null
    meta: { etag: string | null; lastModified: string | null }
  },
): PreparedDocument | null {
  const { body, gzip, meta } = answer
  const entries = countEntries(path, body)
  const sha256 = sha256Of(body)
  const state = { etag: meta.etag, lastModified: meta.lastModified, body: null }
  if (stored !== null && stored.body !== null && stored.sha256.equals(sha256)) {
    const known = context.store.feeds.readUpstreamState(path)
    const same = known?.etag === state.etag && known.lastModified === state.lastModified
    const repaired = {
      ...stored,
      body: documentMember(body, gzip, deflate),
      size: body.length,
      entries,
    }
    return same && context.kind !== 'repair' ? null : { document: repaired, state }
  }
  const upstream = readHttpDate(meta.lastModified)
  const seconds = upstream === null ? null : Math.floor(upstream / 1000)
  const changed = nextChanged(stored?.changed ?? null, seconds, context.now())
  const packed = documentMember(body, gzip, deflate)
  const document = { path, source: 'feeds', body: packed, size: body.length } as const
  return { document: { ...document, sha256, changed, entries }, state }
}

/** Returns the entry of an extra feed that upstream does not have, so that the mirror answers 404 with the reason. */
export function absent({ now }: SyncContext, path: string): PreparedDocument {
  const changed = nextChanged(null, null, now())
  const sha256 = sha256Of('')
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
