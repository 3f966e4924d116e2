import { CENTRAL, OFFSET_AT } from './headers.ts'

/** Calls `use` with the bounds of each member's name, in UTF-8, of `count` entries of a central directory. */
export function eachName(entries: Buffer, count: number, use: (from: number, to: number) => void): void {
  let at = 0
  for (let i = 0; i < count; i++) {
    use(at + CENTRAL, at + CENTRAL + entries.readUInt16LE(at + 28))
    at = entryEnd(entries, at)
  }
}

/**
 * Adds to the offsets of `count` entries and returns their bytes. Throws `RangeError` when a central directory ends within
 * them.
 */
export function shiftEntries(entries: Buffer, count: number, by: number): number {
  let at = 0
  for (let i = 0; i < count; i++) {
    if (by !== 0) entries.writeUInt32LE(entries.readUInt32LE(at + OFFSET_AT) + by, at + OFFSET_AT)
    at = entryEnd(entries, at)
  }
  if (at > entries.length) throw new RangeError('a central directory ends within an entry')
  return at
}

/** Single bytes: this is called for each member of an archive. */
function entryEnd(entries: Buffer, at: number): number {
  const named = (entries[at + 28] ?? 0) | ((entries[at + 29] ?? 0) << 8)
  const more = (entries[at + 30] ?? 0) | ((entries[at + 31] ?? 0) << 8)
  return at + CENTRAL + named + more
}
