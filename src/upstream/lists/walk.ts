import { MirrorError } from '../../base/errors.ts'
import type { Onward } from '../../base/json/envelope.ts'
import { type Grade, type Seen, gradeOf } from './evidence.ts'
import { type Meta, type Validators, lackOf } from '../http/response.ts'
import { type Session, pathAsked } from '../http/session.ts'
import { statusOf } from '../http/errors.ts'
import type { KnownShape } from './shape.ts'
import type { Next } from './cursor.ts'
import { targetOf } from './page-key.ts'
import {
  type KnownList,
  type Probed,
  type ReadPage,
  type Reading,
  isJudged,
  readPage,
  showsEnd,
  unwalkable,
} from './page.ts'
import { createTrail } from './trail.ts'
import { MAX_EMPTY, type WalkBounds, createProgress } from './bounds.ts'

/** A page with its position in the walk. */
export interface WalkedPage extends ReadPage {
  number: number
  /** The key (page-key.ts) that requested it; null for the first. */
  cursor: string | null
  next: string | null
}

/** A page that an earlier walk stored. */
interface StoredPage extends Validators {
  cursor: string | null
  next: string | null
  sha256: Buffer
  /** Number of its items. */
  entries: number
}

/** Receives the pages of a walk. */
export interface PageSink {
  /** Starts a walk or restarts it: earlier pages are discarded. */
  begin(): Promise<void> | void
  /** Takes a page. Returns false for one that only has items of earlier pages: the walk ends before it. */
  page(page: WalkedPage): Promise<boolean> | boolean
  /** Takes a page that equals the stored one. */
  kept(number: number): Promise<void> | void
}

/** Options of a walk. */
export interface WalkOptions extends Reading {
  /** Requested page size; where the service refuses it, a smaller one is requested, and then none. */
  limit: number
  /** Cap on one page, bytes. */
  maxBytes: number
  /** Limits of the whole list. */
  bounds: WalkBounds
  stored(number: number): StoredPage | null
  /** An item's own identifier, by its bytes; null when it has none. */
  idOf: (item: Buffer) => string | null
  /** What earlier walks learned about the list. */
  known: KnownList
  now: () => number
}

/** What a walk needs of a session. */
export type ListSession = Pick<Session, 'root' | 'fetchDocument'>

/** Result of a walk. */
export interface WalkEnd {
  /** Upstream's date of the last page, unix milliseconds. */
  asOf: number
  /** Why the list may be incomplete; null: nothing speaks of more. */
  cut: string | null
  /** What was seen of its end; null: its last page is unchanged, and so is what is known. */
  seen: Seen | null
  grade: { grade: Grade; why: string } | null
  /** What probes of the list showed, by this walk or an earlier one. */
  probed: Probed | null
  /** Whether the last page itself showed how the list ends, now or when it was last read. */
  endInPage: boolean
  /** Whether what its pages state of an end, or a total, says nothing; null: not known. */
  statesNothing: boolean | null
  /** A page of one item, where the walk asked for it; null: it is refused. */
  one?: ReadPage | null
  /** Number of items by the last page; null when it is unknown, or the page is unchanged. */
  total: number | null
  onward: Onward
}

const MAX_RESTARTS = 3

/**
 * Walks a paged list by what its pages name as the next one (wire facts, lists and cursors): a cursor, a URL, a Link
 * header, or the id of the last item. A page that is missing when it is requested means that the list changed
 * meanwhile: the walk restarts. Throws `upstream_shape` for a list with a cycle or without end.
 */
export async function walkList(
  session: ListSession,
  path: string,
  options: WalkOptions,
  sink: PageSink,
): Promise<WalkEnd> {
  let { known, limit } = options
  for (let restarts = 0; ; restarts++) {
    await sink.begin()
    try {
      const end = await walkOnce(session, path, { ...options, limit, known }, sink, restarts === 0)
      if (!isDoubtful(end, limit, known) || !(await hasItems(session, path, options))) return end
      limit = smallerThan(limit)
      restarts--
    } catch (error) {
      if (limit > 0 && isRefusedSize(error)) {
        limit = smallerThan(limit)
        restarts--
        continue
      }
      if (error instanceof NextPageLearned) known = { ...known, ...error.known }
      else if (!(error instanceof PageVanished)) throw error
      if (restarts === MAX_RESTARTS) {
        const message = `${pathAsked(session, path)}: its pages disappear while they are read; the walk was started ${restarts + 1} times`
        throw new MirrorError('upstream_shape', message, { cause: error })
      }
    }
  }
}

/**
 * Requests a page of one item, to see a page that is not the last. `refused`: upstream returns no such page. `later`:
 * the request failed, so it is still unknown.
 */
