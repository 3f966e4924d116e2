/** Keys of the events of a range that name its end: the version with the fix, or the last affected one. */
const KEYS = ['"fixed"', '"last_affected"'].map((key) => Buffer.from(key))
const COLON = 0x3a
const QUOTE = 0x22

/**
 * Returns whether a record names the end of a range: a member `fixed` or `last_affected` with a text that is not empty.
 * Reads the bytes without parsing them: such a member outside `affected` counts too, and a key written with escapes does
 * not. Within texts quotes are escaped, so these never count.
 */
export function namesFix(content: Buffer): boolean {
  return KEYS.some((key) => hasText(content, key))
}

function hasText(content: Buffer, key: Buffer): boolean {
  for (let at = content.indexOf(key); at >= 0; at = content.indexOf(key, at + key.length)) {
    const colon = skipSpace(content, at + key.length)
    if (content[colon] !== COLON) continue // a value, not a key
    const value = skipSpace(content, colon + 1)
    if (content[value] === QUOTE && content[value + 1] !== QUOTE) return true
  }
  return false
}

/** White space of JSON: tab, line feed, carriage return, space. */
const SPACE: ReadonlySet<number | undefined> = new Set([0x09, 0x0a, 0x0d, 0x20])

function skipSpace(content: Buffer, from: number): number {
  let at = from
  while (SPACE.has(content[at])) at++
  return at
}
