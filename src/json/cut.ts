import { type Slice, skipSpace, skipString, skipValue, sliceText } from './slices.ts'

const COMMA = 0x2c
const OPEN_OBJECT = 0x7b
const OPEN_LIST = 0x5b
const CLOSE_OBJECT = 0x7d
const CLOSE_LIST = 0x5d

/**
 * Whether a member is to go: its name, and the text from its value on (what follows the value is there too, so that no
 * value is walked twice).
 */
type Hide = (name: string, rest: Buffer) => boolean

/**
 * The same JSON text without the members that `hide` names, at any depth; every other byte as it was. For text known
 * to be sound JSON. One pass, however deep it is nested.
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

/** An object or list that is open. */
interface Level {
  object: boolean
  /** End of the last value in it that stays; null while there is none. */
  keptEnd: number | null
  /** Members in a row that go, up to now. */
  going: Slice | null
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
      // What goes at the end of an object goes with the comma before it.
      if (level.going !== null)
        cuts.push({ start: level.keptEnd ?? level.going.start, end: level.going.end })
      open.pop()
      at = kept(open.at(-1), at + 1)
    } else if (level !== undefined && byte === COMMA) at++
    else if (level?.object === true) at = passMember(text, at, hide, { level, open, cuts })
    else at = passValue(text, at, open)
  } while (open.length > 0)
  return cuts
}

/** Goes over a member that goes, or to the first byte within one that stays. */
function passMember(
  text: Buffer,
  at: number,
  hide: Hide,
  { level, open, cuts }: { level: Level; open: Level[]; cuts: Slice[] },
): number {
  const key = { start: at, end: skipString(text, at) }
  const value = skipSpace(text, skipSpace(text, key.end) + 1) // behind the colon
  if (hide(String(JSON.parse(sliceText(text, key))), text.subarray(value))) {
    const end = skipValue(text, value)
    level.going = { start: level.going?.start ?? key.start, end }
    return end
  }
  if (level.going !== null) cuts.push({ start: level.going.start, end: key.start })
  level.going = null
  return passValue(text, value, open)
}

function passValue(text: Buffer, at: number, open: Level[]): number {
  const byte = text[at]
  if (byte !== OPEN_OBJECT && byte !== OPEN_LIST) return kept(open.at(-1), skipValue(text, at))
  open.push({ object: byte === OPEN_OBJECT, keptEnd: null, going: null })
  return at + 1
}

function kept(level: Level | undefined, end: number): number {
  if (level !== undefined) level.keptEnd = end
  return end
}
