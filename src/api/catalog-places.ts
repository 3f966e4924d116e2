import type { CatalogList } from '../store/catalog.ts'
import type { OrderedEntry, ListPosition } from '../store/catalog-query.ts'
import type { Reads } from '../store/pinned.ts'
import { ANCHORS, type Anchor, readCursor, writeCursor } from './catalog-cursor.ts'
import type { Ordering } from './catalog-wishes.ts'

/** Where a page begins; with no place, at the start. */
export interface Beginning {
  place: ListPosition | null
  /** Of the page before. */
  anchors: readonly Anchor[]
}

/**
 * Finds places of a list in one order again by their cursors, wherever they are by now. `byId`: also by the id of the last
 * item seen, for a list that names no cursor.
 */
export function createListCursors(
  reads: Pick<Reads, 'readOrderedEntry'>,
  list: CatalogList,
  order: Ordering,
  byId: boolean,
) {
  const made = `${list.path} ${order.text}`
  return {
    /** Throws `bad_request` for what is no cursor of this list and order. */
    read(after: string | null): Beginning {
      if (after === null) return { place: null, anchors: [] }
      const last = byId ? reads.readOrderedEntry(list.id, after, order) : null
      if (last !== null) return { place: last, anchors: [{ id: last.id, sha: shaOf(last) }] }
      const { anchors, ordinal, value } = readCursor(after, made)
      let moved: OrderedEntry | null = null
      for (const { id, sha } of anchors) {
        const entry = reads.readOrderedEntry(list.id, id, order)
        // Between the place and the first anchor that is as it was, there is nothing but what changed or went.
        if (entry !== null && shaOf(entry) === sha) return { place: entry, anchors }
        moved ??= entry
      }
      // Fewer anchors than there may be are all that was ever shown, and none is as it was: the list begins anew.
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
      return writeCursor(
        { anchors, ordinal: last?.ordinal ?? -1, value: last?.value ?? null },
        made,
      )
    },
  }
}

function shaOf({ sha }: OrderedEntry): string {
  return sha.toString('hex', 0, 4)
}
