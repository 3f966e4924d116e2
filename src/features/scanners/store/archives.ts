import type { Db } from '../../../store/database/open.ts'

/** A view's archive. */
export interface Archive {
  readonly view: number
  readonly file: string
  /** The number of the first member of each part, in order, and where the part begins. */
  readonly parts: readonly (readonly [first: number, at: number])[]
}

/** Where a view's archive has a member. */
export type MemberPlace = [
  num: number,
  ...place: [place: number, length: number, size: number, crc32: number],
  prefixes: string,
]

/** Creates the lookup of a view's archive, null without the view. It is read once: an open generation does not change. */
export function createArchives(db: Db): (name: string) => Archive | null {
  const archive = db.prepare<[string], Omit<Archive, 'parts'>>(
    `SELECT v.id AS view, a.file FROM view v JOIN asset a ON a.path = v.name || '/all.zip' WHERE v.name = ?`,
  )
  const parts = db.prepare<[number], [number, number]>('SELECT first, at FROM part WHERE view = ? ORDER BY first').raw()
  const known = new Map<string, Archive>()
  return (name) => {
    const before = known.get(name)
    if (before !== undefined) return before
    const found = archive.get(name)
    if (found === undefined) return null
    const made = { ...found, parts: parts.all(found.view) }
    known.set(name, made)
    return made
  }
}

/** Returns where the part with a member begins in the archive; undefined where there is none. */
export function partOf({ parts }: Archive, num: number): number | undefined {
  let from = 0
  let to = parts.length
  while (from < to) {
    const middle = (from + to) >>> 1
    if ((parts[middle]?.[0] ?? Infinity) <= num) from = middle + 1
    else to = middle
  }
  return parts[from - 1]?.[1]
}
