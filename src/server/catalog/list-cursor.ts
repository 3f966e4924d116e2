import { sha256Of } from '../../base/digest.ts'
import { MirrorError } from '../../base/errors.ts'
import { readToken, writeToken } from '../../base/json/objects.ts'
import type { CatalogList } from '../../store/catalog/lists.ts'
import type { OrderedEntry, ListPosition, Where } from '../../store/catalog/list-query.ts'
import type { Reads } from '../../store/reads.ts'
import type { Ordering } from './list-query.ts'

/** An entry by which a place is found again, and what it was like then. */
interface Anchor {
  id: string
  /** 8 hex digits of its content's digest. */
  sha: string
}

/** Where a page begins: behind the first of its anchors that is as it was. */
interface Cursor {
  /** The last entries that were shown, the very last one first. */
  anchors: readonly Anchor[]
  /** The place of the very last one then: all there is to go by when no anchor is left. */
  ordinal: number
  value: string | number | null
}

/** Entries stored in a cursor. A position is lost only when all of them changed or were removed between two pages. */
const ANCHORS = 8

/**
 * Encodes a cursor. It names entries, not a number of entries to skip, so a page begins where the last one ended even if a
 * sync publishes in between. It is valid only for the list, the order and the filters (`made`) that it was created for.
 */
function writeCursor({ anchors, ordinal, value }: Cursor, made: string): string {
  const named = anchors.flatMap(({ id, sha }) => [id, sha])
  return writeToken([markOf(made), ordinal, value, ...named])
}

/** Reads a cursor. Throws `bad_request` for anything else, and for one of another list, order or filter. */
export function readCursor(text: string, made: string): Cursor {
  const [mark, ordinal, value, ...named] = readToken(text)
  if (typeof mark !== 'string' || !Number.isSafeInteger(ordinal)) throw foreign()
  if (value !== null && typeof value !== 'string' && typeof value !== 'number') throw foreign()
  if (named.length > 2 * ANCHORS || !named.every((part) => typeof part === 'string')) throw foreign()
  if (mark !== markOf(made)) throw refused('belongs to another list, order or filter')
  const anchors: Anchor[] = []
  for (let at = 0; at + 1 < named.length; at += 2) anchors.push({ id: named[at] ?? '', sha: named[at + 1] ?? '' })
  return { anchors, ordinal: ordinal as number, value }
}

/** Returns what a cursor is valid for. */
export function madeFor(path: string, order: Pick<Ordering, 'text'>, where: readonly Where[]): string {
  return JSON.stringify([path, order.text, ...where.map(({ facet, values }) => [facet, ...[...values].sort()])])
}

function markOf(made: string): string {
  return sha256Of(made).toString('base64url').slice(0, 6)
}

function foreign(): MirrorError {
  return refused('is not a cursor of this mirror')
}

function refused(why: string): MirrorError {
  const message = `after=… ${why}: take it from the page before, and keep the other parameters as they were`
  return new MirrorError('bad_request', message)
}

/** Where a page begins; with no place, at the start. */
interface Beginning {
  place: ListPosition | null
  /** Of the page before. */
  anchors: readonly Anchor[]
}

/**
 * Finds places of a list in one order, with one filter, again by their cursors, wherever they are by now. `byId`: also by the id of the last
 * item seen, for a list that names no cursor.
 */
export function createListCursors(
  reads: Pick<Reads, 'catalog'>,
  { list, order, where, byId }: { list: CatalogList; order: Ordering; where: readonly Where[]; byId: boolean },
) {
  const made = madeFor(list.path, order, where)
  return {
    /** Throws `bad_request` for what is no cursor of this list, order and filter. */
    read(after: string | null): Beginning {
      if (after === null) return { place: null, anchors: [] }
      const last = byId ? reads.catalog.readOrderedEntry(list.id, after, order) : null
      if (last !== null) return { place: last, anchors: [{ id: last.id, sha: shaOf(last) }] }
      const { anchors, ordinal, value } = readCursor(after, made)
      let moved: OrderedEntry | null = null
      for (const { id, sha } of anchors) {
        const entry = reads.catalog.readOrderedEntry(list.id, id, order)
        // Between the place and the first anchor that is as it was, there is nothing but what changed or went.
        if (entry !== null && shaOf(entry) === sha) return { place: entry, anchors }
        moved ??= entry
      }
      // The cursor contains the whole history and no anchor matches: restart from the first page.
      if (anchors.length < ANCHORS) return { place: null, anchors: [] }
      return { place: { value, ordinal: moved?.ordinal ?? ordinal }, anchors }
    },
    /** The cursor behind a page. */
    write(shown: readonly OrderedEntry[], from: Beginning): string {
      const last = shown.at(-1)
      const own = shown
        .slice(-ANCHORS)
        .reverse()
        .map((entry) => ({ id: entry.id, sha: shaOf(entry) }))
      const anchors = [...own, ...from.anchors].slice(0, ANCHORS)
      return writeCursor({ anchors, ordinal: last?.ordinal ?? -1, value: last?.value ?? null }, made)
    },
  }
}

function shaOf({ sha }: OrderedEntry): string {
  return sha.toString('hex', 0, 4)
}
