import type { Facet } from '../resources.ts'
import type { CatalogList } from '../store/catalog.ts'
import type { Where } from '../store/catalog-query.ts'
import type { Reads } from '../store/pinned.ts'
import { unknownField } from './catalog-wishes.ts'

/** What is remembered at most: counts of different filters, and fields of different lists. */
const KEPT = 1000

type Source = Pick<
  Reads,
  'countCatalogEntries' | 'hasCatalogFacet' | 'readFieldNames' | 'findFieldNames'
>

/** What takes a look at a whole list, remembered until the next snapshot (`version`). */
export function createTallies(reads: Source) {
  const tallies = new Map<string, unknown>()
  let talliedFor = ''
  const remembered = <Value>(version: string, key: string, tally: () => Value): Value => {
    if (version !== talliedFor || tallies.size >= KEPT) tallies.clear()
    talliedFor = version
    if (tallies.has(key)) return tallies.get(key) as Value // what this key was set to
    const made = tally()
    tallies.set(key, made)
    return made
  }
  return {
    /** How many entries of a list the filters leave. */
    countOf(version: string, list: CatalogList, where: readonly Where[]): number {
      if (where.length === 0) return list.entries
      return remembered(version, `count ${list.id} ${JSON.stringify(where)}`, () =>
        reads.countCatalogEntries(list.id, where),
      )
    },
    /** The names of the fields that items of a list have. */
    fieldsOf(version: string, list: CatalogList): readonly string[] {
      return (
        reads.readFieldNames(list.id) ??
        remembered(version, `fields ${list.id}`, () => reads.findFieldNames(list.id))
      )
    },
    /**
     * Throws `not_supported` for a filter whose answer would be empty whatever upstream has: no item has its field, or
     * none has a value that it can be asked for.
     */
    checkFilters(list: CatalogList, facets: readonly Facet[], where: readonly Where[]): void {
      if (list.entries === 0) return
      for (const { facet } of where) {
        const { param, field, values } = facets[facet] ?? {}
        if (reads.hasCatalogFacet(list.id, facet, values)) continue
        throw unknownField(param ?? '', field ?? '')
      }
    },
    /** Throws `not_supported` for an order by a facet that no item has. */
    checkOrder(list: CatalogList, facets: readonly Facet[], facet: number | null): void {
      if (facet === null || list.entries === 0 || reads.hasCatalogFacet(list.id, facet)) return
      throw unknownField('order', facets[facet]?.field ?? '')
    },
  }
}
