import type { Steps } from '../../base/pacing.ts'
import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { markShared } from '../../base/connections/responses.ts'
import { MirrorError, messageOf } from '../../base/errors.ts'
import type { SourceName } from '../../base/domain/sources.ts'
import { damagedContent } from '../../store/database/faults.ts'
import { checkMember, contentInPool } from '../../store/database/gzip.ts'
import type { Document } from '../../store/feeds/documents.ts'
import type { Reads } from '../../store/reads.ts'
import type { Coding } from '../http/request-headers.ts'
import type { AnswerCache } from '../http/response-cache.ts'
import { type JsonResponse, createAnswer } from '../http/response.ts'
import {
  FILTER_NAMES,
  MAX_PARTS,
  type FilterName,
  type PatchFilter,
  type PatchIndex,
  filterPatchFeed,
  indexPatchFeed,
  unnamed,
} from './patch-filter.ts'
import { type RowIndex, filterRows, indexRows, isTree, unfiltered } from './patch-rows.ts'
import { inSteps } from './steps.ts'

/** `absent`: upstream has no such path. `missing`: the mirror has not fetched it yet. */
export type FeedAnswer = JsonResponse | MissingFeed
type MissingFeed = 'absent' | 'missing'

/** What a client asks of a filtered document. */
interface FilterRequest {
  readonly path: string
  readonly filter: PatchFilter
  /** Network of the client: what time is shared by. */
  readonly address: string
}

/** Index of the feed, by its shape. `unknown`: a shape that cannot be filtered. */
type FeedIndex =
  | { readonly shape: 'tree'; readonly index: PatchIndex }
  | { readonly shape: 'rows'; readonly index: RowIndex }
  | { readonly shape: 'too many' }
  | { readonly shape: 'unknown' }

interface StoredFeed {
  readonly document: Document
  readonly answers: Partial<Record<Coding, JsonResponse | Promise<JsonResponse> | undefined>>
  index: Promise<FeedIndex> | undefined
}

/**
 * Creates the documents of the pinned snapshot. Each is read once and cached in the requested codings: they are few, and
 * every client requests them. Filtered ones are many, so they are stored in the bounded cache.
 */
export function createFeedDocuments(reads: Reads, cache: AnswerCache) {
  const documents = new Map<string, StoredFeed>()

  const load = (path: string): StoredFeed | null => {
    const known = documents.get(path)
    if (known !== undefined) return known
    const document = reads.feeds.readDocument(path)
    if (document === null) return null
    const feed: StoredFeed = { document, answers: {}, index: undefined }
    documents.set(path, feed)
    return feed
  }
  const pick = <T>(path: string, make: (feed: StoredFeed, body: Buffer) => T): T | MissingFeed => {
    const feed = load(path)
    if (feed === null) return 'missing'
    return feed.document.body === null ? 'absent' : make(feed, feed.document.body)
  }

  return {
    /** A whole document, as upstream gave it. */
    read: (path: string, coding: Coding): FeedAnswer | Promise<FeedAnswer> =>
      pick(path, (feed, body) => wholeAnswer(feed, body, coding)),
    /** Returns a document in the shape of the patch feed, filtered. The first request of a document builds its index. */
    readFiltered: async (request: FilterRequest, coding: Coding): Promise<FeedAnswer> => {
      const { path, filter } = request
      return pick(path, async (feed, body) => {
        // A request target never contains a space, so these keys cannot equal those of the records.
        const key = `${path} ${JSON.stringify(Object.values(filter))}`
        const known = cache.get(key, coding)
        if (known !== undefined) return known
        const answer = await filteredAnswer(feed, body, request, coding)
        // Another snapshot may be served by now, whose answers these are not.
        if (documents.get(path) === feed) cache.put(key, feed.document.source, answer)
        return answer
      })
    },
    /** Forgets a source's documents. */
    drop(source: SourceName): void {
      for (const [path, { document }] of documents) if (document.source === source) documents.delete(path)
    },
  }
}

