import type { Directory } from './directory.ts'

/** Bytes that are read at once; only a member with more has a read of its own. */
export const WINDOW = 1 << 20
/** Bytes of a local header with the longest possible name and extra field. */
const MAX_HEADER = 30 + 2 * 0xffff

/** Size of a region that is read as it is, bytes. */
const SMALL_REGION = 1 << 16

/** Members that are read together. */
export interface MemberRun {
  from: number
  bytes: number
  /** Numbers in the directory; an entry is made when its member is read: the run may have thousands. */
  members: number[]
}

/** Returns the end of a member's region: no member may extend into the next one. */
export function regionEnd(directory: Directory, i: number): number {
  const end = directory.regionEnd(i)
  // Mostly: then the entry is read once, from a directory that may be on disk, and not for this too.
  if (end - directory.offset(i) <= SMALL_REGION) return end
  // The space between two members may exceed what the first one needs: do not read it.
  const most = directory.offset(i) + MAX_HEADER + directory.compressedSize(i)
  return Math.min(end, most)
}

/** Groups consecutive members into reads of at most a window; a member larger than that gets a read of its own. */
export function* planRuns(directory: Directory, numbers: Iterable<number>, gap: number): Generator<MemberRun> {
  let run: MemberRun | null = null
  for (const i of numbers) {
    const offset = directory.offset(i)
    const end = regionEnd(directory, i)
    if (run !== null && !isNear(run, offset, end, gap)) {
      yield run
      run = null
    }
    run ??= { from: offset, bytes: 0, members: [] }
    run.bytes = Math.max(run.from + run.bytes, end) - Math.min(run.from, offset)
    run.from = Math.min(run.from, offset)
    run.members.push(i)
  }
  if (run !== null) yield run
}

/** Returns whether a read with this region has at most a window, and no gap that is too large. */
function isNear({ from, bytes }: MemberRun, start: number, end: number, gap: number): boolean {
  const before = start - from - bytes
  const after = from - end
  return before <= gap && after <= gap && Math.max(from + bytes, end) - Math.min(from, start) <= WINDOW
}
