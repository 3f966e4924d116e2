import { type Slice, skipColon, skipComma, skipSpace, skipString, skipValue } from '../../base/json/slices.ts'

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

/** Begin each escape that can spell a letter of a name in another way. */
const SPELT = ['\\u006', '\\u007'].map((text) => Buffer.from(text))

/**
 * Returns where the value of a member of the outermost object begins, without a walk over what is before it: `name`, in ASCII letters
 * and with its quotes, is nowhere else in the text. Null where that is not so. The text is JSON that a parser took, and has the member.
 */
export function findOnlyMember(text: Buffer, name: Buffer): number | null {
  const at = text.indexOf(name)
  // Behind a backslash, the first quote is a character of a string that ends with the second.
  if (at < 0 || text[at - 1] === BACKSLASH || text.includes(name, at + 1)) return null
  return SPELT.some((escape) => text.includes(escape)) ? null : skipColon(text, at + name.length)
}

/** Whether the string between two offsets, with its quotes, is this name. */
function isKey(text: Buffer, from: number, to: number, name: Buffer): boolean {
  let same = to - from - 2 === name.length
  for (let at = from + 1; at < to - 1; at++) {
    if (text[at] === BACKSLASH) return JSON.parse(text.toString('utf8', from, to)) === name.toString()
    same &&= text[at] === name[at - from - 1]
  }
  return same
}
