import type { CatalogList } from '../store/catalog.ts'
import type { Order, Where } from '../store/catalog-query.ts'
import type { Moment } from './moment.ts'

/** Tallies kept at most: of different filters, and of different fields. */
const KEPT = 1000

/** What takes a look at a whole list, remembered until the next snapshot (`version`). */
export function createTallies({ reads }: Pick<Moment, 'reads'>) {
  const tallies = new Map<string, number>()
  let talliedFor = ''
  const remembered = (version: string, key: string, tally: () => number): number => {
    if (version !== talliedFor || tallies.size >= KEPT) tallies.clear()
    talliedFor = version
    const known = tallies.get(key)
    if (known !== undefined) return known
    const made = tally()
    tallies.set(key, made)
    return made
  }
  return {
    /** How many entries of a list the filters leave. */
    countOf(version: string, list: CatalogList, where: readonly Where[]): number {
      if (where.length === 0) return list.entries
      return remembered(version, `${list.id} ${JSON.stringify(where)}`, () =>
        reads.countCatalogEntries(list.id, where),
      )
    },
    /** False for an order by a field that no item has: a slip of the pen, which an answer in any order would hide. */
    isKnown(version: string, list: CatalogList, { facet, field }: Order): boolean {
      if (facet !== null || field === null || list.entries === 0) return true
      const has = (): number => Number(reads.hasCatalogField(list.id, field))
      return remembered(version, `${list.id} ${field}`, has) === 1
    },
  }
}
