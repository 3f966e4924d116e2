/** A JSON object of which nothing is known. */
export type Fields = Readonly<Record<string, unknown>>

/** The objects of a JSON list, one by one; nothing of anything else. */
export function* eachObject(value: unknown): Generator<Fields, void, undefined> {
  if (!Array.isArray(value)) return
  for (const item of value as unknown[])
    if (typeof item === 'object' && item !== null) yield item as Fields
}

/** A value as an object; without members when it is none. */
export function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {}
}

/** Whether JSON in UTF-8 begins with a byte order mark, as files of some programs do. */
export function hasMark(bytes: Uint8Array): boolean {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf
}

/** Returns JSON in UTF-8 as text, without the byte order mark. */
export function jsonTextOf(bytes: Buffer): string {
  return bytes.toString('utf8', hasMark(bytes) ? 3 : 0)
}
