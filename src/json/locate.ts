import { type Slice, elementsOf, membersOf, skipSpace, skipValue } from './slices.ts'

/** Where a value stands: names of members and places in lists, from the top. */
export type JsonPath = readonly (string | number)[]

/** The value at a path; null when there is none. Of members that repeat a name the last counts, as for a parser. */
export function locate(text: Buffer, path: JsonPath): Slice | null {
  if (path.length === 0) return wholeOf(text)
  let at = 0
  let found: Slice | null = null
  for (const step of path) {
    found = stepInto(text, at, step)
    if (found === null) return null
    at = found.start
  }
  return found
}

function wholeOf(text: Buffer): Slice {
  const start = skipSpace(text, 0)
  return { start, end: skipValue(text, start) }
}

function stepInto(text: Buffer, at: number, step: string | number): Slice | null {
  let found: Slice | null = null
  if (typeof step === 'string') {
    for (const { name, value } of membersOf(text, at)) if (name === step) found = value
    return found
  }
  let place = 0
  for (const element of elementsOf(text, at)) if (place++ === step) return element
  return null
}

/** The value at a path of parsed JSON; undefined when there is none. */
export function valueAt(value: unknown, path: JsonPath): unknown {
  let at = value
  for (const step of path) {
    if (typeof at !== 'object' || at === null) return undefined
    at = (at as Record<string | number, unknown>)[step]
  }
  return at
}
