/** Members of a block: about as many as are inflated together. */
const MEMBERS = 256

/** Numbers of members that two threads read, block by block. In shared memory, so that each sees which blocks the other took. */
export interface SharedBlocks {
  readonly numbers: Uint32Array
  /** How many blocks were taken. */
  readonly taken: Int32Array
}

/** Some of the members, in order. */
export interface MemberBlock {
  /** The place of its first member in `numbers`. */
  readonly from: number
  readonly numbers: Uint32Array
}

/** Copies the numbers into shared memory. */
export function shareBlocks(numbers: Uint32Array): SharedBlocks {
  const shared = new Uint32Array(new SharedArrayBuffer(numbers.byteLength))
  shared.set(numbers)
  return { numbers: shared, taken: new Int32Array(new SharedArrayBuffer(4)) }
}

/** Takes the next block that no thread has taken; null: there is none. */
export function takeBlock({ numbers, taken }: SharedBlocks): MemberBlock | null {
  const from = Atomics.add(taken, 0, 1) * MEMBERS
  return from < numbers.length ? { from, numbers: numbers.subarray(from, from + MEMBERS) } : null
}
