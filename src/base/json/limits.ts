const OPEN = new Set([0x5b, 0x7b])
const CLOSE = new Set([0x5d, 0x7d])
const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c

/** Size below which no JSON is too costly to parse, bytes. */
const HARMLESS_BYTES = 1_000_000
const MAX_DEPTH = 200
const MAX_CONTAINERS = 5_000_000
/** Maximum values: an object of twice as many members crashes the process, because V8's hash tables are limited. */
const MAX_VALUES = 10_000_000

/**
 * Returns the reason why a JSON text must not be parsed, or null: a few compressed kilobytes can contain nesting,
 * empty objects or numbers by the million, which need gigabytes when parsed. Scans the bytes only.
 */
export function refuseCostly(bytes: Buffer): string | null {
  if (bytes.length < HARMLESS_BYTES) return null
  let depth = 0
  let containers = 0
  let commas = 0
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0
    if (byte === QUOTE) {
      for (at++; at < bytes.length && bytes[at] !== QUOTE; at++) if (bytes[at] === BACKSLASH) at++
    } else if (byte === COMMA) {
      if (++commas > MAX_VALUES) return `it contains more than ${MAX_VALUES} values`
    } else if (byte > 0x5a && OPEN.has(byte)) {
      if (++depth > MAX_DEPTH) return `it is nested more than ${MAX_DEPTH} deep`
      if (++containers > MAX_CONTAINERS) return `it contains more than ${MAX_CONTAINERS} objects and lists`
    } else if (byte > 0x5a && CLOSE.has(byte)) depth--
  }
  return null
}
