import { type Slice, skipColon, skipComma, skipSpace, skipString, skipValue } from './slices.ts'

const OPEN = 0x7b
const CLOSE = 0x7d
const BACKSLASH = 0x5c

/**
 * Finds members of the object at `at` by their names in UTF-8, in one walk; null for a name that it does not have. Of members
 * with the same name the last counts, as in a parser.
 */
export function findMembers(text: Buffer, at: number, names: readonly Buffer[]): (Slice | null)[] {
  const found = names.map((): Slice | null => null)
  let next = skipSpace(text, at)
  if (text[next] !== OPEN) return found
  next = skipSpace(text, next + 1)
  while (text[next] !== CLOSE) {
    const end = skipString(text, next)
    const start = skipColon(text, end)
    const value = { start, end: skipValue(text, start) }
    for (const [i, name] of names.entries()) if (isKey(text, next, end, name)) found[i] = value
    next = skipComma(text, value.end, CLOSE)
  }
  return found
}

/** Whether the string between two offsets, with its quotes, is this name. */
function isKey(text: Buffer, from: number, to: number, name: Buffer): boolean {
  let same = to - from - 2 === name.length
  for (let at = from + 1; at < to - 1; at++) {
    if (text[at] === BACKSLASH)
      return JSON.parse(text.toString('utf8', from, to)) === name.toString()
    same &&= text[at] === name[at - from - 1]
  }
  return same
}
