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
  const [old, now] = [fieldsIn(before, numberOf), fieldsIn(after, numberOf)]
  const names = new Set([...old.keys(), ...now.keys()])
  return [...names].filter((name) => old.get(name) !== now.get(name)).sort()
}

/** A list or object that is not closed yet: numbers of its values, and of the name of each, 0 in a list. */
interface Open {
  readonly isObject: boolean
  readonly members: { readonly name: string; readonly value: number }[]
  name: string | null
}

const QUOTE = 0x22
const OPEN_LIST = 0x5b
const OPEN_OBJECT = 0x7b
const LITERAL = /[^\s,\]}]+/y

/** Numbers the values of a text from the inside: equal values have equal numbers. Nothing recurses, so depth has no limit. */
function fieldsIn(text: string, numberOf: (content: string) => number): Map<string, string> {
  const open: Open[] = [{ isObject: false, members: [], name: null }]
  let closed: Open | undefined
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
      const value = String(JSON.parse(text.slice(at, end + 1)))
      if (into?.isObject === true && into.name === null) into.name = value
      else put(numberOf(`"${value}`))
      at = end
    } else if (sign === OPEN_LIST || sign === OPEN_OBJECT)
      open.push({ isObject: sign === OPEN_OBJECT, members: [], name: null })
    else if (sign === OPEN_LIST + 2 || sign === OPEN_OBJECT + 2) {
      closed = open.pop()
      if (closed !== undefined) put(numberOf(contentOf(closed, numberOf)))
    } else if (sign > 0x20 && sign !== 0x2c && sign !== 0x3a) {
      LITERAL.lastIndex = at
      const literal = LITERAL.exec(text)?.[0] ?? ''
      put(numberOf(literal))
      at += Math.max(literal.length, 1) - 1
    }
  }
  if (closed?.isObject === true) return membersOf(closed)
  return new Map([[WHOLE, String(open[0]?.members[0]?.value)]])
}

function contentOf({ isObject, members }: Open, numberOf: (content: string) => number): string {
  if (!isObject) return `[${members.map(({ value }) => value).join()}`
  const named = members.map(({ name, value }) => [numberOf(`"${name}`), value] as const)
  return `{${named.sort(([one], [other]) => one - other).join()}`
}

/** The members of the outermost object, which is closed last; all values of a name that is there twice. */
function membersOf({ members }: Open): Map<string, string> {
  const fields = new Map<string, string>()
  for (const { name, value } of members) fields.set(name, `${fields.get(name) ?? ''} ${value}`)
  return fields
}
