/** Creates values once per name; `made` has those that were. */
interface Memo<Name, Thing> {
  (name: Name): Thing
  readonly made: ReadonlyMap<Name, Thing>
}

/** Returns a function that creates a value once per name. */
export function memoize<Name extends string, Thing>(make: (name: Name) => Thing): Memo<Name, Thing> {
  const made = new Map<Name, Thing>()
  const get = (name: Name): Thing => {
    const stored = made.get(name)
    if (stored !== undefined) return stored
    const fresh = make(name)
    made.set(name, fresh)
    return fresh
  }
  return Object.assign(get, { made })
}