export async function probeList(
  session: ListSession,
  path: string,
  options: Pick<WalkOptions, 'maxBytes'> & Reading,
): Promise<ReadPage | 'refused' | 'later'> {
  try {
    const answer = await session.fetchDocument(`${path}?limit=1`, { ...options, gzip: true })
    if (answer.status === 304) return 'refused'
    return readPage(pathAsked(session, path), answer.body, answer.meta, options, null)
  } catch (error) {
    if (!(error instanceof MirrorError)) throw error
    if (error.code === 'upstream_not_found') return 'refused'
    if (error.code === 'upstream_shape') return 'later'
    if (error.code !== 'upstream_status') throw error
    return (statusOf(error) ?? 500) < 500 ? 'refused' : 'later'
  }
}

/** The page size that the contract has as its default. */
const DEFAULT_LIMIT = 100

function smallerThan(limit: number): number {
  return limit > DEFAULT_LIMIT ? DEFAULT_LIMIT : 0
}

/** Returns whether a list is empty that was not known to be: the size that was asked for may be why. */
function isDoubtful({ seen }: WalkEnd, limit: number, { items }: KnownList): boolean {
  return limit > 0 && items !== 0 && seen?.items === 0 && seen.end !== 'counted'
}

/** Returns whether a list has items where no size of its pages is asked for. */
async function hasItems(session: ListSession, path: string, options: WalkOptions): Promise<boolean> {
  try {
    const { page, meta } = await fetchPage(session, path, options, path, null)
    return page !== null && readPage(pathAsked(session, path), page, meta, options, null).items.length > 0
  } catch (error) {
    const status = statusOf(error) ?? 0
    if (status >= 400 && status < 500 && status !== 429) return false // it is asked for with a size alone
    throw error
  }
}

/** Returns whether a first page may be refused for its size: the contract gives a largest one to a single list. */
function isRefusedSize(error: unknown): boolean {
  const status = statusOf(error)
  return status === 400 || status === 422
}

/** A named page is missing. */
class PageVanished extends Error {}

/** The way to request the next page was learned: restart from the first page with it. */
class NextPageLearned extends Error {
  readonly known: Partial<KnownList>
  constructor(known: Partial<KnownList>) {
    super('the way to request the next page was learned')
    this.known = known
  }
}

async function walkOnce(
  session: ListSession,
  path: string,
  options: WalkOptions,
  sink: PageSink,
  useStored: boolean,
): Promise<WalkEnd> {
  const { known } = options
  const place = pathAsked(session, path)
  const ask = (target: string, stored: StoredPage | null): Promise<Fetched> =>
    fetchPage(session, path, options, target, stored)
  const trail = createTrail({ root: session.root, path, ...options }, async (target) => {
    const { page, meta } = await ask(target, null)
    return page === null ? null : readPage(place, page, meta, options, first)
  })
  const progress = createProgress(place, options.bounds, options.now)
  const { cursorPath } = known
  let first: KnownShape = cursorPath === null ? null : { itemsPath: [], cursorPath }
  let cursor: string | null = null
  const said: SaidByHeaders = { asOf: 0, lacks: null }
  let total: number | null = null
  const end = (seen: Seen | null): Promise<WalkEnd> => endOf(trail, known, said, { total, seen })
  for (let number = 0; ; number++) {
    progress.begin(number)
    const stored = storedPage(options, useStored ? number : null, cursor)
    const target = targetOf(path, options.limit, cursor)
    const answer = await askNext(trail, cursor, () => ask(target, stored))
    if (answer === null) return end(trail.seen())
    noteHeaders(said, answer.meta)
    if (answer.page === null) {
      const next = stored?.next ?? null
      total = null
      trail.kept(next, stored?.entries ?? 0)
      progress.kept(stored?.sha256 ?? null)
      await sink.kept(number)
      if (next === null) return end(null)
      cursor = next
    } else {
      const read = readPage(place, answer.page, answer.meta, options, first)
      if (number === 0) first = { ...read.shape, cursorPath: read.shape.cursorPath ?? cursorPath }
      const same = stored?.sha256.equals(read.sha256) === true
      await learnCursor(trail, number > 0 ? trail.repeatedCursor(read) : null)
      total = read.total
      if (progress.repeats(read)) {
        await leaveRepeated(trail, read)
        return end(trail.seen())
      }
      // The search of the same page found nothing before; it is not repeated.
      const isSettled = same && stored.next === null && showsEnd(known)
      progress.page(read, answer.page.length)
      const next: string | null = isSettled ? null : await nextOf(trail, progress, read, cursor)
      const isKept = same && stored.next === next
      const isNew = isKept ? true : await sink.page({ ...read, number, cursor, next })
      if (isKept) await sink.kept(number)
      if (!isNew) trail.leave(`page ${number + 1} only repeats items of earlier pages`)
      if (next === null || !isNew) return end(isSettled ? null : trail.seen())
      cursor = next
    }
    progress.goTo(cursor)
  }
}

