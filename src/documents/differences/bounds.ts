import { eachObject, fieldsOf } from '../../base/json/objects.ts'

/** JSON values in a record that is compared: real ones have a few thousand at most. */
const MAX_VALUES = 30_000
/** Characters of a package's name and ecosystem together: each difference of the package repeats them. */
const MAX_NAME = 300

/** Nesting of a record that is compared: what is deeper cannot be written again, and is no real one. */
const MAX_DEPTH = 200

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c

/**
 * Returns why a record is not compared, such as `more than 30000 values`; null when it is. Differences are found in a time
 * about linear in the values of a record, and take as much memory as values and names together.
 */
export function refuseComparison(text: string, json: unknown): string | null {
  // Each value has a character at least.
  if (text.length > MAX_VALUES && countValues(text) > MAX_VALUES) return `more than ${MAX_VALUES} values`
  if (text.length > MAX_DEPTH && isTooDeep(text)) return `nested in more than ${MAX_DEPTH} levels`
  for (const entry of eachObject(fieldsOf(json)['affected'])) {
    const { ecosystem, name } = fieldsOf(entry['package'])
    if (lengthOf(ecosystem) + lengthOf(name) > MAX_NAME)
      return `a package whose name is longer than ${MAX_NAME} characters`
  }
  return null
}

/** Counts what JSON contains, by its commas and opening brackets outside of texts; stops above the bound. */
function countValues(text: string): number {
  let values = 1
  for (let at = 0; at < text.length && values <= MAX_VALUES; at++) {
    const sign = text.charCodeAt(at)
    if (sign === QUOTE) at = endOfText(text, at)
    else if (sign === COMMA || sign === 0x5b || sign === 0x7b) values++
  }
  return values
}

/** Whether JSON is nested deeper than the bound, outside of texts. */
function isTooDeep(text: string): boolean {
  let depth = 0
  for (let at = 0; at < text.length && depth <= MAX_DEPTH; at++) {
    const sign = text.charCodeAt(at)
    if (sign === QUOTE) at = endOfText(text, at)
    else if (sign === 0x5b || sign === 0x7b) depth++
    else if (sign === 0x5d || sign === 0x7d) depth--
  }
  return depth > MAX_DEPTH
}

/** Returns the offset of the quote that ends the text at an offset. */
export function endOfText(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let before = at - 1
    while (text.charCodeAt(before) === BACKSLASH) before--
    if ((at - before) % 2 === 1) return at // as many escape each other
  }
  return text.length
}

function lengthOf(value: unknown): number {
  return typeof value === 'string' ? value.length : 0
}
