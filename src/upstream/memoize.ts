/** Returns a function that creates a value once per name. */
export function memoize<Name extends string, Thing>(make: (name: Name) => Thing): (name: Name) => Thing {
  const made = new Map<Name, Thing>()
  return (name) => {
    const stored = made.get(name)
    if (stored !== undefined) return stored
    const fresh = make(name)
    made.set(name, fresh)
    return fresh
  }
}
