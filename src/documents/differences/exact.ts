import { endOfText } from './bounds.ts'

/** The name under which the content of a record that is no JSON object is compared. */
const WHOLE = '(record)'

/**
 * Returns the names of the fields whose values differ in two JSON texts, to the last digit of a number and at any depth;
 * white space, the order of members and the way a text is escaped do not count. Both texts must be valid JSON.
 */
export function changedFields(before: string, after: string): string[] {
  const numbers = new Map<string, number>()
  const numberOf = (content: string): number => {
    const found = numbers.get(content) ?? numbers.size
    if (found === numbers.size) numbers.set(content, found)
    return found
  }
  // Most fields of a record that changed are written as before, and most others in the same order.
  const isSame = (one: string, other = ''): boolean =>
    one === other || (isSameInStep(one, other) ?? valueIn(one, numberOf) === valueIn(other, numberOf))
  const old = fieldsIn(before)
  const now = fieldsIn(after)
  const names = new Set([...(old?.keys() ?? []), ...(now?.keys() ?? [])])
  if (old === null || now === null) {
    const isEqual = old === now && isSame(before, after)
    return isEqual ? [] : [...names.add(WHOLE)].sort()
  }
  const isChanged = (name: string): boolean => {
    const one = old.get(name) ?? []
    const other = now.get(name) ?? []
    return one.length !== other.length || !one.every((text, i) => isSame(text, other[i]))
  }
  return [...names].filter(isChanged).sort()
}

/** Returns the texts of an object's members by name, several where it is there twice; null for other JSON. */
function fieldsIn(text: string): Map<string, string[]> | null {
  const fields = new Map<string, string[]>()
  let at = behindBlanks(text, 0)
  if (text.charCodeAt(at) !== OPEN_OBJECT) return null
  for (at = behindBlanks(text, at + 1); text.charCodeAt(at) === QUOTE; at = behindBlanks(text, at)) {
    const name = textOf(text.slice(at, (at = endOfText(text, at) + 1)))
    at = behindBlanks(text, behindBlanks(text, at) + 1) // the colon
    const value = text.slice(at, (at = endOfValue(text, at)))
    const known = fields.get(name)
    if (known === undefined) fields.set(name, [value])
    else known.push(value)
    at = behindBlanks(text, at)
    if (text.charCodeAt(at) === COMMA) at++
  }
  return fields
}

/** Returns what a text of JSON, in its quotes, says. */
function textOf(quoted: string): string {
  return quoted.includes('\\') ? String(JSON.parse(quoted)) : quoted.slice(1, -1)
}

function behindBlanks(text: string, from: number): number {
  let at = from
  while (text.charCodeAt(at) <= 0x20) at++
  return at
}

const SIGN = /["[\]{}]/g

/** Returns the offset behind the value that begins at an offset. */
function endOfValue(text: string, from: number): number {
  const sign = text.charCodeAt(from)
  if (sign === QUOTE) return endOfText(text, from) + 1
  if (sign !== OPEN_LIST && sign !== OPEN_OBJECT) {
    LITERAL.lastIndex = from
    return from + (LITERAL.exec(text)?.[0].length ?? 0)
  }
  let depth = 0
  SIGN.lastIndex = from
  for (let found = SIGN.exec(text); found !== null; found = SIGN.exec(text)) {
    const next = text.charCodeAt(found.index)
    if (next === QUOTE) SIGN.lastIndex = endOfText(text, found.index) + 1
    else if (next === OPEN_LIST || next === OPEN_OBJECT) depth++
    else if (--depth === 0) return SIGN.lastIndex
  }
  return text.length
}

/** Whether two texts have the same value; null: not known, for an object has its members in another order, or others. */
function isSameInStep(one: string, other: string): boolean | null {
  let a = behindBlanks(one, 0)
  let b = behindBlanks(other, 0)
  while (a < one.length && b < other.length) {
    const endA = endOfToken(one, a)
    const endB = endOfToken(other, b)
    const mine = one.slice(a, endA)
    const its = other.slice(b, endB)
    const areTexts = one.charCodeAt(a) === QUOTE && other.charCodeAt(b) === QUOTE
    a = behindBlanks(one, endA)
    b = behindBlanks(other, endB)
    if (mine === its || (areTexts && textOf(mine) === textOf(its))) continue
    const areNames = areTexts && one.charCodeAt(a) === COLON && other.charCodeAt(b) === COLON
    return areNames ? null : false
  }
  return a === one.length && b === other.length
}

/** Returns the offset behind a text, a literal or a sign. */
function endOfToken(text: string, from: number): number {
  const sign = text.charCodeAt(from)
  if (sign === QUOTE) return endOfText(text, from) + 1
  LITERAL.lastIndex = from
  const isSign = sign === COMMA || sign === COLON || '{}[]'.includes(text.charAt(from))
  return from + (isSign ? 1 : Math.max(LITERAL.exec(text)?.[0].length ?? 0, 1))
}

/** A list or object that is not closed yet: numbers of its values, and of the name of each, 0 in a list. */
interface Open {
  readonly isObject: boolean
  readonly members: { readonly name: string; readonly value: number }[]
  name: string | null
}

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_LIST = 0x5b
const OPEN_OBJECT = 0x7b
const LITERAL = /[^\s,\]}]+/y

/** Numbers the values of a text from the inside, and returns its own number: equal values have equal numbers. Nothing recurses, so depth has no limit. */
function valueIn(text: string, numberOf: (content: string) => number): number | undefined {
  const open: Open[] = [{ isObject: false, members: [], name: null }]
  const put = (value: number): void => {
    const into = open.at(-1)
    into?.members.push({ name: into.name ?? '', value })
    if (into !== undefined) into.name = null
  }
  for (let at = 0; at < text.length; at++) {
    const sign = text.charCodeAt(at)
    const into = open.at(-1)
    if (sign === QUOTE) {
      const end = endOfText(text, at)
      const value = textOf(text.slice(at, end + 1))
      if (into?.isObject === true && into.name === null) into.name = value
      else put(numberOf(`"${value}`))
      at = end
    } else if (sign === OPEN_LIST || sign === OPEN_OBJECT)
      open.push({ isObject: sign === OPEN_OBJECT, members: [], name: null })
    else if (sign === OPEN_LIST + 2 || sign === OPEN_OBJECT + 2) {
      const closed = open.pop()
      if (closed !== undefined) put(numberOf(contentOf(closed, numberOf)))
    } else if (sign > 0x20 && sign !== COMMA && sign !== COLON) {
      LITERAL.lastIndex = at
      const literal = LITERAL.exec(text)?.[0] ?? ''
      put(numberOf(literal))
      at += Math.max(literal.length, 1) - 1
    }
  }
  return open[0]?.members[0]?.value
}

function contentOf({ isObject, members }: Open, numberOf: (content: string) => number): string {
  if (!isObject) return `[${members.map(({ value }) => value).join()}`
  const named = members.map(({ name, value }) => [numberOf(`"${name}`), value] as const)
  return `{${named.sort(([one], [other]) => one - other).join()}`
}
