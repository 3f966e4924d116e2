import { type Slice, skipSpace, skipString, skipValue, sliceText } from './slices.ts'

const COMMA = 0x2c
const OPEN_OBJECT = 0x7b
const OPEN_LIST = 0x5b
const CLOSE_OBJECT = 0x7d
const CLOSE_LIST = 0x5d

/**
 * Returns whether a member is removed, by its name and the text that starts at its value (the text continues after
 * the value, so that no value is scanned twice).
 */
type Hide = (name: string, rest: Buffer) => boolean

/**
 * Returns the JSON text without the members for which `hide` returns true, at any depth; all other bytes are
 * unchanged. The text must be valid JSON. One pass at any nesting depth.
 */
export function cutMembers(text: Buffer, hide: Hide): Buffer {
  const cuts = findCuts(text, hide)
  if (cuts.length === 0) return text
  const parts: Buffer[] = []
  let at = 0
  for (const { start, end } of cuts) {
    parts.push(text.subarray(at, start))
    at = end
  }
  parts.push(text.subarray(at))
  return Buffer.concat(parts)
}

/** An open object or list. */
interface Level {
  object: boolean
  /** End of the last kept value in it; null while there is none. */
  keptEnd: number | null
  /** Range of consecutive removed members; null: none. */
  removed: Slice | null
}

function findCuts(text: Buffer, hide: Hide): Slice[] {
  const cuts: Slice[] = []
  const open: Level[] = []
  let at = 0
  do {
    at = skipSpace(text, at)
    const byte = text[at]
    const level = open.at(-1)
    if (level !== undefined && (byte === CLOSE_OBJECT || byte === CLOSE_LIST)) {
      // Members at the end of an object are removed with the comma before them.
      if (level.removed !== null) cuts.push({ start: level.keptEnd ?? level.removed.start, end: level.removed.end })
      open.pop()
      at = kept(open.at(-1), at + 1)
    } else if (level !== undefined && byte === COMMA) at++
    else if (level?.object === true) at = skipMember(text, at, hide, { level, open, cuts })
    else at = enterValue(text, at, open)
  } while (open.length > 0)
  return cuts
}

/** Skips a removed member, or moves to the first byte within a kept one. */
function skipMember(
  text: Buffer,
  at: number,
  hide: Hide,
  { level, open, cuts }: { level: Level; open: Level[]; cuts: Slice[] },
): number {
  const key = { start: at, end: skipString(text, at) }
  const value = skipSpace(text, skipSpace(text, key.end) + 1) // behind the colon
  if (hide(String(JSON.parse(sliceText(text, key))), text.subarray(value))) {
    const end = skipValue(text, value)
    level.removed = { start: level.removed?.start ?? key.start, end }
    return end
  }
  if (level.removed !== null) cuts.push({ start: level.removed.start, end: key.start })
  level.removed = null
  return enterValue(text, value, open)
}

function enterValue(text: Buffer, at: number, open: Level[]): number {
  const byte = text[at]
  if (byte !== OPEN_OBJECT && byte !== OPEN_LIST) return kept(open.at(-1), skipValue(text, at))
  open.push({ object: byte === OPEN_OBJECT, keptEnd: null, removed: null })
  return at + 1
}

function kept(level: Level | undefined, end: number): number {
  if (level !== undefined) level.keptEnd = end
  return end
}
