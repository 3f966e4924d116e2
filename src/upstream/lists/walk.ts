import { MirrorError } from '../../core/errors.ts'
import type { Onward } from '../../json/envelope.ts'
import type { Meta } from '../http/response.ts'
import { type Session, pathAsked } from '../http/session.ts'
import { statusOf } from '../http/errors.ts'
import type { KnownShape } from './shape.ts'
import { type WalkBounds, createGuard } from './bounds.ts'
import { targetOf } from './page-key.ts'
import { type KnownList, type ReadPage, type Reading, readPage, unwalkable } from './page.ts'
import { type Step, createTrail } from './trail.ts'

/** A page with its position in the walk. */
export interface WalkedPage extends ReadPage {
  number: number
  /** The key (page-key.ts) that requested it; null for the first. */
  cursor: string | null
  next: string | null
}

/** A page that an earlier walk stored. */
interface StoredPage {
  cursor: string | null
  next: string | null
  etag: string | null
  lastModified: string | null
  sha256: Buffer
}

/** Receives the pages of a walk. */
export interface PageSink {
  /** Starts a walk or restarts it: earlier pages are discarded. */
  begin(): Promise<void> | void
  page(page: WalkedPage): Promise<void> | void
  /** Takes a page that equals the stored one. */
  kept(number: number): Promise<void> | void
}

/** Options of a walk. */
export interface WalkOptions extends Reading {
  /** Requested page size. */
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

/** Result of a walk. */
export interface WalkEnd {
  /** Upstream's date of the last page, unix milliseconds. */
  asOf: number
  /** Why the list may be incomplete; null: upstream indicated its end. */
  cut: string | null
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
  session: Session,
  path: string,
  options: WalkOptions,
  sink: PageSink,
): Promise<WalkEnd> {
  let { known } = options
  for (let restarts = 0; ; restarts++) {
    await sink.begin()
    try {
      return await walkOnce(session, path, { ...options, known }, sink, restarts === 0)
    } catch (error) {
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
  session: Session,
  path: string,
  options: Pick<WalkOptions, 'maxBytes'> & Reading,
): Promise<ReadPage | 'refused' | 'later'> {
  try {
    const answer = await session.fetchDocument(`${path}?limit=1`, { ...options, gzip: true })
    if (answer.status !== 200) return 'refused'
    return readPage(pathAsked(session, path), answer.body, answer.meta, options, null)
  } catch (error) {
    if (!(error instanceof MirrorError)) throw error
    if (error.code === 'upstream_not_found') return 'refused'
    if (error.code === 'upstream_shape') return 'later'
    if (error.code !== 'upstream_status') throw error
    return (statusOf(error) ?? 500) < 500 ? 'refused' : 'later'
  }
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
  session: Session,
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
  const guard = createGuard(place, options.bounds, options.now)
  const { cursorPath } = known
  let first: KnownShape = cursorPath === null ? null : { itemsPath: [], cursorPath }
  let cursor: string | null = null
  for (let number = 0; ; number++) {
    guard.begin(number)
    const earlier: StoredPage | null = useStored ? options.stored(number) : null
    const stored: StoredPage | null = earlier?.cursor === cursor ? earlier : null
    const answer = await detectVanished(cursor, () =>
      ask(targetOf(path, options.limit, cursor), stored),
    )
    let step: Step
    let total: number | null = null
    if (answer.page === null) {
      step = { next: stored?.next ?? null, cut: (stored?.next ?? null) === null ? known.cut : null }
      trail.kept(step)
      await sink.kept(number)
    } else {
      const read = readPage(place, answer.page, answer.meta, options, first)
      if (number === 0) first = { ...read.shape, cursorPath: read.shape.cursorPath ?? cursorPath }
      const same = stored?.sha256.equals(read.sha256) === true
      const other = number > 0 ? trail.repeatedCursor(read) : null
      const onward = other === null ? null : await trail.learn(other)
      if (onward !== null) throw new NextPageLearned({ onward })
      // The search of the same page found nothing before; it is not repeated.
      step = same && stored.next === null ? { next: null, cut: known.cut } : await trail.after(read)
      if (step.cursorPath !== undefined) throw new NextPageLearned({ cursorPath: step.cursorPath })
      total = read.total
      guard.page(read, answer.page.length, step.next)
      if (same) await sink.kept(number)
      else await sink.page({ ...read, number, cursor, next: step.next })
    }
    if (step.next === null)
      return { asOf: answer.meta.date, cut: step.cut, total, onward: trail.onward() }
    guard.goTo(step.next, number)
    cursor = step.next
  }
}

interface Fetched {
  page: Buffer | null
  meta: Meta
}

async function fetchPage(
  session: Session,
  path: string,
  { maxBytes, refuse }: WalkOptions,
  target: string,
  stored: StoredPage | null,
): Promise<Fetched> {
  const answer = await session.fetchDocument(target, { maxBytes, stored, gzip: true })
  if (answer.status === 304) return { page: null, meta: answer.meta }
  const costly = refuse(answer.body)
  if (costly !== null) throw unwalkable(pathAsked(session, path), costly)
  return { page: answer.body, meta: answer.meta }
}

async function detectVanished<T>(cursor: string | null, fetch: () => Promise<T>): Promise<T> {
  try {
    return await fetch()
  } catch (error) {
    const status = statusOf(error)
    if (cursor !== null && (status === 400 || status === 404 || status === 410))
      throw new PageVanished(`page ${cursor} is missing`, { cause: error })
    throw error
  }
}
