import { plainName, resolveField } from '../../../json/field-names.ts'
import type { Facet } from '../../../domain/resources.ts'

/** Names of fields that are remembered of a list; items with more are maps, whose keys are no fields. */
const MAX_NAMES = 2000

/** Learns which fields the items of a list have, and reads of an item what the list's filters compare. */
export interface FacetReader {
  /** Takes notice of an item's fields; call for every item of the list before `read` is final. */
  learn(item: Readonly<Record<string, unknown>>): void
  /** The value of each facet, as the fields learned so far have it; null where an item has none. */
  read(item: Readonly<Record<string, unknown>>): (string | null)[]
  /** Whether every item was read by the same fields as `read` reads by now. */
  isSettled(): boolean
  /** Ends the learning: unless pages stay as they are stored, what was known before the walk is forgotten. */
  settle(keepsPages: boolean): void
  /** The names learned, in order. */
  names(): string[]
  /** Query parameters that name no field of any item. */
  unusable(): string[]
}

/**
 * Makes a reader that begins with names which are known already. The decision is made for the list as a whole: an item
 * that lacks the field is not to be read by a field of another meaning.
 */
export function createFacetReader(facets: readonly Facet[], known: Iterable<string>): FacetReader {
  let names = new Set(known)
  const met = new Set<string>()
  let fields: (readonly string[])[] | null = null
  const fieldsNow = (): readonly (readonly string[])[] =>
    (fields ??= facets.map(({ field, values }) => resolveField(field, names, values !== undefined)))
  const readings = new Set(names.size > 0 ? [JSON.stringify(fieldsNow())] : [])
  return {
    learn(item) {
      for (const name of Object.keys(item)) {
        if (met.has(name) || met.size >= MAX_NAMES) continue
        met.add(name)
        if (names.has(name)) continue
        names.add(name)
        fields = null
      }
    },
    read(item) {
      if (fields === null) readings.add(JSON.stringify(fieldsNow()))
      return fieldsNow().map((candidates, at) => valueOf(item, candidates, facets[at]?.values))
    },
    isSettled: () => readings.add(JSON.stringify(fieldsNow())).size === 1,
    settle(keepsPages) {
      if (keepsPages) return
      names = met
      fields = null
    },
    names: () => [...names].sort(),
    unusable: () =>
      facets.flatMap(({ param }, at) =>
        param !== null && fieldsNow()[at]?.length === 0 ? [param] : [],
      ),
  }
}

function valueOf(
  item: Readonly<Record<string, unknown>>,
  names: readonly string[],
  vocabulary: readonly string[] | undefined,
): string | null {
  for (const name of names) {
    const value = item[name]
    if (typeof value !== 'string' && typeof value !== 'number') continue
    const text = String(value)
    return vocabulary?.find((word) => plainName(word) === plainName(text)) ?? text
  }
  return null
}
