import type { Noun } from './shapes/record.ts'

/** One thing of the service: what lists show of it, and what only its own page adds. */
export interface Entry<F extends object = object> {
  id: string
  /** Its place in its collection; never used twice. */
  seq: number
  /** Unix milliseconds, whole seconds. */
  lastModified: number
  listed: F
  detail: object
}

/** Things of one kind, in the order in which they came. */
export interface Collection<F extends object = object> {
  readonly noun: Noun
  get(id: string): Entry<F> | undefined
  all(): readonly Entry<F>[]
  /** Adds a thing, or replaces the one of the same id in its place. */
  put(entry: Omit<Entry<F>, 'seq'>): Entry<F>
  remove(id: string): boolean
  /** Unix milliseconds of the last change. */
  lastModified(): number
  /** A selection that is kept until the collection changes; `make` must follow from `key` alone. */
  select(key: string, make: () => readonly Entry<F>[]): readonly Entry<F>[]
}

const KEPT_SELECTIONS = 64

/** A collection with what was generated for it, ids distinct. */
export function createCollection<F extends object>(
  noun: Noun,
  generated: readonly Entry<F>[],
  lastModified: number,
): Collection<F> {
  const entries = new Map(generated.map((entry) => [entry.id, entry]))
  const selections = new Map<string, readonly Entry<F>[]>()
  let listed: readonly Entry<F>[] | undefined
  let next = generated.length
  let at = lastModified
  const changed = (time: number): void => {
    listed = undefined
    selections.clear()
    at = time > at ? time : at + 1000 // Last-Modified must move with every change
  }
  return {
    noun,
    get: (id) => entries.get(id),
    all: () => (listed ??= [...entries.values()]),
    put(given) {
      const entry = { ...given, seq: entries.get(given.id)?.seq ?? next++ }
      entries.set(entry.id, entry)
      changed(entry.lastModified)
      return entry
    },
    remove(id) {
      const had = entries.delete(id)
      if (had) changed(at)
      return had
    },
    lastModified: () => at,
    select: (key, make) => selections.get(key) ?? keep(selections, key, make()),
  }
}

/** Keeps a selection, the oldest one going when there are too many. */
function keep<F extends object>(
  selections: Map<string, readonly Entry<F>[]>,
  key: string,
  made: readonly Entry<F>[],
): readonly Entry<F>[] {
  const [oldest] = selections.keys()
  if (selections.size >= KEPT_SELECTIONS && oldest !== undefined) selections.delete(oldest)
  selections.set(key, made)
  return made
}
