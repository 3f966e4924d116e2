/** Most values of a document, and of one that it contains as a text: they bound the memory that it takes. */
export const MAX_VALUES = 2_000_000

/** Counts commas and opening brackets: at least as many as there are values. */
export function countValues(content: Buffer): number {
  let count = 0
  for (let at = 0; at < content.length; at++) {
    const byte = content[at] // an iterator takes seven times as long
    if (byte === 0x2c || byte === 0x5b || byte === 0x7b) count++
  }
  return count
}

/** Returns why JSON of a document is not parsed; null: it has few enough values. */
export function refuseManyValues(content: Buffer): string | null {
  return countValues(content) > MAX_VALUES ? `it has more than ${MAX_VALUES} values` : null
}
