/**
 * Returns a report that is made once a second at most, however often it is asked for, and again when another generation is
 * served: the report of the one before may have no data.
 */
export function onceASecond<T>(make: () => T, now: () => number, servedGeneration: () => number | undefined): () => T {
  let cached: { readonly value: T; readonly at: number; readonly of: number | undefined } | null = null
  return () => {
    const at = now()
    const of = servedGeneration()
    if (cached === null || cached.of !== of || Math.abs(at - cached.at) >= 1000) cached = { value: make(), at, of }
    return cached.value
  }
}
