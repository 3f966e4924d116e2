/** A JSON object with unknown members. */
export type Fields = Readonly<Record<string, unknown>>

/** Reports whether a value is a JSON object, and not an array. */
export function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Reports whether a value is a whole number that is not negative. */
export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0
}

/** Returns the objects of a JSON list; none for any other value. */
export function eachObject(value: unknown): readonly Fields[] {
  if (!Array.isArray(value)) return []
  return (value as unknown[]).filter((item): item is Fields => typeof item === 'object' && item !== null)
}

/** Returns a value as an object; an empty one when it is not an object. */
export function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {}
}

/** Returns whether JSON in UTF-8 begins with a byte order mark, which some programs write. */
export function hasMark(bytes: Uint8Array): boolean {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf
}

/** Returns JSON in UTF-8 as text, without the byte order mark. */
export function jsonTextOf(bytes: Buffer): string {
  return bytes.toString('utf8', hasMark(bytes) ? 3 : 0)
}

/** A whole number that may be too large for a JavaScript number. */
const LONG = /[\s:,[]-?\d{16,}\s*[,\]}]/

/** The number of a member as it is written, which `JSON.parse` passes to a reviver. */
interface Source {
  readonly source?: string
}

/**
 * Parses JSON with the identifiers of others: a whole number that a JavaScript number would round becomes its digits as a text, so
 * that different ids stay different. Throws `SyntaxError`.
 */
export function parseExactly(text: string): unknown {
  if (!LONG.test(text)) return JSON.parse(text) as unknown
  const exact = (_name: string, value: unknown, { source = '' }: Source = {}): unknown =>
    typeof value === 'number' && !Number.isSafeInteger(value) && /^-?\d+$/.test(source) ? source : value
  return JSON.parse(text, exact) as unknown
}

/** Returns any JSON value as text: a string as it is, anything else as JSON; `…` for what is nested too deeply to be written. */
export function textOfJson(value: unknown): string {
  if (typeof value === 'string') return value
  if (value === undefined) return ''
  try {
    return JSON.stringify(value)
  } catch {
    return '…'
  }
}

/** Writes a JSON value as a text that a URL can have, such as a cursor. */
export function writeToken(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

/** Reads the list in a text that `writeToken` made; an empty one from any other text. */
export function readToken(text: string): unknown[] {
  try {
    const value: unknown = JSON.parse(Buffer.from(text, 'base64url').toString('utf8'))
    return Array.isArray(value) ? value : []
  } catch {
    return []
  }
}
