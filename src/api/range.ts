/** A part of a representation, both ends inclusive. */
export interface RangePart {
  readonly start: number
  readonly end: number
}

/** A longer header is no range that a client means: read as none, so that no pattern ever runs over more. */
const MAX_LENGTH = 100

/**
 * Reads a `Range` header for a representation of `size` bytes (RFC 9110, 14.2). `whole`: none, several parts, or not
 * readable; a server may then send everything. `unsatisfiable`: a sound range that lies outside.
 */
export function parseRange(
  header: string | undefined,
  size: number,
): RangePart | 'whole' | 'unsatisfiable' {
  if (header === undefined || header.length > MAX_LENGTH) return 'whole'
  const match = /^\s*bytes\s*=\s*(?:(\d+)\s*-\s*(\d*)|-\s*(\d+))\s*$/i.exec(header)
  if (match === null) return 'whole'
  const [, first, last, suffix] = match
  if (suffix !== undefined) return suffixOf(Number(suffix), size)
  const start = Number(first)
  const end = last === undefined || last === '' ? Number.POSITIVE_INFINITY : Number(last)
  if (end < start) return 'whole'
  return start >= size ? 'unsatisfiable' : { start, end: Math.min(end, size - 1) }
}

function suffixOf(length: number, size: number): RangePart | 'unsatisfiable' {
  if (length === 0 || size === 0) return 'unsatisfiable'
  return { start: Math.max(0, size - length), end: size - 1 }
}