/** Returns a whole document; its stored bytes are checked once, before the first answer in any coding. */
function wholeAnswer(feed: StoredFeed, member: Buffer, coding: Coding): JsonResponse | Promise<JsonResponse> {
  const { document, answers } = feed
  const known = answers[coding]
  if (known !== undefined) return known
  const answerOf = (body: Buffer): JsonResponse =>
    createAnswer(coding, markShared(body), document.sha256.toString('hex', 0, 16), document.changed)
  const body =
    coding === 'gzip' ? checkMember(member, document.size).then(() => member) : contentInPool(member, document.size)
  const coming = body.then(answerOf, (error: unknown) => {
    throw damagedContent(`the stored ${document.path} is damaged (${messageOf(error)})`)
  })
  answers[coding] = coming
  coming.then(
    (answer) => (answers[coding] = answer),
    () => (answers[coding] = undefined),
  )
  return coming
}

const compress = promisify<Buffer, { level: number }, Buffer>(gzip)

async function filteredAnswer(
  feed: StoredFeed,
  member: Buffer,
  { filter, address }: FilterRequest,
  coding: Coding,
): Promise<JsonResponse> {
  const { body: text } = await wholeAnswer(feed, member, 'identity')
  feed.index ??= inSteps(indexFeed(text))
  const index = await feed.index
  const work = narrowed(text, index, filter, feed.document.path)
  const { content, tag } = await inSteps(work, address)
  const body = coding === 'gzip' ? await compress(content, { level: 3 }) : content
  return createAnswer(coding, body, tag, feed.document.changed)
}

function* indexFeed(text: Buffer): Steps<FeedIndex> {
  if (yield* isTree(text)) {
    const index = yield* indexPatchFeed(text)
    if (index === null) return { shape: 'too many' }
    if (index !== 'no tree') return { shape: 'tree', index }
  }
  const index = yield* indexRows(text, MAX_PARTS)
  if (index === 'too many') return { shape: 'too many' }
  return index === null ? { shape: 'unknown' } : { shape: 'rows', index }
}

/** What a filter leaves of the feed, and the tag of its bytes. */
function* narrowed(
  text: Buffer,
  feed: FeedIndex,
  filter: PatchFilter,
  path: string,
): Steps<{ content: Buffer; tag: string }> {
  const content = yield* kept(text, feed, filter, path)
  const sum = createHash('sha256')
  for (let at = 0; at < content.length; at += HASHED) {
    sum.update(content.subarray(at, at + HASHED))
    yield
  }
  return { content, tag: sum.digest('hex').slice(0, 32) }
}

/** Bytes that are hashed between two pauses. */
const HASHED = 1024 * 1024

function* kept(text: Buffer, feed: FeedIndex, filter: PatchFilter, path: string): Steps<Buffer> {
  if (feed.shape === 'too many') throw tooLargeToFilter(path)
  const asked = Object.entries(FILTER_NAMES).flatMap(([kind, name]) =>
    filter[kind as FilterName] === null ? [] : [name],
  )
  if (feed.shape === 'unknown') throw notFilterable(path, asked)
  const isTree = feed.shape === 'tree'
  const kinds = isTree ? unnamed(feed.index, filter) : unfiltered(feed.index, filter)
  const lost = kinds.map((kind) => FILTER_NAMES[kind])
  if (lost.length > 0) throw notFilterable(path, lost)
  if (isTree) return yield* filterPatchFeed(text, feed.index, filter)
  return yield* filterRows(text, feed.index, filter)
}

function notFilterable(path: string, names: readonly string[]): MirrorError {
  const message =
    `${path} has another shape here, in which no field for ${names.join(', ')} can be found: ` +
    'ask for it without that filter'
  return new MirrorError('not_supported', message)
}

function tooLargeToFilter(path: string): MirrorError {
  const message = `${path} has too many entries to be filtered here: ask for it without filters`
  return new MirrorError('upstream_too_large', message)
}
