import { MirrorError } from '../../core/errors.ts'
import type { Onward } from '../../json/envelope.ts'
import type { Meta } from '../http/response.ts'
import type { Session } from '../http/session.ts'
import { statusOf } from '../http/errors.ts'
import type { KnownShape } from './shape.ts'
import { type WalkBounds, createGuard } from './bounds.ts'
import { targetOf } from './page-key.ts'
import { type KnownList, type ReadPage, type Reading, readPage, unwalkable } from './page.ts'
import { type Step, createTrail } from './trail.ts'

/** A page in its place. */
export interface WalkedPage extends ReadPage {
  number: number
  /** The key (onward.ts) that asked for it; null for the first. */
  cursor: string | null
  next: string | null
}

/** What is known of a page from an earlier walk. */
interface StoredPage {
  cursor: string | null
  next: string | null
  etag: string | null
  lastModified: string | null
  sha256: Buffer
}

/** Takes pages as they come. */
export interface PageSink {
  /** A walk begins, for the first time or anew: whatever came before is void. */
  begin(): Promise<void> | void
  page(page: WalkedPage): Promise<void> | void
  /** The page is as it is stored. */
  kept(number: number): Promise<void> | void
}

/** How a list is walked. */
export interface WalkOptions extends Reading {
  /** Items asked for at once. */
  limit: number
  /** Cap on one page, bytes. */
  maxBytes: number
  /** Caps on the whole list, and the settings that name them. */
  bounds: WalkBounds
  stored(number: number): StoredPage | null
  /** An item's own identifier, by its bytes; null when it has none. */
  idOf: (item: Buffer) => string | null
  /** How the list went on when it was walked before, and why it was not all of it. */
  known: KnownList
  now: () => number
}

/** What became of a walk. */
export interface WalkEnd {
  /** Upstream's date of the last page, unix milliseconds. */
  asOf: number
  /** Why what was read is not known to be all of the list; null: it ended by upstream's own word. */
  cut: string | null
  /** How many items there are by the last page; null when it does not say, or is as it is stored. */
  total: number | null
  onward: Onward
}

const MAX_RESTARTS = 3

/**
 * Walks a paged list by what its pages turn out to say of the next one (wire facts, lists and cursors): a cursor, a URL, a
 * Link header, or the id of the last item. A page that is gone when its turn comes means that the list changed
 * underneath: the walk begins again. Throws `upstream_shape` for a list that leads back or never ends.
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
      if (error instanceof Learned) known = { ...known, ...error.known }
      else if (!(error instanceof Vanished)) throw error
      if (restarts === MAX_RESTARTS) {
        const message = `${path}: its pages vanish while they are read; the list was begun ${restarts + 1} times`
        throw new MirrorError('upstream_shape', message, { cause: error })
      }
    }
  }
}

/**
 * A page of a single item, to see what a page that is not the last looks like. `refused`: upstream gives no such page.
 * `later`: what came is a failure, which says nothing about the list.
 */
export async function probeList(
  session: Session,
  path: string,
  options: Pick<WalkOptions, 'maxBytes'> & Reading,
): Promise<ReadPage | 'refused' | 'later'> {
  try {
    const answer = await session.fetchDocument(`${path}?limit=1`, { ...options, gzip: true })
    if (answer.status !== 200) return 'refused'
    return readPage(path, answer.body, answer.meta, options, null)
  } catch (error) {
    if (!(error instanceof MirrorError)) throw error
    if (error.code === 'upstream_not_found') return 'refused'
    if (error.code === 'upstream_shape') return 'later'
    if (error.code !== 'upstream_status') throw error
    return (statusOf(error) ?? 500) < 500 ? 'refused' : 'later'
  }
}

/** A page that was named is not there any more. */
class Vanished extends Error {}

/** How the list goes on was found out on the way: from the first page on it is asked for like that. */
class Learned extends Error {
  readonly known: Partial<KnownList>
  constructor(known: Partial<KnownList>) {
    super('how the list goes on was found out')
    this.known = known
  }
}

async function walkOnce(
  session: Session,
  path: string,
  options: WalkOptions,
  sink: PageSink,
  useHeld: boolean,
): Promise<WalkEnd> {
  const { known } = options
  const ask = (target: string, stored: StoredPage | null): Promise<Fetched> =>
    fetchPage(session, path, options, target, stored)
  const trail = createTrail({ root: session.root, path, ...options }, async (target) => {
    const { page, meta } = await ask(target, null)
    return page === null ? null : readPage(path, page, meta, options, first)
  })
  const guard = createGuard(path, options.bounds, options.now)
  const { cursorPath } = known
  let first: KnownShape = cursorPath === null ? null : { itemsPath: [], cursorPath }
  let cursor: string | null = null
  for (let number = 0; ; number++) {
    guard.begin(number)
    const earlier: StoredPage | null = useHeld ? options.stored(number) : null
    const stored: StoredPage | null = earlier?.cursor === cursor ? earlier : null
    const answer = await vanishing(cursor, () => ask(targetOf(path, options.limit, cursor), stored))
    let step: Step
    let total: number | null = null
    if (answer.page === null) {
      step = { next: stored?.next ?? null, cut: (stored?.next ?? null) === null ? known.cut : null }
      trail.kept(step)
      await sink.kept(number)
    } else {
      const read = readPage(path, answer.page, answer.meta, options, first)
      if (number === 0) first = { ...read.shape, cursorPath: read.shape.cursorPath ?? cursorPath }
      const same = stored?.sha256.equals(read.sha256) === true
      const other = number > 0 ? trail.instead(read) : null
      const onward = other === null ? null : await trail.learn(other)
      if (onward !== null) throw new Learned({ onward })
      // What was looked for in the same page before, and not found, is not looked for again.
      step = same && stored.next === null ? { next: null, cut: known.cut } : await trail.after(read)
      if (step.cursorPath !== undefined) throw new Learned({ cursorPath: step.cursorPath })
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
  if (costly !== null) throw unwalkable(path, costly)
  return { page: answer.body, meta: answer.meta }
}

async function vanishing<T>(cursor: string | null, fetch: () => Promise<T>): Promise<T> {
  try {
    return await fetch()
  } catch (error) {
    const status = statusOf(error)
    if (cursor !== null && (status === 400 || status === 404 || status === 410))
      throw new Vanished(`page ${cursor} is gone`, { cause: error })
    throw error
  }
}
