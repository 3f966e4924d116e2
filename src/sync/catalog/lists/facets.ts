import { plainName, resolveField } from '../../../base/json/field-names.ts'
import { fieldPathsOf, fieldsOfItem, namesOfPath } from '../../../base/json/forms/item-fields.ts'
import type { Facet } from '../../../base/domain/resources.ts'

/** Maximum field names stored per list; items with more fields are maps, whose keys are not field names. */
const MAX_NAMES = 2000

/** Learns the field names of a list's items and reads the values that the list's filters compare. */
export type FacetReader = ReturnType<typeof createFacetReader>

/**
 * Creates a reader of a resource's items that starts with the known names. Fields are chosen for the list as a whole: an item without the
 * field must not be read by a field of another meaning.
 */
export function createFacetReader(facets: readonly Facet[], known: Iterable<string>, resource: string) {
  let names = new Set(known)
  const seen = new Set<string>()
  let fields: (readonly string[])[] | null = null
  const fieldsNow = (): readonly (readonly string[])[] =>
    (fields ??= facets.map(({ field, values }) => resolveField(field, lastNames(names), values !== undefined)))
  const readings = new Set(names.size > 0 ? [JSON.stringify(fieldsNow())] : [])
  return {
    /** Records an item's field names; call it for every item of the list before `read` is final. */
    learn(item: Readonly<Record<string, unknown>>): void {
      for (const name of fieldPathsOf(item, resource)) {
        if (seen.has(name) || seen.size >= MAX_NAMES) continue
        seen.add(name)
        if (names.has(name)) continue
        names.add(name)
        fields = null
      }
    },
    /** Returns the value of each facet by the fields learned until now; null where the item has none. */
    read(item: Readonly<Record<string, unknown>>): (string | null)[] {
      if (fields === null) readings.add(JSON.stringify(fieldsNow()))
      const own = fieldsOfItem(item, resource)
      return fieldsNow().map((candidates, at) => valueOf(own, candidates, facets[at]))
    },
    /** Returns whether every item was read with the same fields that `read` uses now. */
    isSettled: (): boolean => readings.add(JSON.stringify(fieldsNow())).size === 1,
    /** Ends learning; names known before the walk are dropped unless stored pages are kept. */
    settle(keepsPages: boolean): void {
      if (keepsPages) return
      names = seen
      fields = null
    },
    /** Returns the learned names, sorted; of a field within an object as `fieldPathsOf` writes it. */
    names: (): string[] => [...names].sort(),
    /** Returns the query parameters that match no field of any item. */
    unusable: (): string[] =>
      facets.flatMap(({ param }, at) => (param !== null && fieldsNow()[at]?.length === 0 ? [param] : [])),
  }
}

/** Returns the names of fields without those of the objects that have them, each once. */
function lastNames(paths: Iterable<string>): Set<string> {
  return new Set([...paths].map((path) => namesOfPath(path).at(-1) ?? path))
}

function valueOf(
  item: Readonly<Record<string, unknown>>,
  names: readonly string[],
  facet: Facet | undefined,
): string | null {
  for (const name of names) {
    const value = item[name]
    if (typeof value !== 'string' && typeof value !== 'number') continue
    const text = String(value)
    if (facet?.isUpperCase === true) return text.toUpperCase()
    return facet?.values?.find((word) => plainName(word) === plainName(text)) ?? text
  }
  return null
}
