import type { Directory } from '../../../archive/zip/directory.ts'

/** Members of a block at most, and their bytes: about as many as are inflated together. Larger members are a block each. */
const MOST_MEMBERS = 256
const MOST_BYTES = 1 << 18

/** Numbers of members that two threads read, block by block. In shared memory, so that each sees which blocks the other took. */
export interface SharedBlocks {
  readonly numbers: Uint32Array
  /** Where each block ends in `numbers`. */
  readonly ends: Uint32Array
  /** How many blocks were taken. */
  readonly taken: Int32Array
}

/** Some of the members, in order. */
export interface MemberBlock {
  /** The place of its first member in `numbers`. */
  readonly from: number
  readonly numbers: Uint32Array
}

/** Divides the numbers into blocks, and copies them into shared memory. */
export function shareBlocks(
  numbers: Uint32Array,
  { offset, regionEnd }: Pick<Directory, 'offset' | 'regionEnd'>,
): SharedBlocks {
  const ends: number[] = []
  let members = 0
  let bytes = 0
  for (const [place, number] of numbers.entries()) {
    const size = regionEnd(number) - offset(number)
    if (members === MOST_MEMBERS || (members > 0 && bytes + size > MOST_BYTES)) {
      ends.push(place)
      members = 0
      bytes = 0
    }
    members++
    bytes += size
  }
  if (members > 0) ends.push(numbers.length)
  return {
    numbers: shared(numbers),
    ends: shared(ends),
    taken: new Int32Array(new SharedArrayBuffer(4)),
  }
}

function shared(numbers: ArrayLike<number>): Uint32Array {
  const copy = new Uint32Array(new SharedArrayBuffer(numbers.length * 4))
  copy.set(numbers)
  return copy
}

/** Takes the next block that no thread has taken; null: there is none. */
export function takeBlock(blocks: SharedBlocks): MemberBlock | null {
  return blockAt(blocks, Atomics.add(blocks.taken, 0, 1))
}

/** Takes the next block, unless it is one large member: null then too, and the other thread takes it. */
export function takeSmallBlock(
  blocks: SharedBlocks,
  { offset, regionEnd }: Pick<Directory, 'offset' | 'regionEnd'>,
): MemberBlock | null {
  const next = Atomics.load(blocks.taken, 0)
  const block = blockAt(blocks, next)
  const [first = 0] = block?.numbers ?? []
  if (block === null || regionEnd(first) - offset(first) > MOST_BYTES) return null
  return Atomics.compareExchange(blocks.taken, 0, next, next + 1) === next ? block : null
}

function blockAt({ numbers, ends }: SharedBlocks, index: number): MemberBlock | null {
  const end = ends[index]
  if (end === undefined) return null
  const from = index === 0 ? 0 : (ends[index - 1] ?? 0)
  return { from, numbers: numbers.subarray(from, end) }
}
