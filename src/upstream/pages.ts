import { createHash } from 'node:crypto'
import { MirrorError } from '../errors.ts'
import { locate } from '../json/locate.ts'
import { elementsOf } from '../json/slices.ts'
import type { Meta } from './answers.ts'
import type { Session } from './session.ts'
import { statusOf } from './retries.ts'
import { type ListShape, learnList } from './shape.ts'

/** A page of a list as it came: upstream's own bytes of each item. */
export interface WalkedPage {
  number: number
  /** The cursor that asked for it; null for the first. */
  cursor: string | null
  next: string | null
  etag: string | null
  lastModified: string | null
  sha256: Buffer
  items: Buffer[]
  /** The page parsed, and where things lie in it. */
  value: unknown
  shape: ListShape
}

/** What is known of a page from an earlier walk. */
export interface HeldPage {
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
  /** The page is as it is held. */
  kept(number: number): Promise<void> | void
}

/** How a list is walked. */
export interface WalkOptions {
  /** Items asked for at once. */
  limit: number
  /** Cap on one page, bytes. */
  maxBytes: number
  held(number: number): HeldPage | null
  /** Why a page must not be parsed, from its bytes; null when it may. */
  refuse(body: Buffer): string | null
}

const MAX_RESTARTS = 3
const MAX_PAGES = 100_000
/** Empty pages in a row that still name a next one. */
const MAX_EMPTY = 3

/**
 * Walks a paged list with the cursor that its pages turn out to have (wire facts, lists and cursors). A page that is
 * gone when its turn comes means that the list changed underneath: the walk begins anew. Throws `upstream_shape` for
 * a cursor that leads back or never ends. Returns upstream's date of the last page, unix milliseconds.
 */
export async function walkList(
  session: Session,
  path: string,
  options: WalkOptions,
  sink: PageSink,
): Promise<number> {
  for (let restarts = 0; ; restarts++) {
    await sink.begin()
    try {
      return await walkOnce(session, path, options, sink, restarts === 0)
    } catch (error) {
      if (!(error instanceof Vanished)) throw error
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
  { maxBytes }: Pick<WalkOptions, 'maxBytes'>,
): Promise<Pick<WalkedPage, 'value' | 'shape'> | 'refused' | 'later'> {
  try {
    const answer = await session.fetchDocument(`${path}?limit=1`, { maxBytes, gzip: true })
    if (answer.status !== 200) return 'refused'
    const value = parse(path, answer.body)
    return { value, shape: learnList(value) }
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

async function walkOnce(
  session: Session,
  path: string,
  options: WalkOptions,
  sink: PageSink,
  useHeld: boolean,
): Promise<number> {
  const seen = new Set<string>()
  let cursor: string | null = null
  let last: Buffer | null = null
  let empty = 0
  for (let number = 0; number < MAX_PAGES; number++) {
    const known: HeldPage | null = useHeld ? options.held(number) : null
    const held: HeldPage | null = known?.cursor === cursor ? known : null
    const answer = await fetchPage(session, path, options, cursor, held)
    let next: string | null
    if (answer.page === null) {
      next = held?.next ?? null
      await sink.kept(number)
    } else {
      const costly = options.refuse(answer.page)
      if (costly !== null) throw shape(path, costly)
      const page = toPage(path, number, cursor, answer.page, answer.meta)
      next = page.next
      empty = page.items.length === 0 && next !== null ? empty + 1 : 0
      if (empty === MAX_EMPTY)
        throw shape(path, `${MAX_EMPTY} empty pages in a row, and more to come`)
      if (last?.equals(page.sha256) === true && next !== null) {
        throw shape(path, `page ${number + 1} repeats the one before it`)
      }
      last = page.sha256
      if (held?.sha256.equals(page.sha256) === true) await sink.kept(number)
      else await sink.page(page)
    }
    if (next === null) return answer.meta.date
    if (seen.has(next))
      throw shape(path, `the cursor of page ${number + 1} leads back to an earlier page`)
    seen.add(next)
    cursor = next
  }
  throw shape(path, `it does not end after ${MAX_PAGES} pages`)
}

async function fetchPage(
  session: Session,
  path: string,
  { limit, maxBytes }: WalkOptions,
  cursor: string | null,
  held: HeldPage | null,
): Promise<{ page: Buffer | null; meta: Meta }> {
  const after = cursor === null ? '' : `&after=${encodeURIComponent(cursor.toWellFormed())}`
  try {
    const target = `${path}?limit=${limit}${after}`
    const answer = await session.fetchDocument(target, { maxBytes, held, gzip: true })
    return answer.status === 304
      ? { page: null, meta: answer.meta }
      : { page: answer.body, meta: answer.meta }
  } catch (error) {
    const status = statusOf(error)
    if (cursor !== null && (status === 400 || status === 404 || status === 410)) {
      throw new Vanished(`${path}: page ${cursor} is gone`, { cause: error })
    }
    throw error
  }
}

function toPage(
  path: string,
  number: number,
  cursor: string | null,
  body: Buffer,
  { etag, lastModified }: Meta,
): WalkedPage {
  const value = parse(path, body)
  const shape = learnList(value)
  const array = shape.itemsPath.length === 0 ? 0 : (locate(body, shape.itemsPath)?.start ?? 0)
  const items = [...elementsOf(body, array)].map(({ start, end }) => body.subarray(start, end))
  const sha256 = createHash('sha256').update(body).digest()
  return { number, cursor, next: shape.next, etag, lastModified, sha256, items, value, shape }
}

function parse(path: string, body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'))
  } catch (error) {
    throw new MirrorError('upstream_shape', `${path}: a page is not JSON`, { cause: error })
  }
}

function shape(path: string, why: string): MirrorError {
  return new MirrorError('upstream_shape', `${path}: ${why}`)
}
