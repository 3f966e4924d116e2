import { type Slice, elementsOf, membersOf } from './slices.ts'

const OPEN_OBJECT = 0x7b
const OPEN_LIST = 0x5b
/** A call for each level. */
const MAX_DEPTH = 500

/**
 * The same JSON text without the members that `hide` names, at any depth; every other byte as it was. For text known
 * to be sound JSON. Throws for one that is nested more than 500 deep.
 */
export function cutMembers(text: Buffer, hide: (name: string, value: Buffer) => boolean): Buffer {
  const cuts: Slice[] = []
  collect(text, 0, hide, cuts, 0)
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

function collect(
  text: Buffer,
  at: number,
  hide: (name: string, value: Buffer) => boolean,
  cuts: Slice[],
  depth: number,
): void {
  if (depth > MAX_DEPTH) throw new Error(`it is nested more than ${MAX_DEPTH} deep`)
  const first = text[at]
  if (first === OPEN_LIST) {
    for (const { start } of elementsOf(text, at)) collect(text, start, hide, cuts, depth + 1)
    return
  }
  if (first !== OPEN_OBJECT) {
    if (at === 0 && first !== undefined && first <= 0x20)
      collect(text, spaceEnd(text), hide, cuts, 0)
    return
  }
  // Members go with the comma behind the last of them; at the end of their object, with the one before the first.
  let keptEnd: number | null = null
  let pending = null as Slice | null
  for (const { name, key, value } of membersOf(text, at)) {
    if (hide(name, text.subarray(value.start, value.end))) {
      pending = { start: pending?.start ?? key.start, end: value.end }
      continue
    }
    if (pending !== null) cuts.push({ start: pending.start, end: key.start })
    pending = null
    collect(text, value.start, hide, cuts, depth + 1)
    keptEnd = value.end
  }
  if (pending !== null) cuts.push({ start: keptEnd ?? pending.start, end: pending.end })
}

function spaceEnd(text: Buffer): number {
  let at = 0
  while ((text[at] ?? 0x21) <= 0x20) at++
  return at
}