/** Returns the page after one that was read; null where the walk ends. Restarts it with a cursor that was found. */
async function nextOf(
  trail: Trail,
  progress: ReturnType<typeof createProgress>,
  read: ReadPage,
  asked: string | null,
): Promise<string | null> {
  const { next, cursorPath } = await trail.after(read)
  if (cursorPath !== undefined) throw new NextPageLearned({ cursorPath, onward: trail.onward() })
  if (next === null) return null
  if (progress.isAsked(next)) return (await trail.repeated(read)).next
  if (!progress.isEmptyAgain(read)) return next
  // A service that names page 5 after the empty pages 2, 3 and 4 only counts.
  if (asked !== null && differInNumbers(asked, next)) return trail.beyond().next
  return trail.leave(`${MAX_EMPTY} empty pages in a row, and more to come`)
}

/** Returns whether two requests differ in numbers alone: the service counts its pages or items. */
function differInNumbers(one: string, other: string): boolean {
  const plain = (key: string): string => key.replace(/(?<![\da-z_-])\d{1,9}(?![\da-z_-])/gi, '#')
  return plain(one) === plain(other)
}

/** Ends a walk at a page that is the one before it, or restarts it another way. */
async function leaveRepeated(trail: Trail, read: ReadPage): Promise<void> {
  const { next } = await trail.repeated(read)
  if (next !== null) throw new NextPageLearned({ onward: trail.onward() })
}

/** Returns the stored page that the walk may find unchanged; null when there is none. */
function storedPage(options: WalkOptions, number: number | null, cursor: string | null): StoredPage | null {
  const page = number === null ? null : options.stored(number)
  if (page === null || page.cursor !== cursor) return null
  // An answer without content shows nothing of the end, unless the page had shown it.
  const { known } = options
  const isAsked = page.next === null ? showsEnd(known) : isJudged(known)
  return isAsked ? page : { ...page, etag: null, lastModified: null }
}

/** What the headers of the pages say: the date of the last one, and what a mirror that is upstream lacks. */
interface SaidByHeaders extends Pick<WalkEnd, 'asOf'> {
  lacks: string | null
}

function noteHeaders(said: SaidByHeaders, meta: Meta): void {
  said.asOf = meta.date
  said.lacks ??= lackOf(meta)
}

async function endOf(
  trail: Trail,
  known: KnownList,
  { asOf, lacks }: SaidByHeaders,
  { total, seen }: Pick<WalkEnd, 'total' | 'seen'>,
): Promise<WalkEnd> {
  const found = lacks === null ? seen : { ...trail.seen(), lacks }
  const whole = found === null ? null : { ...found, total: trail.statesNothing() === true ? null : total }
  const grade = whole === null ? null : gradeOf(whole)
  const cut = grade?.grade === 'cut' ? grade.why : null
  const isShown = cut !== null || (grade?.grade === 'proved' && trail.isEndInPage())
  const endInPage = grade === null ? known.endInPage : isShown
  const one = trail.askedOne()
  return {
    asOf,
    cut: grade === null ? known.cut : cut,
    seen: whole,
    grade,
    probed: trail.probed(),
    endInPage,
    statesNothing: trail.statesNothing(),
    ...(one !== null && { one: await one }),
    total,
    onward: trail.onward(),
  }
}

/** Learns the parameter for a cursor that is not understood as `after`, and restarts the walk with it. */
async function learnCursor(trail: Trail, cursor: Next | null): Promise<void> {
  const onward = cursor === null ? null : await trail.learn(cursor)
  if (onward !== null) throw new NextPageLearned({ onward })
}

/** Requests a page; null where pages are counted and there is none behind the last. */
async function askNext(trail: Trail, cursor: string | null, fetch: () => Promise<Fetched>): Promise<Fetched | null> {
  try {
    return await detectVanished(cursor, fetch)
  } catch (error) {
    if (!(error instanceof PageVanished)) throw error
    if (trail.isCounting()) {
      trail.refused()
      return null
    }
    const status = statusOf(error.cause)
    if (status === 400 || status === 422) await learnCursor(trail, trail.untriedCursor())
    throw error
  }
}

type Trail = ReturnType<typeof createTrail>

interface Fetched {
  page: Buffer | null
  meta: Meta
}

async function fetchPage(
  session: ListSession,
  path: string,
  { maxBytes, refuse }: WalkOptions,
  target: string,
  stored: StoredPage | null,
): Promise<Fetched> {
  const answer = await session.fetchDocument(target, { maxBytes, stored, gzip: true })
  if (answer.status === 304) return { page: null, meta: answer.meta }
  const refused = refuse(answer.body, answer.meta)
  if (refused !== null) throw unwalkable(pathAsked(session, path), refused)
  return { page: answer.body, meta: answer.meta }
}

/** Statuses of a page that is not there, or no longer: its cursor or number is refused. */
const VANISHED: ReadonlySet<number> = new Set([400, 404, 410, 416, 422])

async function detectVanished<T>(cursor: string | null, fetch: () => Promise<T>): Promise<T> {
  try {
    return await fetch()
  } catch (error) {
    const status = statusOf(error)
    if (cursor !== null && status !== null && VANISHED.has(status))
      throw new PageVanished(`page ${cursor} is missing`, { cause: error })
    throw error
  }
}
