import { stampOf } from '../../../../../base/time.ts'

/** The rows of a `modified_id.csv` (RFC 4180): when, and which record. */
export function* stampLines(stamps: Iterable<[string, string]>): Generator<string> {
  let last: string | null = null
  let stamp = ''
  for (const [instant, name] of stamps) {
    if (instant !== last) stamp = stampOf(instant) // many records have the same, and they are neighbours
    last = instant
    yield `${stamp},${quoted(name)}\n`
  }
}

/** Quotes a field where a CSV parser needs it: an id may contain any character. */
function quoted(field: string): string {
  return /[",\r\n]|^\s/.test(field) ? `"${field.replaceAll('"', '""')}"` : field
}
